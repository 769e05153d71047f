// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/nn/row_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vector_sets.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/ops/nn/row_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::ops::nn::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Lanes = hn::ScalableTag<T>;

// The last, partial vector of a row, filled up with `filler`.
template <typename T>
hn::VFromD<Lanes<T>> LoadTail(const T* from, int64_t n, T filler) {
  const Lanes<T> d;
  HWY_ALIGN T padded[hn::MaxLanes(Lanes<T>())];
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < lanes; ++i) padded[i] = i < n ? from[i] : filler;
  return hn::Load(d, padded);
}

template <typename T>
void StoreTail(hn::VFromD<Lanes<T>> v, int64_t n, T* to) {
  HWY_ALIGN T padded[hn::MaxLanes(Lanes<T>())];
  hn::Store(v, Lanes<T>(), padded);
  for (int64_t i = 0; i < n; ++i) to[i] = padded[i];
}

// Calls body(position, how many, load, store) for each vector of a row, the partial one last.
template <typename T, typename Body>
HWY_INLINE void ForVectors(int64_t columns, const Body& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Lanes<T>()));
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) body(i, lanes);
  if (i < columns) body(i, columns - i);
}

template <typename T>
HWY_INLINE hn::VFromD<Lanes<T>> LoadPart(const T* from, int64_t n, T filler = T(0)) {
  const Lanes<T> d;
  return n == static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, from) : LoadTail(from, n, filler);
}
template <typename T>
HWY_INLINE void StorePart(hn::VFromD<Lanes<T>> v, int64_t n, T* to) {
  const Lanes<T> d;
  if (n == static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
  } else {
    StoreTail(v, n, to);
  }
}

template <typename T>
void AddBias(const T* x, const T* bias, int64_t rows, int64_t columns, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    ForVectors<T>(columns, [&](int64_t i, int64_t n) {
      StorePart(hn::Add(LoadPart(x + i, n), LoadPart(bias + i, n)), n, y + i);
    });
  }
}

template <typename T>
void AddToSums(const T* x, int64_t rows, int64_t columns, T* sums) {
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    ForVectors<T>(columns, [&](int64_t i, int64_t n) {
      StorePart(hn::Add(LoadPart(sums + i, n), LoadPart(x + i, n)), n, sums + i);
    });
  }
}

template <typename T>
HWY_INLINE T MaxOf(const T* x, int64_t columns) {
  const Lanes<T> d;
  const T lowest = -std::numeric_limits<T>::infinity();
  auto best = hn::Set(d, lowest);
  ForVectors<T>(columns,
                [&](int64_t i, int64_t n) { best = hn::Max(best, LoadPart(x + i, n, lowest)); });
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

// y = exp(x - max), and their sum. Elements past the row count as exp(-inf) = 0.
template <typename T>
HWY_INLINE T ExpRow(const T* x, int64_t columns, T max, T* y) {
  const Lanes<T> d;
  const auto shift = hn::Set(d, max);
  auto sum = hn::Zero(d);
  ForVectors<T>(columns, [&](int64_t i, int64_t n) {
    const auto shifted = hn::Sub(LoadPart(x + i, n, -std::numeric_limits<T>::infinity()), shift);
    const auto e = hn::IfThenElse(hn::IsNaN(shifted), shifted, hn::Exp(d, shifted));
    sum = hn::Add(sum, e);
    if (y != nullptr) StorePart(e, n, y + i);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <typename T>
void Softmax(const T* x, int64_t rows, int64_t columns, T* y) {
  const Lanes<T> d;
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const auto scale = hn::Set(d, T(1) / ExpRow(x, columns, MaxOf(x, columns), y));
    ForVectors<T>(columns, [&](int64_t i, int64_t n) {
      StorePart(hn::Mul(LoadPart(y + i, n), scale), n, y + i);
    });
  }
}

template <typename T>
void LogSoftmax(const T* x, int64_t rows, int64_t columns, T* y) {
  const Lanes<T> d;
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const T max = MaxOf(x, columns);
    const T log_sum = std::log(ExpRow<T>(x, columns, max, nullptr));
    ForVectors<T>(columns, [&](int64_t i, int64_t n) {
      // In two steps: max + log_sum would lose the digits of a large max.
      const auto shifted = hn::Sub(LoadPart(x + i, n), hn::Set(d, max));
      StorePart(hn::Sub(shifted, hn::Set(d, log_sum)), n, y + i);
    });
  }
}

template <typename T>
void CrossEntropy(const T* x, const T* labels, int64_t label_step, int64_t rows, int64_t columns,
                  T* loss, T* backprop) {
  const Lanes<T> d;
  const auto zero = hn::Zero(d);
  for (int64_t r = 0; r < rows; ++r, x += columns, labels += label_step, backprop += columns) {
    const T max = MaxOf(x, columns);
    const T sum = ExpRow<T>(x, columns, max, backprop);
    const auto shift = hn::Set(d, max);
    const auto log_sum = hn::Set(d, std::log(sum));
    const auto scale = hn::Set(d, T(1) / sum);
    auto total = zero;
    ForVectors<T>(columns, [&](int64_t i, int64_t n) {
      const auto label = LoadPart(labels + i, n);
      const auto shifted = hn::Sub(LoadPart(x + i, n), shift);
      // A label of 0 contributes nothing, even where the logit is -inf.
      total = hn::Add(total, hn::IfThenZeroElse(hn::Eq(label, zero),
                                                hn::Mul(label, hn::Sub(log_sum, shifted))));
      StorePart(hn::Sub(hn::Mul(LoadPart(backprop + i, n), scale), label), n, backprop + i);
    });
    loss[r] = hn::GetLane(hn::SumOfLanes(d, total));
  }
}

template <typename T>
const RowFunctions<T>& Table() {
  static constexpr RowFunctions<T> kTable = {AddBias<T>, AddToSums<T>, Softmax<T>, LogSoftmax<T>,
                                             CrossEntropy<T>};
  return kTable;
}
const RowFunctions<float>* FloatTable() { return &Table<float>(); }
const RowFunctions<double>* DoubleTable() { return &Table<double>(); }

}  // namespace
}  // namespace weft::ops::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::ops::nn {
HWY_EXPORT(FloatTable);
HWY_EXPORT(DoubleTable);
const RowFunctions<float>& FloatRows() {
  static const RowFunctions<float>* const table = HWY_DYNAMIC_DISPATCH(FloatTable)();
  return *table;
}
const RowFunctions<double>& DoubleRows() {
  static const RowFunctions<double>* const table = HWY_DYNAMIC_DISPATCH(DoubleTable)();
  return *table;
}
}  // namespace weft::ops::nn
#endif
