// SPDX-License-Identifier: Apache-2.0
// Bayesian search: a Gaussian process with Matern's kernel (5/2) over what was tried; that is tried
// next which promises the most expected improvement. Jones, Schonlau and Welch, "Efficient global
// optimization of expensive black-box functions", 1998.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "platform/search/linear_algebra.h"
#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kModelFrom = 8;     // random points before the first model
constexpr size_t kMostPoints = 200;  // of a model: the best half and the latest
constexpr int kGpCandidates = 400;   // random ones
constexpr int kSteps = 200;          // from the best candidate on
constexpr double kWidths[] = {0.05, 0.1, 0.2, 0.35, 0.6, 1, 2};
constexpr double kFactors[] = {0.4, 2.5, 6};
constexpr double kNoises[] = {1e-6, 1e-4, 1e-2, 1e-1};

struct Prediction {
  double mean = 0;
  double deviation = 1;
};

class Model {
 public:
  Model(const SearchSpace& space, std::vector<const TrialPoint*> points, std::vector<double> values)
      : space_(space), points_(std::move(points)), values_(std::move(values)), factor_(0) {
    // The widths and the noise under which the values are most likely: one width for all
    // parameters, then a wider or a narrower one for each that is better off with it.
    double best = -HUGE_VAL, noise = kNoises[2];
    std::vector<double> widths(space.parameters.size(), kWidths[3]);
    const auto consider = [&](const std::vector<double>& w, double e) {
      const double likelihood = Fit(w, e);
      if (likelihood <= best) return;
      best = likelihood;
      widths = w;
      noise = e;
    };
    for (const double w : kWidths) {
      for (const double e : kNoises) consider(std::vector<double>(widths.size(), w), e);
    }
    for (size_t i = 0; i < widths.size() && widths.size() > 1; ++i) {
      for (const double factor : kFactors) {
        std::vector<double> changed = widths;
        changed[i] *= factor;
        consider(changed, noise);
      }
    }
    Fit(widths, noise);
  }

  Prediction At(const std::vector<double>& position) const {
    std::vector<double> near(points_.size());
    double mean = 0;
    for (size_t i = 0; i < near.size(); ++i) {
      near[i] = Kernel(position, points_[i]->position);
      mean += near[i] * solved_[i];
    }
    SolveLower(factor_, &near);
    double variance = 1;
    for (const double v : near) variance -= v * v;
    return {mean, std::sqrt(std::max(variance, 1e-12))};
  }

 private:
  double Kernel(const std::vector<double>& a, const std::vector<double>& b) const {
    double squares = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const SearchParameter& p = space_.parameters[i];
      double d = a[i] - b[i];
      if (p.kind == SearchParameter::Kind::kChoice)
        d = p.FromUnit(a[i]) == p.FromUnit(b[i]) ? 0 : 0.5;
      squares += d * d / (widths_[i] * widths_[i]);
    }
    const double r = std::sqrt(5 * squares);
    return (1 + r + r * r / 3) * std::exp(-r);
  }

  // The logarithm of the likelihood, less a constant.
  double Fit(const std::vector<double>& widths, double noise) {
    widths_ = widths;
    factor_ = SquareMatrix(points_.size());
    for (size_t i = 0; i < points_.size(); ++i) {
      for (size_t j = 0; j <= i; ++j) {
        factor_.at(i, j) = Kernel(points_[i]->position, points_[j]->position);
      }
      factor_.at(i, i) += noise;
    }
    if (!FactorCholesky(&factor_)) return -HUGE_VAL;
    solved_ = values_;
    SolveLower(factor_, &solved_);
    double likelihood = 0;
    for (size_t i = 0; i < solved_.size(); ++i) {
      likelihood -= 0.5 * solved_[i] * solved_[i] + std::log(factor_.at(i, i));
    }
    SolveUpper(factor_, &solved_);
    return likelihood;
  }

  const SearchSpace& space_;
  const std::vector<const TrialPoint*> points_;
  const std::vector<double> values_;
  std::vector<double> widths_;  // of the kernel, by parameter
  SquareMatrix factor_;
  std::vector<double> solved_;
};

// What a point is expected to be better than `best` by.
double ExpectedImprovement(const Prediction& p, double best) {
  const double z = (best - p.mean) / p.deviation;
  const double density = std::exp(-0.5 * z * z) * 0.3989422804014327;
  return p.deviation * (z * 0.5 * std::erfc(-z * 0.7071067811865476) + density);
}

