// SPDX-License-Identifier: Apache-2.0
// Tensors filled with random numbers in TensorFlow's order.
#pragma once

#include <algorithm>
#include <cmath>

#include "weft/kernel/kernel_context.h"
#include "weft/ops/random/distribution_kernel.h"

namespace weft::ops {

inline constexpr uint64_t kReservedPerOutput =
    256;                                 // steps, and words that a rejecting distribution may use
inline constexpr int64_t kGrain = 2048;  // groups of numbers that one thread should at least make

// The shape that an op takes as a vector.
inline StatusOr<Shape> ShapeOf(const Tensor& t) {
  if (t.rank() != 1) {
    return InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                           t.shape().ToString());
  }
  Dims dims;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    dims.push_back(t.dtype() == DType::kInt32 ? t.data<int32_t>()[i] : t.data<int64_t>()[i]);
  }
  return Shape::Make(dims);
}

// Groups of numbers: group i starts i * kStepsPerGroup steps into the reservation, so that threads
// do not change the result.
struct Uniform {
  template <typename T>
  static constexpr uint64_t kStepsPerGroup = 1;
  template <typename T>
  static void Group(const Philox& start, T* out) {
    Philox generator = start;
    const Philox::Words words = generator.Next();
    for (int i = 0; i < kPerStep<T>; ++i) out[i] = UniformFrom<T>(&words[i * (4 / kPerStep<T>)]);
  }
};
struct Normal {
  template <typename T>
  static constexpr uint64_t kStepsPerGroup = 1;
  template <typename T>
  static void Group(const Philox& start, T* out) {
    using N = NormalType<T>;
    Philox generator = start;
    const Philox::Words words = generator.Next();
    N pair[2];
    for (int i = 0; i < kPerStep<T>; i += 2) {
      NormalPair<N>(&words[i], pair);
      out[i] = T(pair[0]);
      out[i + 1] = T(pair[1]);
    }
  }
};
struct Truncated {
  template <typename T>
  static constexpr uint64_t kStepsPerGroup = kPerStep<T>* kReservedPerOutput / 4;
  template <typename T>
  static void Group(const Philox& start, T* out) {
    using N = NormalType<T>;
    PhiloxWords words(start);
    constexpr int kWords = sizeof(N) == 8 ? 4 : 2;
    for (int made = 0; made < kPerStep<T>;) {
      uint32_t drawn[kWords];
      for (uint32_t& word : drawn) word = words.Next();
      N pair[2];
      NormalPair<N>(drawn, pair);
      for (const N value : pair) {
        if (std::abs(value) < N(2) && made < kPerStep<T>) out[made++] = T(value);
      }
    }
  }
};

// Calls make_group(i, to) for each group of `out`. Ends with the step's word where that was
// cancelled: billions of numbers take a while.
template <typename T, typename MakeGroup>
Status FillGroups(KernelContext& c, Tensor& out, MakeGroup make_group) {
  const int64_t n = out.num_elements();
  T* values = out.data<T>();
  constexpr int kGroup = kPerStep<T>;
  const Cancellation* const cancellation = c.environment().cancellation;
  constexpr int64_t kBetweenLooks = 16 * kGrain;
  c.ParallelFor((n + kGroup - 1) / kGroup, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      if (group % kBetweenLooks == 0 && cancellation != nullptr && cancellation->IsCancelled()) {
        return;
      }
      const int64_t at = group * kGroup;
      if (at + kGroup <= n) {
        make_group(group, values + at);
      } else {
        T rest[kGroup];
        make_group(group, rest);
        std::copy_n(rest, n - at, values + at);
      }
    }
  });
  return cancellation != nullptr ? cancellation->status() : absl::OkStatus();
}

// Fills `out`, of floats, from `start` on.
template <typename Distribution>
Status FillReals(KernelContext& c, const Philox& start, Tensor& out) {
  Status filled;
  VisitDType(out.dtype(), RealFloats(), [&]<typename T>() {
    filled = FillGroups<T>(c, out, [&](int64_t group, T* to) {
      Philox generator = start;
      generator.Skip(group * Distribution::template kStepsPerGroup<T>);
      Distribution::template Group<T>(generator, to);
    });
  });
  return filled;
}

// The same with integers of [low, low + range).
template <typename T>
Status FillIntegers(KernelContext& c, const Philox& start, T low, std::make_unsigned_t<T> range,
                    Tensor& out) {
  using U = std::make_unsigned_t<T>;
  return FillGroups<T>(c, out, [&](int64_t group, T* to) {
    Philox generator = start;
    generator.Skip(group);
    const Philox::Words words = generator.Next();
    for (int i = 0; i < kPerStep<T>; ++i) {
      U word = static_cast<U>(words[i]);
      if constexpr (sizeof(T) == 8) word = words[2 * i] | uint64_t{words[2 * i + 1]} << 32;
      to[i] = static_cast<T>(static_cast<U>(low) + word % range);
    }
  });
}

}  // namespace weft::ops
