// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/scatter_kernel.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/state/variable_kernel.h"

namespace weft::ops::state {
namespace {

constexpr int64_t kMinElements = 64 << 10;  // that a thread should get

template <typename T>
T Divide(T a, T b) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    if (b == T(-1)) return WrappingSubtract(T(0), a);
  }
  return static_cast<T>(a / b);
}

// Runs `body(i)` for each i with a slice; those of one slice on one thread, in order.
template <typename Body>
void ForEachSlice(const KernelContext& c, const std::vector<int64_t>& slices, int64_t slice_size,
                  const Body& body) {
  const auto count = static_cast<int64_t>(slices.size());
  const int64_t shards = std::clamp<int64_t>(count * slice_size / kMinElements, 1, 16);
  c.ParallelFor(shards, 1, [&](int64_t begin, int64_t end) {
    for (int64_t shard = begin; shard < end; ++shard) {
      for (int64_t i = 0; i < count; ++i) {
        if (slices[i] >= 0 && slices[i] % shards == shard) body(i);
      }
    }
  });
}

template <typename T, typename Function>
void Combine(const KernelContext& c, const std::vector<int64_t>& slices, int64_t slice_size,
             const Tensor& updates, Tensor& target, Function function) {
  const bool is_scalar = updates.shape().IsScalar();
  const T* const from = updates.data<T>();
  T* const to = target.data<T>();
  ForEachSlice(c, slices, slice_size, [&](int64_t i) {
    T* const out = to + slices[i] * slice_size;
    if (is_scalar) {
      const T value = *from;
      for (int64_t j = 0; j < slice_size; ++j) out[j] = function(out[j], value);
    } else {
      const T* const in = from + i * slice_size;
      for (int64_t j = 0; j < slice_size; ++j) out[j] = function(out[j], in[j]);
    }
  });
}

void Replace(const KernelContext& c, const std::vector<int64_t>& slices, int64_t slice_size,
             const Tensor& updates, Tensor& target) {
  const bool is_scalar = updates.shape().IsScalar();
  VisitElement(target.dtype(), [&]<typename T>() {
    const T* const from = updates.bits<T>();
    T* const to = target.bits<T>();
    ForEachSlice(c, slices, slice_size, [&](int64_t i) {
      T* const out = to + slices[i] * slice_size;
      if (is_scalar) {
        std::fill_n(out, slice_size, *from);
      } else {
        CopyElements(from + i * slice_size, slice_size, out);
      }
    });
  });
}

template <typename T>
Status CombineTyped(const KernelContext& c, ScatterRule rule, const std::vector<int64_t>& slices,
                    int64_t slice_size, const Tensor& updates, Tensor& target) {
  const auto combine = [&](auto function) {
    Combine<T>(c, slices, slice_size, updates, target, function);
    return absl::OkStatus();
  };
  if constexpr (!std::is_same_v<T, bool>) {
    if (rule == ScatterRule::kMultiply) {
      return combine([](T a, T b) { return WrappingMultiply(a, b); });
    }
    if (rule == ScatterRule::kDivide) {
      if constexpr (std::is_integral_v<T>) {
        const absl::Span<const T> divisors = updates.span<T>();
        if (std::find(divisors.begin(), divisors.end(), T(0)) != divisors.end()) {
          return InvalidArgument("Integer division by zero");
        }
      }
      return combine([](T a, T b) { return Divide(a, b); });
    }
    if constexpr (!std::is_same_v<T, Complex64> && !std::is_same_v<T, Complex128>) {
      if (rule == ScatterRule::kMinimum) return combine([](T a, T b) { return b < a ? b : a; });
      if (rule == ScatterRule::kMaximum) return combine([](T a, T b) { return a < b ? b : a; });
    }
  }
  if (rule == ScatterRule::kAdd) return combine([](T a, T b) { return WrappingAdd(a, b); });
  return combine([](T a, T b) { return WrappingSubtract(a, b); });
}

}  // namespace

std::vector<DType> TypesOf(ScatterRule rule) {
  switch (rule) {
    case ScatterRule::kMinimum:
    case ScatterRule::kMaximum:
      return DTypesOf(RealNumbers{});
    case ScatterRule::kUpdate: {
      std::vector<DType> all;
      for (int i = 1; i < kNumDTypes; ++i) all.push_back(static_cast<DType>(i));
      return all;
    }
    default:
      return DTypesOf(Numbers{});
  }
}

Status CombineSlices(const KernelContext& c, ScatterRule rule, const std::vector<int64_t>& slices,
                     int64_t slice_size, const Tensor& updates, Tensor& target) {
  if (slices.empty() || slice_size == 0) return absl::OkStatus();
  if (rule == ScatterRule::kUpdate) {
    Replace(c, slices, slice_size, updates, target);
    return absl::OkStatus();
  }
  Status status;
  const auto typed = [&]<typename T>() {
    status = CombineTyped<T>(c, rule, slices, slice_size, updates, target);
  };
  if (target.dtype() == DType::kBool) {
    typed.operator()<bool>();
  } else {
    VisitDType(target.dtype(), Numbers{}, typed);
  }
  return status;
}

}  // namespace weft::ops::state
