// SPDX-License-Identifier: Apache-2.0
// Tree of Parzen estimators over all parameters at once: candidates are drawn where good trials
// lie, and that is tried which good trials make likely and others do not. Bergstra, Bardenet,
// Bengio and Kegl, "Algorithms for hyper-parameter optimization", 2011; Falkner, Klein and Hutter,
// "BOHB", 2018, for the joint density.
#include <algorithm>
#include <cmath>
#include <deque>

#include "platform/search/normal.h"
#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kEstimateFrom = 10;  // random points before the first estimate
// Drawn, of which the best is tried: many, or, after many trials, as many as take a millisecond.
constexpr int64_t kMostCandidates = 96, kLeastCandidates = 32, kMostKernels = 30000;
constexpr double kGood = 0.1;  // of the finished trials count as good
constexpr size_t kMostGood = 25;
constexpr double kLeastWidth = 0.01;
constexpr double kLeastValues = 1.4;  // of whole numbers: a width of so many of them
constexpr double kLeastOthers = 0.2;  // of a choice's draws: good trials alike must not end them

// A mixture of one kernel at each point and one over the whole space. A parameter that a point has
// no value of, NaN, may have any under its kernel.
class Density {
 public:
  // Along whole numbers the kernels are as wide as those of `other`, where there is one: a density
  // of all trials that is smoother than that of the good ones calls the number that most good ones
  // have the best again and again, and the numbers beside it are never tried.
  Density(const SearchSpace& space, std::vector<const std::vector<double>*> points,
          const Density* other = nullptr)
      : space_(space), points_(std::move(points)), widths_(space.parameters.size()) {
    const double power = -1.0 / (static_cast<double>(space.parameters.size()) + 4);
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (other != nullptr && space.parameters[i].size() > 0 && !IsChoice(i)) {
        widths_[i] = other->widths_[i];
        continue;
      }
      double n = 0, sum = 0, squares = 0;
      for (const auto* p : points_) {
        if (std::isnan((*p)[i])) continue;
        n += 1;
        sum += (*p)[i];
        squares += (*p)[i] * (*p)[i];
      }
      // The spread, with one more point of the whole range for few.
      const double mean = sum / std::max(1.0, n);
      const double variance = std::max(0.0, squares / std::max(1.0, n) - mean * mean);
      // Of few whole numbers the next one stays in reach.
      const auto values = static_cast<double>(space.parameters[i].size());
      const double least = values > 0
                               ? std::max(kLeastWidth, (IsChoice(i) ? 1 : kLeastValues) / values)
                               : kLeastWidth;
      const double shrink = std::pow(n + 1, power);
      widths_[i] = std::max(least, shrink * std::sqrt((n * variance + 1.0 / 12) / (n + 1)));
    }
    for (const auto* p : points_) {
      double sum = 0;
      for (size_t i = 0; i < widths_.size(); ++i) {
        parts_.push_back(Height(i, (*p)[i]));
        sum += parts_.back();
      }
      heights_.push_back(sum);
    }
    for (size_t i = 0; i < widths_.size(); ++i) {
      const auto count = static_cast<double>(space.parameters[i].choices.size());
      same_.push_back(IsChoice(i) ? std::log(Kept(i) * count + 1 - Kept(i)) : 0);
      other_.push_back(IsChoice(i) ? std::log(1 - Kept(i)) : 0);
      scales_.push_back(1 / widths_[i]);
    }
  }

  std::vector<double> Draw(RandomNumbers& random) const {
    std::vector<double> position(widths_.size());
    const auto kernel = static_cast<size_t>(random.Below(static_cast<int64_t>(points_.size()) + 1));
    for (size_t i = 0; i < position.size(); ++i) {
      position[i] = random.Uniform();
      if (IsChoice(i)) {
        const SearchParameter& p = space_.parameters[i];
        position[i] = p.ToUnit(p.FromUnit(position[i]));
      }
      if (kernel == points_.size()) continue;
      const double center = (*points_[kernel])[i];
      if (std::isnan(center)) continue;
      if (IsChoice(i)) {
        if (random.Uniform() < Kept(i)) position[i] = center;
        continue;
      }
      for (int attempt = 0; attempt < 16; ++attempt) {
        const double x = center + widths_[i] * random.Normal();
        if (x < 0 || x > 1) continue;
        position[i] = x;
        break;
      }
    }
    return position;
  }

  double Log(const std::vector<double>& x) const {
    double sum = 1;  // of the kernel over the whole space
    for (size_t k = 0; k < points_.size(); ++k) {
      const std::vector<double>& center = *points_[k];
      double squares = 0, height = heights_[k];
      for (size_t i = 0; i < x.size(); ++i) {
        const double delta = x[i] - center[i];
        if (std::isnan(delta)) {
          if (std::isnan(x[i])) height -= parts_[k * x.size() + i];
        } else if (IsChoice(i)) {
          height += delta == 0 ? same_[i] : other_[i];
        } else {
          squares += delta * delta * scales_[i] * scales_[i];
        }
      }
      sum += std::exp(height - 0.5 * squares);
    }
    return std::log(sum / static_cast<double>(points_.size() + 1));
  }

 private:
  bool IsChoice(size_t i) const {
    return space_.parameters[i].kind == SearchParameter::Kind::kChoice;
  }
  // How likely a choice is kept as it is in a good trial.
  double Kept(size_t i) const { return 1 - std::clamp(2 * widths_[i], kLeastOthers, 0.9); }

  // The logarithm of a kernel at its center along one parameter, but for choices: what lies outside
  // of the space is made up for inside.
  double Height(size_t i, double center) const {
    if (IsChoice(i) || std::isnan(center)) return 0;
    const double inside =
        NormalShare((1 - center) / widths_[i]) - NormalShare(-center / widths_[i]);
    return std::log(0.3989422804014327 / (widths_[i] * inside));
  }

  const SearchSpace& space_;
  const std::vector<const std::vector<double>*> points_;
  std::vector<double> widths_, scales_;  // by parameter
  std::vector<double> same_, other_;     // logarithms, of choices
  std::vector<double> heights_, parts_;  // by point, and by point and parameter
};

