// SPDX-License-Identifier: Apache-2.0
// What is believed of a function after it was tried at some points: a Gaussian process with
// Matern's kernel (5/2). Rasmussen and Williams, "Gaussian processes for machine learning", 2006.
#pragma once

#include <vector>

#include "absl/types/span.h"

#include "platform/search/linear_algebra.h"

namespace weft::platform {

// How far the function's values at two points have to do with each other.
struct KernelShape {
  std::vector<double> widths;  // by parameter
  double noise = 1e-4;         // as a part of the function's variance
};

struct Prediction {
  double mean = 0;
  double deviation = 1;
};

// How a prediction changes with each coordinate.
struct PredictionSlope {
  std::vector<double> mean;
  std::vector<double> deviation;
};

using Position = std::vector<double>;

// Not thread-safe. Positions have one coordinate in [0, 1] for each parameter; two of a choice are
// the same or they are not.
class GaussianModel {
 public:
  explicit GaussianModel(const std::vector<bool>& is_choice);

  // The most likely shape for values at positions, at least one. The work grows with the cube of
  // their number.
  KernelShape FindShape(const std::vector<const Position*>& positions,
                        const std::vector<double>& values);

  // Begins anew with a shape.
  void SetShape(KernelShape shape);
  // What is known: values at positions, at least one. Those that begin as the last ones did cost
  // little.
  void SetPoints(const std::vector<const Position*>& positions, const std::vector<double>& values);

  Prediction At(const Position& position, PredictionSlope* slope = nullptr) const;
  std::vector<Prediction> AtEach(absl::Span<const Position> positions) const;

 private:
  size_t dimensions() const { return numbers_.size() + choices_.size(); }
  double SquaredDistance(const double* a, const double* b) const;
  bool Extend(size_t kept);
  // What fits best: the constant that values vary about and their variance.
  void Solve();
  double Likelihood(const std::vector<double>& logarithms, std::vector<double>* slope);
  void AddSlope(const SquareMatrix& inverse, std::vector<double>* slope) const;
  Position Scaled(const Position& position) const;

  std::vector<size_t> numbers_, choices_;  // parameters that are one or the other
  KernelShape shape_;
  std::vector<double> scales_;  // one by the width
  std::vector<Position> points_;
  std::vector<double> scaled_;  // the points in widths, one after the other
  std::vector<double> values_;
  CholeskyFactor factor_;
  double mean_ = 0, variance_ = 1;
  std::vector<double> solved_;  // inverse of the kernel's matrix times values less the mean
};

}  // namespace weft::platform
