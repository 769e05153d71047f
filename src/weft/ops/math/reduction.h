// SPDX-License-Identifier: Apache-2.0
// One kind of reduction of one type: loops, the value to start from, and what is done at the end.
#pragma once

#include <algorithm>
#include <cmath>

#include "weft/ops/math/reduce_loop.h"

namespace weft::ops {

// How the accumulators become outputs: `reduced` is how many elements each stands for.
using FinishFunction = void (*)(const std::byte* accumulators, int64_t n, int64_t reduced,
                                std::byte* out);

struct Reduction {
  ReduceLoops loops;
  // Fills accumulators with the start value.
  void (*start)(std::byte* accumulators, int64_t n);
  // *accumulator = join(*accumulator, partial[0], ...)
  void (*join)(const std::byte* partial, int64_t n, std::byte* accumulator);
  FinishFunction finish;
  DType accumulator;
  // The input itself is the result when nothing is joined.
  bool is_identity_alone = true;
};

// What is done with a total at the end.
struct Plain {
  template <typename A>
  static A Apply(A total, int64_t) {
    return total;
  }
};
struct Average {
  template <typename A>
  static A Apply(A total, int64_t count) {
    if constexpr (kIsInteger<A>) {
      const A divisor = static_cast<A>(count);
      return divisor == 0 ? A(0) : DivOf::Apply<A>(total, divisor);
    } else if constexpr (kIsComplex<A>) {
      return total / static_cast<typename A::value_type>(count);
    } else {
      return total / static_cast<A>(count);
    }
  }
};
struct Root {
  template <typename A>
  static A Apply(A total, int64_t) {
    if constexpr (kIsInteger<A>)
      return static_cast<A>(std::sqrt(static_cast<double>(total)));
    else
      return std::sqrt(total);
  }
};

template <typename R, typename T>
typename R::template Acc<T> Start() {
  if constexpr (requires { R::template StartOf<T>(); }) {
    return R::template StartOf<T>();
  } else {
    return R::template Start<typename R::template Acc<T>>();
  }
}

template <typename R, typename Finish, typename T>
Reduction MakeReduction() {
  using A = typename R::template Acc<T>;
  Reduction reduction;
  reduction.loops = MakeReduceLoops<R, T>();
  reduction.start = [](std::byte* accumulators, int64_t n) {
    std::fill_n(reinterpret_cast<A*>(accumulators), n, Start<R, T>());
  };
  reduction.join = [](const std::byte* partial, int64_t n, std::byte* accumulator) {
    A& total = *reinterpret_cast<A*>(accumulator);
    for (int64_t i = 0; i < n; ++i) {
      total = R::Join::template Apply<A>(total, reinterpret_cast<const A*>(partial)[i]);
    }
  };
  reduction.finish = [](const std::byte* accumulators, int64_t n, int64_t count, std::byte* out) {
    const A* totals = reinterpret_cast<const A*>(accumulators);
    T* results = reinterpret_cast<T*>(out);
    if constexpr (std::is_same_v<Finish, Plain> && std::is_same_v<A, T>) {
      if (results == totals) return;
    }
    for (int64_t i = 0; i < n; ++i) {
      results[i] = static_cast<T>(Finish::template Apply<A>(totals[i], count));
    }
  };
  reduction.accumulator = DTypeOf<A>;
  reduction.is_identity_alone = !std::is_same_v<Finish, Root>;
  return reduction;
}

}  // namespace weft::ops
