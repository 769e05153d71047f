// SPDX-License-Identifier: Apache-2.0
// Optimizers, weft's and those of op libraries: an optimizer is a rule for one element and a
// description of its inputs. From both come ApplyX, ResourceApplyX, SparseApplyX and
// ResourceSparseApplyX: one pass over memory, in place, all variables of the call locked.
//
//   template <typename C>  // what it computes in: Rounded<T> for 16-bit types
//   struct Lion {
//     static constexpr int kVariables = 2;
//     explicit Lion(const UpdateCall& call) : lr(call.Scalar<C>(0)) {}
//     void operator()(C& var, C& m, C grad) const { ... }
//     const C lr;
//   };
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/rounded.h"

namespace weft::rules {

inline constexpr int kMostVariables = 4;
inline constexpr int kMostScalars = 8;

enum class Bound { kNone, kPositive, kNonNegative, kNonPositive };

// A scalar input of an optimizer, and what it must be.
struct ScalarInput {
  std::string name;
  Bound bound = Bound::kNone;
};

// One call of an update: addresses of the variables' elements, the gradient's, and the scalars.
struct UpdateCall {
  const KernelContext* context = nullptr;
  std::array<std::byte*, kMostVariables> variables = {};
  const std::byte* gradient = nullptr;
  std::array<const Tensor*, kMostScalars> scalars = {};
  bool flag = false;                // the op's own attribute, such as use_nesterov
  int64_t num_elements = 0;         // of a dense gradient
  const Tensor* indices = nullptr;  // rows of a sparse one, in range
  int64_t row_size = 0;

  // Scalar i, whatever its type.
  template <typename C>
  C Scalar(int i) const {
    const Tensor& scalar = *scalars[i];
    C value{};
    VisitDType(scalar.dtype(),
               TypeList<float, double, Half, Bfloat16, int64_t, Complex64, Complex128>{},
               [&]<typename T>() {
                 if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
                   value = static_cast<C>(static_cast<float>(scalar.scalar<T>()));
                 } else if constexpr (std::is_constructible_v<C, T>) {
                   value = static_cast<C>(scalar.scalar<T>());
                 }
               });
    return value;
  }
};

using UpdateFunction = void (*)(const UpdateCall&);

struct OptimizerDescription {
  std::string name;           // "Adam"
  std::string documentation;  // the update as a formula
  std::vector<std::string> variables;
  std::vector<ScalarInput> scalars;  // in order of inputs
  int gradient_position = 0;         // how many scalars come before the gradient
  std::string gradient = "grad";
  std::string sparse_gradient = "grad";
  std::string flag;  // "use_nesterov: bool = false", or nothing
  bool has_reference_form = true;
  bool has_dense_form = true;
  std::vector<std::pair<DType, UpdateFunction>> dense;
  std::vector<std::pair<DType, UpdateFunction>> sparse;  // empty: no sparse form
};

// Adds the optimizer's ops to the catalogue.
void RegisterOptimizer(Catalogue& catalogue, const OptimizerDescription& optimizer);

// What a value of storage type T is computed in.
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>, Rounded<T>, T>;

// Runs `rule(variable values..., gradient)` on elements [begin, end).
template <typename Rule, typename T, size_t... I>
[[gnu::always_inline]] inline void UpdateElements(const Rule& rule,
                                                  T* const (&variables)[sizeof...(I)],
                                                  const T* gradient, int64_t n,
                                                  std::index_sequence<I...>) {
  using C = ComputeType<T>;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C values[] = {static_cast<C>(variables[I][i])...};
    rule(values[I]..., static_cast<C>(gradient[i]));
    ((variables[I][i] = static_cast<T>(values[I])), ...);
  }
}

template <typename Rule, typename T>
void UpdateRangePortable(const Rule& rule, T* const (&variables)[Rule::kVariables],
                         const T* gradient, int64_t n) {
  UpdateElements(rule, variables, gradient, n, std::make_index_sequence<Rule::kVariables>());
}

