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
#include "weft/ops/element_updates.h"

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

// First elements of the variables, `begin` elements on.
template <typename Rule, typename T>
void PlaceVariables(const UpdateCall& call, int64_t begin, T* (&variables)[Rule::kVariables]) {
  for (int k = 0; k < Rule::kVariables; ++k) {
    variables[k] = reinterpret_cast<T*>(call.variables[k]) + begin;
  }
}

template <typename Rule, typename T, typename Index>
void UpdateRows(const Rule& rule, const UpdateCall& call) {
  constexpr int64_t kMinElements = 64 << 10;
  RowUpdates<T, Index, Rule::kVariables> rows;
  PlaceVariables<Rule, T>(call, 0, rows.variables);
  rows.gradient = reinterpret_cast<const T*>(call.gradient);
  rows.indices = call.indices->data<Index>();
  rows.num_rows = call.row_size > 0 ? call.indices->num_elements() : 0;
  rows.row_size = call.row_size;
  const int64_t wanted = rows.num_rows * call.row_size / kMinElements;
  rows.num_shards = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(wanted, 1, 16))));
  call.context->ParallelFor(rows.num_shards, 1, [&](int64_t begin, int64_t end) {
    for (int64_t shard = begin; shard < end; ++shard) {
      UpdateRowsOf<Rule, T, Index>(shard, rule, rows);
    }
  });
}

template <typename R, typename T>
void UpdateBy(const R& rule, const UpdateCall& call) {
  constexpr int64_t kMinBlock = 16 << 10;
  if (call.indices == nullptr) {
    const T* const gradient = reinterpret_cast<const T*>(call.gradient);
    call.context->ParallelFor(call.num_elements, kMinBlock, [&](int64_t begin, int64_t end) {
      T* variables[R::kVariables];
      PlaceVariables<R, T>(call, begin, variables);
      UpdateRange<R, T>(rule, variables, gradient + begin, end - begin);
    });
  } else if (call.indices->dtype() == DType::kInt32) {
    UpdateRows<R, T, int32_t>(rule, call);
  } else {
    UpdateRows<R, T, int64_t>(rule, call);
  }
}

// The update of one call, for elements of type T; `Rule<C>` computes in C. A rule whose Usual() is
// set has a simpler one for what its scalars say.
template <template <typename> typename Rule, typename T>
void Update(const UpdateCall& call) {
  using R = Rule<ComputeType<T>>;
  const R rule(call);
  if constexpr (requires { rule.Usual(); }) {
    if (const auto usual = rule.Usual()) return UpdateBy<typename R::UsualRule, T>(*usual, call);
  }
  UpdateBy<R, T>(rule, call);
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