class Tpe final : public Sampler {
 public:
  struct Settings {
    size_t from;
    int64_t candidates;  // 0: as many as can be had
    double good;
  };
  Tpe(const SearchSpace& space, uint64_t seed, const Settings& settings)
      : space_(space), seed_(seed), settings_(settings) {
    for (const SearchParameter& p : space.parameters) {
      has_conditions_ |= p.depends_on >= 0;
      is_plain_ &= p.depends_on < 0 && p.size() == 0;
    }
  }

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    if (finished.size() < settings_.from) {
      std::vector<double> position(space_.parameters.size());
      for (double& p : position) p = random.Uniform();
      return position;
    }
    std::vector<int> order(finished.begin(), finished.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return trials[a].loss < trials[b].loss; });
    const auto good = std::min(
        kMostGood,
        static_cast<size_t>(std::ceil(settings_.good * static_cast<double>(order.size()))));
    std::deque<std::vector<double>> tried;
    const auto known = [&](const TrialPoint& trial) -> const std::vector<double>* {
      if (!has_conditions_) return &trial.position;
      return &tried.emplace_back(Tried(trial.position));
    };
    std::vector<const std::vector<double>*> near, far;
    for (size_t i = 0; i < order.size(); ++i) {
      (i < good ? near : far).push_back(known(trials[order[i]]));
    }
    // What runs now keeps the next away: it counts as not good.
    for (const TrialPoint& trial : trials) {
      if (trial.is_running()) far.push_back(known(trial));
    }
    const Density likely(space_, near), unlikely(space_, far, &likely);
    const int64_t count =
        settings_.candidates > 0
            ? settings_.candidates
            : std::clamp(kMostKernels / static_cast<int64_t>(near.size() + far.size()),
                         kLeastCandidates, kMostCandidates);
    std::vector<std::vector<double>> candidates;
    for (int64_t i = 0; i < count; ++i) {
      candidates.push_back(likely.Draw(random));
      if (!is_plain_) candidates.back() = Tried(std::move(candidates.back()));
    }
    const auto score = [&](const std::vector<double>& x) {
      return likely.Log(x) - unlikely.Log(x);
    };
    if (has_conditions_) KeepBestBranch(score, &candidates);
    std::vector<double> best = Best(candidates, score);
    for (double& p : best) p = std::isnan(p) ? 0.5 : p;
    return best;
  }

 private:
  template <typename Score>
  static std::vector<double> Best(const std::vector<std::vector<double>>& candidates,
                                  const Score& score) {
    size_t best = 0;
    double best_score = score(candidates[0]);
    for (size_t i = 1; i < candidates.size(); ++i) {
      const double next = score(candidates[i]);
      if (next <= best_score) continue;
      best_score = next;
      best = i;
    }
    return candidates[best];
  }

  // Those candidates alone that have values of the same parameters as the best one by what none
  // goes without. Of a branch with more parameters the best by all would be better by chance alone.
  template <typename Score>
  void KeepBestBranch(const Score& score, std::vector<std::vector<double>>* candidates) const {
    const auto common = [&](std::vector<double> x) {
      for (size_t i = 0; i < x.size(); ++i) {
        if (space_.parameters[i].depends_on >= 0) x[i] = std::nan("");
      }
      return score(x);
    };
    const std::vector<double> best = Best(*candidates, common);
    std::erase_if(*candidates, [&](const std::vector<double>& x) {
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i]) != std::isnan(best[i])) return true;
      }
      return false;
    });
  }

  // The position that a trial there has, with NaN for each parameter that its condition rules out.
  std::vector<double> Tried(std::vector<double> position) const {
    std::vector<double> values(position.size(), 0);
    for (size_t i = 0; i < values.size(); ++i) {
      const SearchParameter& p = space_.parameters[i];
      if (p.size() > 0) values[i] = p.FromUnit(position[i]);
    }
    space_.DropInactive(&values);
    for (size_t i = 0; i < values.size(); ++i) {
      const SearchParameter& p = space_.parameters[i];
      if (std::isnan(values[i])) {
        position[i] = values[i];
      } else if (p.size() > 0) {
        position[i] = p.ToUnit(values[i]);
      }
    }
    return position;
  }

  const SearchSpace& space_;
  const uint64_t seed_;
  const Settings settings_;
  bool has_conditions_ = false;
  bool is_plain_ = true;  // every position is a point of the space
};

}  // namespace

MadeSampler MakeTpe(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const double from,
                        options.Number("n_startup_trials", kEstimateFrom, 1, 1e6));
  WEFT_ASSIGN_OR_RETURN(const double candidates, options.Number("n_ei_candidates", 0, 1, 1e5));
  WEFT_ASSIGN_OR_RETURN(const double good, options.Number("gamma", kGood, 0.001, 0.999));
  return std::make_unique<Tpe>(
      space, options.seed,
      Tpe::Settings{static_cast<size_t>(from), static_cast<int64_t>(candidates), good});
}

}  // namespace weft::platform
