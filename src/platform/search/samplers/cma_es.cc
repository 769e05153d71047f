// SPDX-License-Identifier: Apache-2.0
// Evolution strategy whose normal distribution learns the shape of the valley, from what is worse
// too. Hansen, "The CMA evolution strategy: a tutorial", 2016; restarts with twice the population,
// Auger and Hansen, 2005. Of several draws that one is tried which a model of the trials nearby
// holds for the best: Ulmer, Streichert and Zell, "Evolution strategies assisted by Gaussian
// processes with improved preselection criterion", 2003.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "platform/search/gaussian_model.h"
#include "platform/search/linear_algebra.h"
#include "platform/search/random_numbers.h"
#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kFirstStep = 1.0 / 6;
constexpr double kLeastStep = 1e-5;  // of a range: smaller ones begin anew elsewhere
// Fewer draws leave much of the model unused, more make the strategy as sure as the model is.
constexpr int kDrawn = 8;
constexpr double kWidth = 2;  // of the model's kernel, in standard deviations, by the root of n
constexpr double kNoise = 1e-3;
constexpr size_t kModelFrom = 3;
constexpr size_t kModelled = 20, kModelledEach = 4;  // trials in the model, and more by parameter

class CmaEs final : public Sampler {
 public:
  CmaEs(const SearchSpace& space, uint64_t seed)
      : n_(space.parameters.size()),
        seed_(seed),
        covariance_(n_),
        model_(std::vector<bool>(n_, false)) {
    Begin(4 + static_cast<size_t>(3 * std::log(static_cast<double>(n_))));
  }