double ProbabilityOfImprovement(const Prediction& p, double best) {
  constexpr double kLeast = 0.01;  // improvement that is worth a trial
  return 0.5 * std::erfc((p.mean - best + kLeast) / p.deviation * 0.7071067811865476);
}

// The lower end of what is likely; Srinivas et al., "Gaussian process optimization in the bandit
// setting", 2010.
double LowerBound(const Prediction& p, double /*best*/) { return 1.96 * p.deviation - p.mean; }

using Acquisition = double (*)(const Prediction& p, double best);

class GaussianProcess final : public Sampler {
 public:
  // Acquisitions take turns, trial by trial.
  GaussianProcess(const SearchSpace& space, uint64_t seed, size_t from,
                  std::vector<Acquisition> acquisitions)
      : space_(space), seed_(seed), from_(from), acquisitions_(std::move(acquisitions)) {}

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override {
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    std::vector<double> best(space_.parameters.size());
    for (double& p : best) p = random.Uniform();
    if (finished.size() < from_) return best;
    const Acquisition acquisition =
        acquisitions_[static_cast<size_t>(number) % acquisitions_.size()];
    std::vector<const TrialPoint*> points = Chosen(trials, finished);
    std::vector<double> values = Warped(points);
    const double best_value = values.front();
    // What runs now is taken for middling, which keeps the next away.
    for (const TrialPoint& trial : trials) {
      if (!trial.is_running()) continue;
      points.push_back(&trial);
      values.push_back(0);
    }
    std::vector<double> from = points.front()->position;
    const Model model(space_, std::move(points), std::move(values));
    double score = acquisition(model.At(best), best_value);
    const auto consider = [&](std::vector<double> candidate) {
      const double s = acquisition(model.At(candidate), best_value);
      if (s <= score) return;
      score = s;
      best = std::move(candidate);
    };
    for (int i = 0; i < kGpCandidates; ++i) {
      std::vector<double> candidate(best.size());
      for (double& p : candidate) p = random.Uniform();
      consider(std::move(candidate));
    }
    consider(Near(from, 0.05, random));
    for (int i = 0; i < kSteps; ++i) {
      consider(Near(i % 4 == 0 ? from : best, 0.2 * std::exp2(-i / 20.0), random));
    }
    return best;
  }

 private:
  // By loss: the best half and the latest, where there are more than a model takes.
  static std::vector<const TrialPoint*> Chosen(absl::Span<const TrialPoint> trials,
                                               absl::Span<const int> finished) {
    std::vector<int> order(finished.begin(), finished.end());
    const auto by_loss = [&](int a, int b) { return trials[a].loss < trials[b].loss; };
    if (order.size() > kMostPoints) {
      const size_t latest = kMostPoints / 2;
      std::stable_sort(order.begin(), order.end() - latest, by_loss);
      order.erase(order.begin() + (kMostPoints - latest), order.end() - latest);
    }
    std::stable_sort(order.begin(), order.end(), by_loss);
    std::vector<const TrialPoint*> points;
    for (const int i : order) points.push_back(&trials[i]);
    return points;
  }

  // Losses of sorted points on a scale that one which is far off does not spoil, and on which small
  // steps near the best still count: logarithms of how far they lie above the best, with mean 0 and
  // spread 1.
  static std::vector<double> Warped(const std::vector<const TrialPoint*>& points) {
    const double best = points.front()->loss;
    const double middle = std::max(1e-300, points[points.size() / 2]->loss - best);
    std::vector<double> values;
    double mean = 0, spread = 0;
    const auto count = static_cast<double>(points.size());
    for (const TrialPoint* const p : points) {
      values.push_back(std::log1p(10 * std::min((p->loss - best) / middle, 1e100)));
      mean += values.back() / count;
    }
    for (const double v : values) spread += (v - mean) * (v - mean) / count;
    for (double& v : values) v = (v - mean) / std::sqrt(std::max(spread, 1e-12));
    return values;
  }

  std::vector<double> Near(std::vector<double> position, double width,
                           RandomNumbers& random) const {
    for (size_t i = 0; i < position.size(); ++i) {
      const bool is_choice = space_.parameters[i].kind == SearchParameter::Kind::kChoice;
      if (is_choice && random.Uniform() > width) continue;
      position[i] = is_choice ? random.Uniform()
                              : std::clamp(position[i] + width * random.Normal(), 0.0, 1.0);
    }
    return position;
  }

  const SearchSpace& space_;
  const uint64_t seed_;
  const size_t from_;
  const std::vector<Acquisition> acquisitions_;
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
