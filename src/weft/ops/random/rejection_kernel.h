// SPDX-License-Identifier: Apache-2.0
// Distributions of one number for each parameter, whose samples reject a varying number of draws.
#pragma once

#include "weft/kernel/kernel_context.h"
#include "weft/ops/random/distribution_kernel.h"
#include "weft/ops/random/fill_kernel.h"

namespace weft::ops {

// Uniform numbers from a generator, two a step, the second one first, as TensorFlow takes them.
class UniformPairs {
 public:
  explicit UniformPairs(Philox* generator) : generator_(generator) {}
  double Next() {
    if (left_ == 0) {
      const Philox::Words words = generator_->Next();
      pair_[0] = UniformFrom<double>(&words[0]);
      pair_[1] = UniformFrom<double>(&words[2]);
      left_ = 2;
    }
    return pair_[--left_];
  }

 private:
  Philox* const generator_;
  double pair_[2] = {};
  int left_ = 0;
};

// The same of normal numbers.
class NormalPairs {
 public:
  explicit NormalPairs(Philox* generator) : generator_(generator) {}
  double Next() {
    if (left_ == 0) {
      const Philox::Words words = generator_->Next();
      NormalPair<double>(words.data(), pair_);
      left_ = 2;
    }
    return pair_[--left_];
  }

 private:
  Philox* const generator_;
  double pair_[2] = {};
  int left_ = 0;
};

// One number of the gamma distribution with this alpha and scale 1 (Marsaglia and Tsang, 2000).
double DrawGamma(double alpha, Philox generator);
// One of the Poisson distribution, at most `most`: by products of uniform numbers for small rates
// (Knuth), else by transformed rejection (Hoermann, 1993).
double DrawPoisson(double rate, double most, Philox generator);

// Fills out[sample, parameter] for `num_parameters` parameters. Each number has draws of its own,
// so that threads do not change the result; draw(parameter, generator) makes one.
template <typename T, typename Draw>
void FillSamples(const KernelContext& c, int64_t num_parameters, const Philox& start, Tensor* out,
                 const Draw& draw) {
  if (num_parameters == 0 || out->num_elements() == 0) return;
  const int64_t samples = out->num_elements() / num_parameters;
  c.ParallelFor(out->num_elements(), 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t parameter = i / samples;
      Philox generator = start;
      generator.Skip(kReservedPerOutput * static_cast<uint64_t>(i));
      out->data<T>()[(i % samples) * num_parameters + parameter] =
          static_cast<T>(draw(parameter, generator));
    }
  });
}

}  // namespace weft::ops