  StatusOr<NextPoint> Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                              absl::Span<const int> finished) override {
    for (; used_ + population_ <= finished.size(); used_ += taken_) {
      taken_ = population_;
      Learn(trials, finished.subspan(used_, taken_));
    }
    RandomNumbers random(seed_, static_cast<uint64_t>(number));
    if (finished.size() <= std::max(n_, kModelFrom)) return Draw(random);
    Model(trials, finished);
    Position best;
    double least = HUGE_VAL;
    for (int i = 0; i < kDrawn; ++i) {
      Position drawn = Draw(random);
      const double mean = model_.At(Round(drawn)).mean;
      if (mean >= least) continue;
      least = mean;
      best = std::move(drawn);
    }
    return best;
  }

 private:
  Position Draw(RandomNumbers& random) const {
    Position normal(n_), position(n_);
    for (double& z : normal) z = random.Normal();
    for (size_t i = 0; i < n_; ++i) {
      double sum = 0;
      for (size_t j = 0; j < n_; ++j) sum += vectors_.at(i, j) * scales_[j] * normal[j];
      position[i] = Reflect(mean_[i] + step_ * sum);
    }
    return position;
  }

  // In coordinates where the distribution is round, with deviations of 1.
  Position Round(const Position& position) const {
    Position round(n_, 0);
    for (size_t j = 0; j < n_; ++j) {
      for (size_t i = 0; i < n_; ++i) round[j] += vectors_.at(i, j) * (position[i] - mean_[i]);
      round[j] /= scales_[j] * step_;
    }
    return round;
  }

  // Learns the ranks of the trials nearest to the mean; of the latest, as the distribution moves
  // on.
  void Model(absl::Span<const TrialPoint> trials, absl::Span<const int> finished) {
    if (modelled_ == finished.size()) return;
    modelled_ = finished.size();
    const size_t most = kModelled + kModelledEach * n_;
    struct Known {
      Position round;
      double distance = 0, loss = 0;
    };
    std::vector<Known> near;
    for (const int i : finished.last(std::min(finished.size(), 4 * most))) {
      Known known{Round(trials[i].position), 0, trials[i].loss};
      for (const double v : known.round) known.distance += v * v;
      near.push_back(std::move(known));
    }
    std::stable_sort(near.begin(), near.end(),
                     [](const Known& a, const Known& b) { return a.distance < b.distance; });
    near.resize(std::min(near.size(), most));
    std::stable_sort(near.begin(), near.end(),
                     [](const Known& a, const Known& b) { return a.loss < b.loss; });
    // Logarithms of the ranks, so that the best ones stand far apart, with mean 0 and spread 1.
    const auto count = static_cast<double>(near.size());
    std::vector<const Position*> points;
    std::vector<double> values;
    double mean = 0, spread = 0;
    for (const Known& known : near) {
      values.push_back(std::log((static_cast<double>(points.size()) + 0.5) / count));
      mean += values.back() / count;
      points.push_back(&known.round);
    }
    for (const double v : values) spread += (v - mean) * (v - mean) / count;
    for (double& v : values) v = (v - mean) / std::sqrt(spread);
    const double width = kWidth * std::sqrt(static_cast<double>(n_));
    model_.SetShape({std::vector<double>(n_, width), kNoise});
    model_.SetPoints(points, values);
  }

  void Begin(size_t population) {
    population_ = population;
    weights_.resize(population);
    double sum = 0, squares = 0, below = 0, below_squares = 0;
    for (size_t i = 0; i < population; ++i) {
      double& w = weights_[i];
      w = std::log((static_cast<double>(population) + 1) / 2) -
          std::log(static_cast<double>(i) + 1);
      (w > 0 ? sum : below) += std::abs(w);
      (w > 0 ? squares : below_squares) += w * w;
    }
    const auto n = static_cast<double>(n_);
    effective_ = sum * sum / squares;
    step_decay_ = (effective_ + 2) / (n + effective_ + 5);
    step_damping_ = 1 + step_decay_ + 2 * std::max(0.0, std::sqrt((effective_ - 1) / (n + 1)) - 1);
    path_decay_ = (4 + effective_ / n) / (n + 4 + 2 * effective_ / n);
    rank_one_ = 2 / ((n + 1.3) * (n + 1.3) + effective_);
    rank_many_ = std::min(1 - rank_one_,
                          2 * (effective_ - 2 + 1 / effective_) / ((n + 2) * (n + 2) + effective_));
    const double below_effective = below * below / below_squares;
    const double share =
        std::min({1 + rank_one_ / rank_many_, 1 + 2 * below_effective / (effective_ + 2),
                  (1 - rank_one_ - rank_many_) / (n * rank_many_)});
    for (double& w : weights_) w *= w > 0 ? 1 / sum : share / below;
    expected_ = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
    step_ = kFirstStep;
    mean_.assign(n_, 0.5);
    if (restarts_ > 0) {
      RandomNumbers random(seed_ ^ 0x4e57a47u, restarts_);
      for (double& m : mean_) m = random.Uniform();
    }
    ++restarts_;
    step_path_.assign(n_, 0);
    path_.assign(n_, 0);
    covariance_ = SquareMatrix::Identity(n_);
    vectors_ = SquareMatrix::Identity(n_);
    scales_.assign(n_, 1);
    generation_ = 0;
  }

  void Learn(absl::Span<const TrialPoint> trials, absl::Span<const int> ended) {
    std::vector<int> order(ended.begin(), ended.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return trials[a].loss < trials[b].loss; });
    // Moves from the mean, in steps: the better half draws it.
    std::vector<std::vector<double>> moves(weights_.size(), std::vector<double>(n_));
    std::vector<double> move(n_, 0);
    double all_weights = 0;
    for (size_t k = 0; k < moves.size(); ++k) {
      for (size_t i = 0; i < n_; ++i) {
        moves[k][i] = (trials[order[k]].position[i] - mean_[i]) / step_;
        move[i] += std::max(0.0, weights_[k]) * moves[k][i];
      }
      all_weights += weights_[k];
    }
    const std::vector<double> weights = BoundedWeights(moves);
    for (size_t i = 0; i < n_; ++i) mean_[i] = std::clamp(mean_[i] + step_ * move[i], 0.0, 1.0);
    ++generation_;
    // The path of the step size, in coordinates where the distribution is round.
    std::vector<double> along(n_, 0);
    for (size_t j = 0; j < n_; ++j) {
      for (size_t i = 0; i < n_; ++i) along[j] += vectors_.at(i, j) * move[i] / scales_[j];
    }
    double length = 0;
    for (size_t i = 0; i < n_; ++i) {
      double round = 0;
      for (size_t j = 0; j < n_; ++j) round += vectors_.at(i, j) * along[j];
      step_path_[i] = (1 - step_decay_) * step_path_[i] +
                      std::sqrt(step_decay_ * (2 - step_decay_) * effective_) * round;
      length += step_path_[i] * step_path_[i];
    }
    length = std::sqrt(length);
    const auto n = static_cast<double>(n_);
    const bool moves_on = length / std::sqrt(1 - std::pow(1 - step_decay_, 2 * generation_)) <
                          (1.4 + 2 / (n + 1)) * expected_;
    for (size_t i = 0; i < n_; ++i) {
      path_[i] = (1 - path_decay_) * path_[i] +
                 (moves_on ? std::sqrt(path_decay_ * (2 - path_decay_) * effective_) * move[i] : 0);
    }
    const double old = 1 - rank_one_ - rank_many_ * all_weights +
                       (moves_on ? 0 : rank_one_ * path_decay_ * (2 - path_decay_));
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) {
        double many = 0;
        for (size_t k = 0; k < moves.size(); ++k) many += weights[k] * moves[k][i] * moves[k][j];
        covariance_.at(i, j) =
            old * covariance_.at(i, j) + rank_one_ * path_[i] * path_[j] + rank_many_ * many;
      }
    }
    step_ = std::min(0.5, step_ * std::exp(step_decay_ / step_damping_ * (length / expected_ - 1)));
    std::vector<double> values;
    Diagonalize(covariance_, &values, &vectors_);
    for (size_t i = 0; i < n_; ++i) scales_[i] = std::sqrt(std::max(values[i], 1e-14));
    const double widest = *std::max_element(scales_.begin(), scales_.end());
    const double narrowest = *std::min_element(scales_.begin(), scales_.end());
    if (step_ * widest < kLeastStep || widest > 1e7 * narrowest) Begin(2 * population_);
  }

  // Weights for the covariance: a bad move counts less the longer it is, so that the covariance
  // stays positive.
  std::vector<double> BoundedWeights(const std::vector<std::vector<double>>& moves) const {
    std::vector<double> weights = weights_;
    for (size_t k = 0; k < weights.size(); ++k) {
      if (weights[k] >= 0) continue;
      double length = 0;
      for (size_t j = 0; j < n_; ++j) {
        double along = 0;
        for (size_t i = 0; i < n_; ++i) along += vectors_.at(i, j) * moves[k][i] / scales_[j];
        length += along * along;
      }
      weights[k] *= static_cast<double>(n_) / std::max(length, 1e-12);
    }
    return weights;
  }

  const size_t n_;
  const uint64_t seed_;
  size_t population_ = 0;
  size_t taken_ = 0;  // by the last generation
  size_t used_ = 0;   // finished trials that the distribution has learned from
  uint64_t restarts_ = 0;
  int generation_ = 0;
  std::vector<double> weights_;  // by rank; of the worse half negative
  double effective_ = 0, step_decay_ = 0, step_damping_ = 0, path_decay_ = 0, rank_one_ = 0,
         rank_many_ = 0, expected_ = 0;
  double step_ = 0;
  std::vector<double> mean_, step_path_, path_, scales_;
  SquareMatrix covariance_, vectors_{0};
  GaussianModel model_;
  size_t modelled_ = 0;  // how many had finished then
};

}  // namespace

MadeSampler MakeCmaEs(const SearchSpace& space, const SamplerOptions& options) {
  return std::make_unique<CmaEs>(space, options.seed);
}

}  // namespace weft::platform
