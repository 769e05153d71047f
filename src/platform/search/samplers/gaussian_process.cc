// SPDX-License-Identifier: Apache-2.0
// Bayesian search: a Gaussian process over what was tried; that is tried next which promises the
// most expected improvement. Jones, Schonlau and Welch, "Efficient global optimization of expensive
// black-box functions", 1998.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/algorithm/container.h"

#include "platform/search/descent.h"
#include "platform/search/gaussian_model.h"
#include "platform/search/normal.h"
#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kModelFrom = 8;      // random points before the first model
constexpr size_t kMostPoints = 200;   // of a model: the best half and the latest, and what is newer
constexpr size_t kShapePoints = 100;  // that the kernel's shape is learned from
constexpr size_t kMostAlike = 25;     // finished trials under one shape
constexpr size_t kPlateau = 4;        // places with the same best value
constexpr int kAnywhere = 128;        // candidates
constexpr int kNearGoodOnes = 112;
constexpr size_t kGoodOnes = 4;
constexpr size_t kStarts = 4;  // candidates that are made better step by step
constexpr int kClimbEvaluations = 16;
constexpr int kRounds = 2;  // over neighbours of the best, where there are choices
constexpr size_t kNeighbours = 32;

// What a prediction is worth, and how that changes with its mean and deviation.
struct Worth {
  double value = 0;
  double by_mean = 0;
  double by_deviation = 0;
};

// The logarithm of what a point is expected to be better than `best` by, which still has a slope
// where that is next to nothing. Ament et al., "Unexpected improvements to expected improvement for
// Bayesian optimization", 2023.
Worth ExpectedImprovement(const Prediction& p, double best) {
  const double z = (best - p.mean) / p.deviation;
  constexpr double kFar = -8;
  if (z > kFar) {
    const double density = NormalDensity(z), share = NormalShare(z);
    const double expected = density + z * share;
    return {std::log(p.deviation * expected), -share / (p.deviation * expected),
            density / (p.deviation * expected)};
  }
  // The expected one is the density by z^2, less what falls with its fourth power.
  const double rest = 1 - 3 / (z * z);
  return {std::log(p.deviation * 0.3989422804014327 * rest) - 0.5 * z * z - 2 * std::log(-z),
          z * (1 - 1 / (z * z)) / (rest * p.deviation), z * z / (rest * p.deviation)};
}

Worth ProbabilityOfImprovement(const Prediction& p, double best) {
  constexpr double kLeast = 0.01;  // improvement that is worth a trial
  const double z = (best - kLeast - p.mean) / p.deviation;
  constexpr double kFar = -8;
  if (z > kFar) {
    const double share = NormalShare(z), fall = NormalDensity(z) / (share * p.deviation);
    return {std::log(share), -fall, -fall * z};
  }
  return {-0.5 * z * z - std::log(-z), z / p.deviation, z * z / p.deviation};
}

// The lower end of what is likely; Srinivas et al., "Gaussian process optimization in the bandit
// setting", 2010.
Worth LowerBound(const Prediction& p, double /*best*/) {
  return {1.96 * p.deviation - p.mean, -1, 1.96};
}

using Acquisition = Worth (*)(const Prediction& p, double best);

