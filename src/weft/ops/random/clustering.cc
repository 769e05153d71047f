// SPDX-License-Identifier: Apache-2.0
// First centers of clusters, drawn from the points.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/distribution_kernel.h"
#include "weft/ops/random/philox_kernel.h"

namespace weft::ops::random::clustering {
namespace {

// TensorFlow's way to take numbers one by one.
class Draws {
 public:
  explicit Draws(int64_t seed) : words_(Philox(static_cast<uint64_t>(seed), 0)) {}
  float Fraction() {
    const uint32_t word = words_.Next();
    return UniformFrom<float>(&word);
  }
  // Evenly in [0, n).
  uint64_t Below(uint64_t n) {
    if ((n & (n - 1)) == 0) return Word64() & (n - 1);
    const uint64_t uneven = ~uint64_t{0} % n + 1;
    uint64_t word;
    do {
      word = Word64();
    } while (word < uneven);
    return word % n;
  }

 private:
  uint64_t Word64() {
    const uint64_t low = words_.Next();
    return uint64_t{words_.Next()} << 32 | low;
  }
  PhiloxWords words_;
};

// Points drawn one after another with probabilities as their squared distances to the nearest one
// drawn before (k-means++: Arthur and Vassilvitskii, 2007), the best of several tries each.
class PointSampler {
 public:
  PointSampler(const Tensor& points, int64_t seed, int64_t tries)
      : points_(points.data<float>()),
        count_(points.dim(0)),
        width_(points.dim(1)),
        tries_(tries),
        draws_(seed),
        half_norms_(static_cast<size_t>(count_)),
        distances_(static_cast<size_t>(count_), std::numeric_limits<float>::infinity()),
        sums_(static_cast<size_t>(count_)),
        is_drawn_(static_cast<size_t>(count_)) {
    for (int64_t i = 0; i < count_; ++i) half_norms_[i] = 0.5f * Product(i, i);
  }

  int64_t Next() {
    if (num_drawn_ > 0) {
      float sum = 0;
      for (int64_t i = 0; i < count_; ++i) sums_[i] = sum += distances_[i];
    }
    std::vector<float> best, tried(static_cast<size_t>(count_));
    float least = std::numeric_limits<float>::infinity();
    int64_t found = 0;
    for (int64_t i = 0; i < tries_; ++i) {
      const int64_t point = Draw();
      float total = 0;
      for (int64_t p = 0; p < count_; ++p) {
        tried[p] = std::min(distances_[p], half_norms_[p] - Product(p, point) + half_norms_[point]);
        total += tried[p];
      }
      if (total < least || (best.empty() && i + 1 == tries_)) {
        least = total;
        found = point;
        best = tried;
      }
    }
    distances_ = std::move(best);
    found = std::min(found, count_ - 1);
    num_drawn_ += is_drawn_[found] ? 0 : 1;
    is_drawn_[found] = true;
    return found;
  }

 private:
  int64_t Draw() {
    if (num_drawn_ == 0) return static_cast<int64_t>(draws_.Below(static_cast<uint64_t>(count_)));
    int64_t index = 0;
    do {
      const float total = sums_.back();
      if (!(total > 0)) {
        index = static_cast<int64_t>(draws_.Below(static_cast<uint64_t>(count_)));
      } else {
        index =
            std::upper_bound(sums_.begin(), sums_.end(), draws_.Fraction() * total) - sums_.begin();
        index = std::min(index, count_ - 1);
      }
    } while (is_drawn_[index]);
    return index;
  }

  float Product(int64_t i, int64_t j) const {
    float sum = 0;
    for (int64_t d = 0; d < width_; ++d) sum += points_[i * width_ + d] * points_[j * width_ + d];
    return sum;
  }

  const float* const points_;
  const int64_t count_;
  const int64_t width_;
  const int64_t tries_;
  Draws draws_;
  std::vector<float> half_norms_;
  std::vector<float> distances_;  // half the squared ones, to the nearest point drawn
  std::vector<float> sums_;       // of the distances up to each point
  std::vector<bool> is_drawn_;
  int64_t num_drawn_ = 0;
};

class PlusPlusKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& points = c.input(0);
    if (points.rank() != 2) return InvalidArgument("Input points should be a matrix.");
    for (int i = 1; i < 4; ++i) {
      if (c.input(i).rank() == 0) continue;
      return InvalidArgument("Input ", c.call().schema().inputs[static_cast<size_t>(i)].name,
                             " should be a scalar.");
    }
    const int64_t wanted = c.input(1).scalar<int64_t>(), seed = c.input(2).scalar<int64_t>();
    if (points.dim(0) < 1) return InvalidArgument("Expected points.rows() > 0.");
    if (wanted < 1) return InvalidArgument("Expected num_to_sample > 0.");
    if (wanted > points.dim(0)) {
      return InvalidArgument("Expected num_to_sample <= points.rows(). ", wanted, " vs ",
                             points.dim(0), ".");
    }
    int64_t retries = c.input(3).scalar<int64_t>();
    if (retries < 0) retries = 2 + static_cast<int64_t>(std::log(static_cast<double>(wanted)));
    constexpr int64_t kMostRetries = 1 << 20;
    if (retries > kMostRetries) {
      return InvalidArgument("num_retries_per_sample must be at most ", kMostRetries, ", got ",
                             retries);
    }
    const int64_t width = points.dim(1);
    WEFT_ASSIGN_OR_RETURN(Tensor * samples, c.AllocateOutput(0, Shape{wanted, width}));
    PointSampler sampler(points, seed, retries + 1);
    for (int64_t i = 0; i < wanted; ++i) {
      if (c.cancellation().IsCancelled()) return c.cancellation().status();
      std::copy_n(points.data<float>() + sampler.Next() * width, width,
                  samples->data<float>() + i * width);
    }
    return absl::OkStatus();
  }
};

// A chain that goes on to the next candidate with a probability as the quotient of the distances
// (k-MC2: Bachem et al., 2016).
class ChainKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& distances = c.input(0);
    if (distances.rank() != 1) return InvalidArgument("Input distances should be a vector.");
    if (c.input(1).rank() != 0) return InvalidArgument("Input seed should be a scalar.");
    if (distances.dim(0) < 1) return InvalidArgument("Expected distances_tensor.size() > 0.");
    Draws draws(c.input(1).scalar<int64_t>());
    const float* const all = distances.data<float>();
    int64_t chosen = 0;
    for (int64_t i = 1; i < distances.dim(0); ++i) {
      if (all[i] > draws.Fraction() * all[chosen]) chosen = i;
    }
    c.SetOutput(0, Tensor::Scalar(chosen));
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("KmeansPlusPlusInitialization")
                    .Doc("Draws `num_to_sample` rows of `points` as centers, far ones rather than "
                         "near ones.\nnum_retries_per_sample: further tries for each, -1 for as "
                         "many as seems good. The same for equal seeds.")
                    .Input("points: float32")
                    .Input("num_to_sample: int64")
                    .Input("seed: int64")
                    .Input("num_retries_per_sample: int64")
                    .Output("samples: float32")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<PlusPlusKernel>()));
  catalogue.Add(OpSpec("KMC2ChainInitialization")
                    .Doc("The index that a chain over the candidates' distances ends with.")
                    .Input("distances: float32")
                    .Input("seed: int64")
                    .Output("index: int64")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ChainKernel>()));
}

}  // namespace weft::ops::random::clustering
