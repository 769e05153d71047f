// SPDX-License-Identifier: Apache-2.0
// Tree of Parzen estimators over all parameters at once: candidates are drawn where good trials
// lie, and that is tried which good trials make likely and others do not. Bergstra, Bardenet,
// Bengio and Kegl, "Algorithms for hyper-parameter optimization", 2011; Falkner, Klein and Hutter,
// "BOHB", 2018, for the joint density.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kEstimateFrom = 10;   // random points before the first estimate
constexpr double kTpeCandidates = 32;  // drawn, of which the best is tried
constexpr double kGood = 0.15;         // of the finished trials count as good
constexpr size_t kMostGood = 25;
constexpr double kLeastWidth = 0.01;
constexpr double kLeastOthers = 0.2;  // of a choice's draws: good trials alike must not end them

double NormalDensity(double x) { return std::exp(-0.5 * x * x) * 0.3989422804014327; }
double NormalShare(double x) { return 0.5 * std::erfc(-x * 0.7071067811865476); }

// A mixture of one kernel at each point and one over the whole space.
class Density {
 public:
  Density(const SearchSpace& space, std::vector<const std::vector<double>*> points)
      : space_(space), points_(std::move(points)), widths_(space.parameters.size()) {
    const auto n = static_cast<double>(points_.size());
    const double shrink =
        std::pow(n + 1, -1.0 / (static_cast<double>(space.parameters.size()) + 4));
    for (size_t i = 0; i < widths_.size(); ++i) {
      double sum = 0, squares = 0;
      for (const auto* p : points_) {
        sum += (*p)[i];
        squares += (*p)[i] * (*p)[i];
      }
      // The spread, with one more point of the whole range for few.
      const double mean = sum / std::max(1.0, n);
      const double variance = std::max(0.0, squares / std::max(1.0, n) - mean * mean);
      // Of few whole numbers the next one stays in reach.
      const auto values = static_cast<double>(space.parameters[i].size());
      const double least = values > 0 ? std::max(kLeastWidth, 1.0 / values) : kLeastWidth;
      widths_[i] = std::max(least, shrink * std::sqrt((n * variance + 1.0 / 12) / (n + 1)));
    }
  }

  std::vector<double> Draw(RandomNumbers& random) const {
    std::vector<double> position(widths_.size());
    const auto kernel = static_cast<size_t>(random.Below(static_cast<int64_t>(points_.size()) + 1));
    for (size_t i = 0; i < position.size(); ++i) {
      position[i] = random.Uniform();
      if (kernel == points_.size()) continue;
      const double center = (*points_[kernel])[i];
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
    for (const auto* p : points_) {
      double product = 1;
      for (size_t i = 0; i < x.size(); ++i) product *= Kernel(i, (*p)[i], x[i]);
      sum += product;
    }
    return std::log(sum / static_cast<double>(points_.size() + 1));
  }

 private:
  bool IsChoice(size_t i) const {
    return space_.parameters[i].kind == SearchParameter::Kind::kChoice;
  }
  // How likely a choice is kept as it is in a good trial.
  double Kept(size_t i) const { return 1 - std::clamp(2 * widths_[i], kLeastOthers, 0.9); }

  double Kernel(size_t i, double center, double x) const {
    if (IsChoice(i)) {
      const SearchParameter& p = space_.parameters[i];
      const bool same = p.FromUnit(center) == p.FromUnit(x);
      return (same ? Kept(i) * static_cast<double>(p.choices.size()) : 0) + 1 - Kept(i);
    }
    const double width = widths_[i];
    const double inside = NormalShare((1 - center) / width) - NormalShare(-center / width);
    return NormalDensity((x - center) / width) / (width * inside);
  }

  const SearchSpace& space_;
  const std::vector<const std::vector<double>*> points_;
  std::vector<double> widths_;
};

class Tpe final : public Sampler {
 public:
  struct Settings {
    size_t from;
    int candidates;
    double good;
  };
  Tpe(const SearchSpace& space, uint64_t seed, const Settings& settings)
      : space_(space), seed_(seed), settings_(settings) {}

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
    std::vector<const std::vector<double>*> near, far;
    for (size_t i = 0; i < order.size(); ++i) {
      (i < good ? near : far).push_back(&trials[order[i]].position);
    }
    // What runs now keeps the next away: it counts as not good.
    for (const TrialPoint& trial : trials) {
      if (trial.is_running()) far.push_back(&trial.position);
    }
    const Density likely(space_, near), unlikely(space_, far);
    std::vector<double> best;
    double best_score = 0;
    for (int i = 0; i < settings_.candidates; ++i) {
      std::vector<double> candidate = likely.Draw(random);
      const double score = likely.Log(candidate) - unlikely.Log(candidate);
      if (!best.empty() && score <= best_score) continue;
      best_score = score;
      best = std::move(candidate);
    }
    return best;
  }

 private:
  const SearchSpace& space_;
  const uint64_t seed_;
  const Settings settings_;
};

}  // namespace

MadeSampler MakeTpe(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const double from,
                        options.Number("n_startup_trials", kEstimateFrom, 1, 1e6));
  WEFT_ASSIGN_OR_RETURN(const double candidates,
                        options.Number("n_ei_candidates", kTpeCandidates, 1, 1e5));
  WEFT_ASSIGN_OR_RETURN(const double good, options.Number("gamma", kGood, 0.001, 0.999));
  return std::make_unique<Tpe>(
      space, options.seed,
      Tpe::Settings{static_cast<size_t>(from), static_cast<int>(candidates), good});
}

}  // namespace weft::platform