class GaussianProcess final : public Sampler {
 public:
  // Acquisitions take turns, trial by trial.
  GaussianProcess(const SearchSpace& space, uint64_t seed, size_t from,
                  std::vector<Acquisition> acquisitions)
      : space_(space),
        seed_(seed),
        from_(from),
        acquisitions_(std::move(acquisitions)),
        model_(Choices(space)) {
    for (const SearchParameter& p : space.parameters) {
      is_plain_ =
          is_plain_ && p.kind == SearchParameter::Kind::kDouble && p.step == 0 && p.depends_on < 0;
    }
  }

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    Position position = Anywhere(random);
    if (finished.size() < from_ || position.empty()) return position;
    if (number % 2 == 1 && IsOnPlateau(trials, finished)) return position;
    Learn(trials, finished);
    acquisition_ = acquisitions_[static_cast<size_t>(number) % acquisitions_.size()];
    return Best(trials, random);
  }

 private:
  struct Candidate {
    Position position;
    double value = -HUGE_VAL;
  };

  // Whether several places share the best value, as where an accuracy counts right answers. The
  // model, which is smooth, expects more of each of its edges, again and again.
  static bool IsOnPlateau(absl::Span<const TrialPoint> trials, absl::Span<const int> finished) {
    double least = HUGE_VAL;
    for (const int i : finished) least = std::min(least, trials[i].loss);
    std::vector<const Position*> places;
    for (const int i : finished) {
      const bool is_new =
          trials[i].loss == least && absl::c_none_of(places, [&](const Position* place) {
            return *place == trials[i].position;
          });
      if (is_new) places.push_back(&trials[i].position);
      if (places.size() >= kPlateau) return true;
    }
    return false;
  }

  static std::vector<bool> Choices(const SearchSpace& space) {
    std::vector<bool> choices;
    for (const SearchParameter& p : space.parameters)
      choices.push_back(p.kind == SearchParameter::Kind::kChoice);
    return choices;
  }

  // What a model is made of, which depends on what has finished alone: the kernel's shape is
  // learned now and then, from what had finished by then.
  void Learn(absl::Span<const TrialPoint> trials, absl::Span<const int> finished) {
    const size_t stage = Stage(finished.size());
    std::vector<int> points = Chosen(trials, finished.first(stage), kMostPoints);
    std::vector<double> losses;
    for (const int i : points) losses.push_back(trials[i].loss);
    if (stage != stage_ || losses != losses_) {
      const std::vector<int> few = Chosen(trials, finished.first(stage), kShapePoints);
      model_.SetShape(model_.FindShape(Positions(trials, few), Warped(trials, few)));
      stage_ = stage;
      losses_ = std::move(losses);
    }
    points.insert(points.end(), finished.begin() + static_cast<std::ptrdiff_t>(stage),
                  finished.end());
    std::vector<double> values = Warped(trials, points);
    best_value_ = *absl::c_min_element(values);
    model_.SetPoints(Positions(trials, points), values);
    good_ = Chosen(trials, points, kGoodOnes);
    // What runs now is taken for what it is expected to be, which keeps the next away.
    bool runs = false;
    for (size_t i = 0; i < trials.size(); ++i) {
      if (!trials[i].is_running()) continue;
      points.push_back(static_cast<int>(i));
      values.push_back(model_.At(trials[i].position).mean);
      runs = true;
    }
    if (runs) model_.SetPoints(Positions(trials, points), values);
  }

  size_t Stage(size_t finished) const {
    size_t stage = from_;
    while (true) {
      const size_t next = stage + std::clamp<size_t>(stage / 16, 1, kMostAlike);
      if (next > finished) return stage;
      stage = next;
    }
  }

  static std::vector<const Position*> Positions(absl::Span<const TrialPoint> trials,
                                                const std::vector<int>& points) {
    std::vector<const Position*> positions;
    for (const int i : points) positions.push_back(&trials[i].position);
    return positions;
  }

  // By loss: the best half and the latest, where there are more than `most`.
  static std::vector<int> Chosen(absl::Span<const TrialPoint> trials, absl::Span<const int> points,
                                 size_t most) {
    std::vector<int> order(points.begin(), points.end());
    const auto by_loss = [&](int a, int b) { return trials[a].loss < trials[b].loss; };
    if (order.size() > most) {
      const size_t latest = most / 2;
      std::stable_sort(order.begin(), order.end() - latest, by_loss);
      order.erase(order.begin() + (most - latest), order.end() - latest);
    }
    std::stable_sort(order.begin(), order.end(), by_loss);
    return order;
  }

  // Losses on a scale that one which is far off does not spoil, and on which small steps near the
  // best still count: logarithms of how far they lie above the best, with mean 0 and spread 1.
  static std::vector<double> Warped(absl::Span<const TrialPoint> trials,
                                    const std::vector<int>& points) {
    std::vector<double> values;
    for (const int i : points) values.push_back(trials[i].loss);
    std::vector<double> sorted = values;
    absl::c_sort(sorted);
    const double best = sorted.front();
    const double middle = std::max(1e-300, sorted[sorted.size() / 2] - best);
    double mean = 0, spread = 0;
    const auto count = static_cast<double>(values.size());
    for (double& v : values) {
      v = std::log1p(10 * std::min((v - best) / middle, 1e100));
      mean += v / count;
    }
    for (const double v : values) spread += (v - mean) * (v - mean) / count;
    for (double& v : values) v = (v - mean) / std::sqrt(std::max(spread, 1e-12));
    return values;
  }

  Position Anywhere(RandomNumbers& random) const {
    Position position(space_.parameters.size());
    for (double& p : position) p = random.Uniform();
    return position;
  }

  // Some coordinates of a point changed a little or more.
  Position Near(Position position, RandomNumbers& random) const {
    const double width = 0.25 * std::exp2(-6 * random.Uniform());
    const auto n = static_cast<int64_t>(position.size());
    const double share = std::max(random.Uniform(), 1.0 / static_cast<double>(n));
    const auto sure = static_cast<size_t>(random.Below(n));
    for (size_t i = 0; i < position.size(); ++i) {
      if (i != sure && random.Uniform() > share) continue;
      const bool is_choice = space_.parameters[i].kind == SearchParameter::Kind::kChoice;
      position[i] = is_choice ? random.Uniform() : Reflect(position[i] + width * random.Normal());
    }
    return position;
  }

  // The position that a trial at `position` has.
  Position Tried(const Position& position) const {
    if (is_plain_) return position;
    const std::vector<double> values = space_.At(position);
    Position tried;
    for (size_t i = 0; i < values.size(); ++i) {
      tried.push_back(std::isnan(values[i]) ? 0.5 : space_.parameters[i].ToUnit(values[i]));
    }
    return tried;
  }

  std::vector<Candidate> Valued(std::vector<Position> positions) const {
    std::vector<Candidate> candidates;
    const std::vector<Prediction> predictions = model_.AtEach(positions);
    for (size_t i = 0; i < positions.size(); ++i) {
      candidates.push_back(
          {std::move(positions[i]), acquisition_(predictions[i], best_value_).value});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.value > b.value; });
    return candidates;
  }

  Position Best(absl::Span<const TrialPoint> trials, RandomNumbers& random) const {
    std::vector<Position> positions;
    for (int i = 0; i < kAnywhere; ++i) positions.push_back(Tried(Anywhere(random)));
    for (int i = 0; i < kNearGoodOnes; ++i) {
      const int good = good_[static_cast<size_t>(i) % good_.size()];
      positions.push_back(Tried(Near(trials[good].position, random)));
    }
    std::vector<Candidate> candidates = Valued(std::move(positions));
    std::vector<Position> better;
    for (size_t i = 0; i < std::min(kStarts, candidates.size()); ++i) {
      better.push_back(Tried(Climb(candidates[i].position)));
    }
    for (Candidate& climbed : Valued(std::move(better))) candidates.push_back(std::move(climbed));
    const auto first = [&] {
      std::stable_sort(candidates.begin(), candidates.end(),
                       [](const Candidate& a, const Candidate& b) { return a.value > b.value; });
      for (const Candidate& candidate : candidates) {
        if (is_plain_ || !IsKnown(trials, candidate.position)) return candidate;
      }
      return candidates.front();
    };
    Candidate best = first();
    for (int round = 0; round < kRounds && !is_plain_; ++round) {
      std::vector<Position> neighbours = Neighbours(best.position, random);
      if (neighbours.empty()) break;
      for (Candidate& found : Valued(std::move(neighbours))) candidates.push_back(std::move(found));
      Candidate next = first();
      if (!(next.value > best.value)) break;
      best = std::move(next);
    }
    return best.position;
  }

  static bool IsKnown(absl::Span<const TrialPoint> trials, const Position& position) {
    return absl::c_any_of(trials, [&](const TrialPoint& trial) {
      return !trial.has_failed && trial.position == position;
    });
  }

  // Uphill from a candidate, by the coordinates that are numbers and count.
  Position Climb(Position position) const {
    Position low = position, high = position;
    const std::vector<double> values = space_.At(position);
    for (size_t i = 0; i < position.size(); ++i) {
      const SearchParameter& p = space_.parameters[i];
      if (p.kind == SearchParameter::Kind::kChoice || std::isnan(values[i])) continue;
      low[i] = 0;
      high[i] = 1;
    }
    PredictionSlope by;
    const auto loss = [&](const Position& x, std::vector<double>* slope) {
      const Worth worth = acquisition_(model_.At(x, &by), best_value_);
      for (size_t i = 0; i < x.size(); ++i) {
        (*slope)[i] = -worth.by_mean * by.mean[i] - worth.by_deviation * by.deviation[i];
      }
      return -worth.value;
    };
    (void)Descend(loss, low, high, kClimbEvaluations, &position);
    return position;
  }

  // The same point with another choice, or the next whole number.
  std::vector<Position> Neighbours(const Position& position, RandomNumbers& random) const {
    std::vector<Position> all;
    for (size_t i = 0; i < position.size(); ++i) {
      const SearchParameter& p = space_.parameters[i];
      const auto count = static_cast<double>(p.size());
      if (count < 2) continue;
      const auto at = [&](double place) {
        Position next = position;
        next[i] = place;
        next = Tried(next);
        if (next != position) all.push_back(std::move(next));
      };
      if (p.kind == SearchParameter::Kind::kChoice) {
        for (double c = 0; c < count; ++c) at((c + 0.5) / count);
      } else {
        const double step = p.step != 0 ? p.step : 1, value = p.FromUnit(position[i]);
        for (const double v : {value - step, value + step}) {
          if (v >= p.low && v <= p.high) at(p.ToUnit(v));
        }
      }
    }
    while (all.size() > kNeighbours) {
      all[static_cast<size_t>(random.Below(static_cast<int64_t>(all.size())))].swap(all.back());
      all.pop_back();
    }
    return all;
  }

  const SearchSpace& space_;
  const uint64_t seed_;
  const size_t from_;
  const std::vector<Acquisition> acquisitions_;
  bool is_plain_ = true;  // every position is a point of the space
  // Of the last suggestion; each could be found anew.
  GaussianModel model_;
  size_t stage_ = 0;  // how many had finished when the kernel's shape was learned
  std::vector<double> losses_;
  std::vector<int> good_;
  double best_value_ = 0;
  Acquisition acquisition_ = nullptr;
};

}  // namespace

MadeSampler MakeGaussianProcess(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const double from, options.Number("n_initial_points", kModelFrom, 1, 1e6));
  WEFT_ASSIGN_OR_RETURN(const std::string name,
                        options.Text("acq_func", "EI", {"EI", "PI", "LCB", "gp_hedge"}));
  std::vector<Acquisition> acquisitions;
  if (name == "EI" || name == "gp_hedge") acquisitions.push_back(&ExpectedImprovement);
  if (name == "PI" || name == "gp_hedge") acquisitions.push_back(&ProbabilityOfImprovement);
  if (name == "LCB" || name == "gp_hedge") acquisitions.push_back(&LowerBound);
  return std::make_unique<GaussianProcess>(space, options.seed, static_cast<size_t>(from),
                                           std::move(acquisitions));
}

}  // namespace weft::platform
