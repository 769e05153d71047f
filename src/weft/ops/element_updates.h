// SPDX-License-Identifier: Apache-2.0
// The loops of optimizers (ops/optimizer_rule.h): a rule applied to elements in a row, and to rows
// that lie anywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weft/ops/elements.h"
#include "weft/ops/rounded.h"

namespace weft::rules {

// What a value of storage type T is computed in.
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>, Rounded<T>, T>;

// Runs `rule(variable values..., gradient)` on n elements.
template <typename Rule, typename T, size_t... I>
[[gnu::always_inline]] inline void UpdateElements(const Rule& rule,
                                                  T* const (&variables)[sizeof...(I)],
                                                  const T* gradient, int64_t n,
                                                  std::index_sequence<I...>) {
  using C = ComputeType<T>;
  const Rule own = rule;  // which no element can change
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C values[] = {static_cast<C>(variables[I][i])...};
    own(values[I]..., static_cast<C>(gradient[i]));
    ((variables[I][i] = static_cast<T>(values[I])), ...);
  }
}

// Rows of variables, each with its row of the gradient. Of several shards one takes the rows whose
// index ends in its number: rows with one index keep their order, so that repeated indices give
// what a plain loop gives.
template <typename T, typename Index, int kVariables>
struct RowUpdates {
  T* variables[kVariables];  // their first elements
  const T* gradient;
  const Index* indices;
  int64_t num_rows;
  int64_t row_size;
  int64_t num_shards;  // a power of two

  int64_t Row(int64_t i) const { return static_cast<int64_t>(indices[i]); }
  bool IsOf(int64_t shard, int64_t row) const { return (row & (num_shards - 1)) == shard; }
  // Rows of large variables lie anywhere: they are asked for while those before them are updated.
  void AskFor(int64_t i, int64_t shard) const {
    if (i >= num_rows || !IsOf(shard, Row(i))) return;
    for (T* const values : variables) {
      ops::PrefetchElements<true>(values + Row(i) * row_size, row_size);
    }
  }
};

template <typename Rule, typename T, typename Index>
[[gnu::always_inline]] inline void UpdateShard(const Rule& rule,
                                               const RowUpdates<T, Index, Rule::kVariables>& rows,
                                               int64_t shard) {
  constexpr int64_t kAhead = 8;
  const Rule own = rule;  // which no element can change
  for (int64_t i = 0; i < rows.num_rows; ++i) {
    rows.AskFor(i + kAhead, shard);
    const int64_t row = rows.Row(i);
    if (!rows.IsOf(shard, row)) continue;
    T* variables[Rule::kVariables];
    for (int k = 0; k < Rule::kVariables; ++k) {
      variables[k] = rows.variables[k] + row * rows.row_size;
    }
    UpdateElements(own, variables, rows.gradient + i * rows.row_size, rows.row_size,
                   std::make_index_sequence<Rule::kVariables>());
  }
}

#if defined(__x86_64__)
template <typename Rule, typename T>
[[gnu::target("avx2")]] void UpdateRangeAvx2(const Rule& rule,
                                             T* const (&variables)[Rule::kVariables],
                                             const T* gradient, int64_t n) {
  UpdateElements(rule, variables, gradient, n, std::make_index_sequence<Rule::kVariables>());
}
template <typename Rule, typename T, typename Index>
[[gnu::target("avx2")]] void UpdateShardAvx2(const Rule& rule,
                                             const RowUpdates<T, Index, Rule::kVariables>& rows,
                                             int64_t shard) {
  UpdateShard<Rule, T, Index>(rule, rows, shard);
}
#endif

// n elements of the variables and of the gradient.
template <typename Rule, typename T>
void UpdateRange(const Rule& rule, T* const (&variables)[Rule::kVariables], const T* gradient,
                 int64_t n) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    UpdateRangeAvx2<Rule, T>(rule, variables, gradient, n);
    return;
  }
#endif
  UpdateElements(rule, variables, gradient, n, std::make_index_sequence<Rule::kVariables>());
}

// The rows of one shard.
template <typename Rule, typename T, typename Index>
void UpdateRowsOf(int64_t shard, const Rule& rule,
                  const RowUpdates<T, Index, Rule::kVariables>& rows) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    UpdateShardAvx2<Rule, T, Index>(rule, rows, shard);
    return;
  }
#endif
  UpdateShard<Rule, T, Index>(rule, rows, shard);
}

}  // namespace weft::rules