#if defined(__x86_64__)
template <typename Rule, typename T>
[[gnu::target("avx2")]] void UpdateRangeAvx2(const Rule& rule,
                                             T* const (&variables)[Rule::kVariables],
                                             const T* gradient, int64_t n) {
  UpdateElements(rule, variables, gradient, n, std::make_index_sequence<Rule::kVariables>());
}
#endif

// Elements [begin, begin + n) of the variables; the gradient starts at its own first element.
template <typename Rule, typename T>
void UpdateRange(const Rule& rule, const UpdateCall& call, const T* gradient, int64_t begin,
                 int64_t n) {
  T* variables[Rule::kVariables];
  for (int k = 0; k < Rule::kVariables; ++k) {
    variables[k] = reinterpret_cast<T*>(call.variables[k]) + begin;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    UpdateRangeAvx2<Rule, T>(rule, variables, gradient, n);
    return;
  }
#endif
  UpdateRangePortable<Rule, T>(rule, variables, gradient, n);
}

// Rows with one index keep their order, so that repeated indices give what a plain loop gives.
// Rows of large variables lie anywhere: they are asked for while those before them are updated.
template <typename Rule, typename T, typename Index>
void UpdateRows(const Rule& rule, const UpdateCall& call) {
  constexpr int64_t kMinElements = 64 << 10;
  const Index* const indices = call.indices->data<Index>();
  const int64_t num_rows = call.indices->num_elements();
  const T* const gradient = reinterpret_cast<const T*>(call.gradient);
  constexpr int64_t kAhead = 8;
  const int64_t wanted = num_rows * call.row_size / kMinElements;
  const auto shards = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(wanted, 1, 16))));
  call.context->ParallelFor(shards, 1, [&](int64_t begin, int64_t end) {
    for (int64_t shard = begin; shard < end; ++shard) {
      for (int64_t i = 0; i < num_rows; ++i) {
        const int64_t later = static_cast<int64_t>(indices[std::min(i + kAhead, num_rows - 1)]);
        for (int k = 0; k < Rule::kVariables && (later & (shards - 1)) == shard; ++k) {
          const T* const values = reinterpret_cast<const T*>(call.variables[k]);
          ops::PrefetchElements<true>(values + later * call.row_size, call.row_size);
        }
        const int64_t row = static_cast<int64_t>(indices[i]);
        if ((row & (shards - 1)) != shard) continue;
        UpdateRange<Rule, T>(rule, call, gradient + i * call.row_size, row * call.row_size,
                             call.row_size);
      }
    }
  });
}

// The update of one call, for elements of type T; `Rule<C>` computes in C.
template <template <typename> typename Rule, typename T>
void Update(const UpdateCall& call) {
  constexpr int64_t kMinBlock = 16 << 10;
  using R = Rule<ComputeType<T>>;
  const R rule(call);
  if (call.indices == nullptr) {
    const T* const gradient = reinterpret_cast<const T*>(call.gradient);
    call.context->ParallelFor(call.num_elements, kMinBlock, [&](int64_t begin, int64_t end) {
      UpdateRange<R, T>(rule, call, gradient + begin, begin, end - begin);
    });
  } else if (call.indices->dtype() == DType::kInt32) {
    UpdateRows<R, T, int32_t>(rule, call);
  } else {
    UpdateRows<R, T, int64_t>(rule, call);
  }
}

// Update functions of a rule for each type of a list.
template <template <typename> typename Rule, typename... Ts>
std::vector<std::pair<DType, UpdateFunction>> UpdatesFor(TypeList<Ts...>) {
  return {{DTypeOf<Ts>, &Update<Rule, Ts>}...};
}

// The types that optimizers of each kind are registered for in TensorFlow.
using FloatsAndComplex = TypeList<float, double, Half, Bfloat16, Complex64, Complex128>;
using FloatAndDouble = TypeList<float, double>;

}  // namespace weft::rules
