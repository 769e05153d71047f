// SPDX-License-Identifier: Apache-2.0
#include "platform/search/gaussian_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "platform/search/descent.h"

namespace weft::platform {
namespace {

constexpr double kSquareOfOthers = 0.25;  // between two different choices
constexpr double kNarrowest = 0.02, kWidest = 30;
constexpr double kLeastNoise = 1e-6, kMostNoise = 0.5;
// What is held likely of a width before anything is known, on a logarithmic scale: the more
// parameters, the less each of them alone. Hvarfner, Hellsten and Nardi, "Vanilla Bayesian
// optimization performs great in high dimensions", 2024, with a narrower prior.
constexpr double kUsualWidth = 0.5;
constexpr double kWidthSpread = 1.2;
constexpr double kUsualNoise = 1e-4;
constexpr double kNoiseSpread = 3;
constexpr double kTriedWidths[] = {0.4, 1, 2.5};  // of the usual one
constexpr double kTriedNoises[] = {1e-5, 1e-2};
constexpr int kShapeEvaluations = 18;
// The function's variance is held near that of the values until there are many.
constexpr double kPriorPoints = 2;

// Matern's kernel at a squared distance.
double Matern(double squared) {
  const double r = std::sqrt(5 * squared);
  return (1 + r + 5.0 / 3 * squared) * std::exp(-r);
}

// Twice how it falls with the squared distance.
double MaternFall(double squared) {
  const double r = std::sqrt(5 * squared);
  return 5.0 / 3 * (1 + r) * std::exp(-r);
}

double Square(double x) { return x * x; }

}  // namespace

GaussianModel::GaussianModel(const std::vector<bool>& is_choice) {
  for (size_t d = 0; d < is_choice.size(); ++d) (is_choice[d] ? choices_ : numbers_).push_back(d);
}

void GaussianModel::SetShape(KernelShape shape) {
  shape_ = std::move(shape);
  scales_.clear();
  for (const double width : shape_.widths) scales_.push_back(1 / width);
  factor_.Truncate(0);
}

Position GaussianModel::Scaled(const Position& position) const {
  Position scaled = position;
  for (size_t d = 0; d < scaled.size(); ++d) scaled[d] *= scales_[d];
  return scaled;
}

double GaussianModel::SquaredDistance(const double* a, const double* b) const {
  double sum = 0;
  for (const size_t d : numbers_) sum += Square(a[d] - b[d]);
  for (const size_t d : choices_) {
    if (a[d] != b[d]) sum += kSquareOfOthers * Square(scales_[d]);
  }
  return sum;
}

bool GaussianModel::Extend(size_t kept) {
  const size_t n = points_.size(), dimensions = scales_.size();
  factor_.Truncate(kept);
  factor_.Reserve(n);
  scaled_.resize(kept * dimensions);
  for (size_t i = kept; i < n; ++i) {
    const Position scaled = Scaled(points_[i]);
    scaled_.insert(scaled_.end(), scaled.begin(), scaled.end());
    double* const row = factor_.row(i);
    for (size_t j = 0; j < i; ++j) {
      row[j] = Matern(SquaredDistance(scaled.data(), &scaled_[j * dimensions]));
    }
    row[i] = 1 + shape_.noise;
  }
  return factor_.Factor(n);
}

void GaussianModel::SetPoints(const std::vector<const Position*>& positions,
                              const std::vector<double>& values) {
  size_t kept = 0;
  while (kept < positions.size() && kept < points_.size() && *positions[kept] == points_[kept]) {
    ++kept;
  }
  points_.resize(kept);
  for (size_t i = kept; i < positions.size(); ++i) points_.push_back(*positions[i]);
  values_ = values;
  // Points too close together for this little noise.
  while (!Extend(std::min(kept, factor_.size()))) {
    shape_.noise *= 10;
    kept = 0;
  }
  Solve();
}

void GaussianModel::Solve() {
  const size_t n = values_.size();
  std::vector<double> ones(n, 1);
  solved_ = values_;
  factor_.SolveLower(ones.data());
  factor_.SolveLower(solved_.data());
  // A prior of mean 0 and of the variance of one point.
  double weight = 1, sum = 0;
  for (size_t i = 0; i < n; ++i) {
    weight += ones[i] * ones[i];
    sum += ones[i] * solved_[i];
  }
  mean_ = sum / weight;
  double squares = kPriorPoints + mean_ * mean_;
  for (size_t i = 0; i < n; ++i) {
    solved_[i] -= mean_ * ones[i];
    squares += solved_[i] * solved_[i];
  }
  variance_ = squares / (static_cast<double>(n) + kPriorPoints);
  factor_.SolveUpper(solved_.data());
}

Prediction GaussianModel::At(const Position& position, PredictionSlope* slope) const {
  const size_t n = points_.size(), dimensions = scales_.size();
  const Position scaled = Scaled(position);
  std::vector<double> near(n), squares(n);
  double mean = mean_;
  for (size_t i = 0; i < n; ++i) {
    squares[i] = SquaredDistance(scaled.data(), &scaled_[i * dimensions]);
    near[i] = Matern(squares[i]);
    mean += near[i] * solved_[i];
  }
  factor_.SolveLower(near.data());
  double variance = 1;
  for (const double v : near) variance -= v * v;
  variance = std::max(variance, 1e-10);
  const Prediction prediction{mean, std::sqrt(variance * variance_)};
  if (slope == nullptr) return prediction;
  factor_.SolveUpper(near.data());
  slope->mean.assign(dimensions, 0);
  slope->deviation.assign(dimensions, 0);
  for (size_t i = 0; i < n; ++i) {
    const double fall = MaternFall(squares[i]);
    for (const size_t d : numbers_) {
      const double change = -fall * (scaled[d] - scaled_[i * dimensions + d]) * scales_[d];
      slope->mean[d] += change * solved_[i];
      slope->deviation[d] -= change * near[i];
    }
  }
  for (double& v : slope->deviation) v *= variance_ / prediction.deviation;
  return prediction;
}

std::vector<Prediction> GaussianModel::AtEach(absl::Span<const Position> positions) const {
  constexpr size_t kTogether = CholeskyFactor::kTogether;
  const size_t n = points_.size(), dimensions = scales_.size();
  std::vector<Prediction> predictions(positions.size());
  std::vector<double> near(n * kTogether);
  for (size_t from = 0; from < positions.size(); from += kTogether) {
    const size_t count = std::min(kTogether, positions.size() - from);
    double means[kTogether] = {}, variances[kTogether] = {};
    std::fill(near.begin(), near.end(), 0);
    for (size_t c = 0; c < count; ++c) {
      const Position scaled = Scaled(positions[from + c]);
      for (size_t i = 0; i < n; ++i) {
        const double k = Matern(SquaredDistance(scaled.data(), &scaled_[i * dimensions]));
        near[i * kTogether + c] = k;
        means[c] += k * solved_[i];
      }
    }
    factor_.SolveLowerTogether(near.data());
    for (size_t i = 0; i < n; ++i) {
      for (size_t c = 0; c < kTogether; ++c) variances[c] += Square(near[i * kTogether + c]);
    }
    for (size_t c = 0; c < count; ++c) {
      const double variance = std::max(1 - variances[c], 1e-10);
      predictions[from + c] = {mean_ + means[c], std::sqrt(variance * variance_)};
    }
  }
  return predictions;
}

// Adds the slope of the likelihood's logarithm, less the sign, by the logarithms of the widths and
// of the noise.
void GaussianModel::AddSlope(const SquareMatrix& inverse, std::vector<double>* slope) const {
  const size_t n = points_.size(), dimensions = scales_.size();
  std::vector<double>& out = *slope;
  for (size_t i = 0; i < n; ++i) {
    const double* const a = &scaled_[i * dimensions];
    for (size_t j = 0; j < i; ++j) {
      const double* const b = &scaled_[j * dimensions];
      const double weight = inverse.at(i, j) - solved_[i] * solved_[j] / variance_;
      const double fall = weight * MaternFall(SquaredDistance(a, b));
      for (const size_t d : numbers_) out[d] += fall * Square(a[d] - b[d]);
      for (const size_t d : choices_) {
        if (a[d] != b[d]) out[d] += fall * kSquareOfOthers * Square(scales_[d]);
      }
    }
    out[dimensions] +=
        0.5 * shape_.noise * (inverse.at(i, i) - solved_[i] * solved_[i] / variance_);
  }
}

// Of the shape whose widths and noise have these logarithms: how unlikely it makes the values, and
// is itself.
double GaussianModel::Likelihood(const std::vector<double>& logarithms,
                                 std::vector<double>* slope) {
  const size_t dimensions = this->dimensions();
  KernelShape shape;
  for (size_t d = 0; d < dimensions; ++d) shape.widths.push_back(std::exp(logarithms[d]));
  shape.noise = std::exp(logarithms[dimensions]);
  const double usual_width =
      std::log(kUsualWidth) + 0.5 * std::log(static_cast<double>(dimensions));
  SetShape(std::move(shape));
  if (slope != nullptr) slope->assign(dimensions + 1, 0);
  if (!Extend(0)) return HUGE_VAL;
  Solve();
  const auto n = static_cast<double>(points_.size());
  double unlikely = 0.5 * (n + kPriorPoints) * std::log(variance_);
  for (size_t i = 0; i < points_.size(); ++i) unlikely += std::log(factor_.row(i)[i]);
  for (size_t d = 0; d <= dimensions; ++d) {
    const bool is_width = d < dimensions;
    const double off = logarithms[d] - (is_width ? usual_width : std::log(kUsualNoise));
    const double spread = is_width ? kWidthSpread : kNoiseSpread;
    unlikely += 0.5 * Square(off / spread);
    if (slope != nullptr) (*slope)[d] += off / (spread * spread);
  }
  if (slope != nullptr) AddSlope(factor_.Inverse(), slope);
  return unlikely;
}

KernelShape GaussianModel::FindShape(const std::vector<const Position*>& positions,
                                     const std::vector<double>& values) {
  const size_t dimensions = this->dimensions();
  points_.clear();
  for (const Position* const position : positions) points_.push_back(*position);
  values_ = values;
  const double usual = kUsualWidth * std::sqrt(static_cast<double>(dimensions));
  std::vector<double> best(dimensions + 1, std::log(usual));
  best[dimensions] = std::log(kUsualNoise);
  double least = HUGE_VAL;
  for (const double width : kTriedWidths) {
    for (const double noise : kTriedNoises) {
      std::vector<double> tried(dimensions + 1, std::log(width * usual));
      tried[dimensions] = std::log(noise);
      const double unlikely = Likelihood(tried, nullptr);
      if (unlikely >= least) continue;
      least = unlikely;
      best = tried;
    }
  }
  std::vector<double> low(dimensions + 1, std::log(kNarrowest));
  std::vector<double> high(dimensions + 1, std::log(kWidest));
  low[dimensions] = std::log(kLeastNoise);
  high[dimensions] = std::log(kMostNoise);
  if (least < HUGE_VAL) {
    (void)Descend([&](const auto& at, auto* slope) { return Likelihood(at, slope); }, low, high,
                  kShapeEvaluations, &best);
  }
  KernelShape shape;
  for (size_t d = 0; d < dimensions; ++d) shape.widths.push_back(std::exp(best[d]));
  shape.noise = std::exp(best[dimensions]);
  return shape;
}

}  // namespace weft::platform
