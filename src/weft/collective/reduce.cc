// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/reduce.h"

#include <algorithm>
#include <cstdint>

namespace weft::collective {
namespace {

// Elements of a share of the work that is worth a thread.
constexpr int64_t kShare = 64 << 10;
// Elements of a pass over all terms: what they take stays in the cache.
constexpr int64_t kTile = 4 << 10;

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
};
// As TensorFlow's kernels: a comparison with NaN is false.
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <typename T, typename Op>
void Combine(Op op, const T* a, const T* b, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
      out[i] = T(op(static_cast<float>(a[i]), static_cast<float>(b[i])));
    } else if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
      using Bits = std::make_unsigned_t<T>;  // sums that do not fit wrap
      if constexpr (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>) {
        out[i] = static_cast<T>(op(static_cast<Bits>(a[i]), static_cast<Bits>(b[i])));
      } else {
        out[i] = op(a[i], b[i]);
      }
    } else {
      out[i] = op(a[i], b[i]);
    }
  }
}

template <typename T, typename Op>
void ReduceRange(Op op, absl::Span<const Tensor> terms, T* out, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at += kTile) {
    const int64_t count = std::min(kTile, end - at);
    Combine(op, terms[0].data<T>() + at, terms[1].data<T>() + at, out + at, count);
    for (size_t i = 2; i < terms.size(); ++i)
      Combine(op, out + at, terms[i].data<T>() + at, out + at, count);
  }
}

template <typename T, typename Op>
void ReduceAll(Op op, absl::Span<const Tensor> terms, Tensor* out, ThreadPool* pool) {
  T* const to = out->data<T>();
  const auto body = [&](int64_t begin, int64_t end) { ReduceRange(op, terms, to, begin, end); };
  if (pool == nullptr || out->num_elements() <= kShare) {
    body(0, out->num_elements());
  } else {
    pool->ParallelFor(out->num_elements(), kShare, body);
  }
}

}  // namespace

bool CanReduce(DType dtype) {
  return VisitDType(dtype, RealNumbers(), []<typename T>() {});
}

StatusOr<Tensor> Reduce(ReductionOp op, absl::Span<const Tensor> terms, ThreadPool* pool) {
  if (terms.size() == 1) return terms[0].Clone();
  WEFT_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(terms[0].dtype(), terms[0].shape()));
  const bool known = VisitDType(out.dtype(), RealNumbers(), [&]<typename T>() {
    switch (op) {
      case ReductionOp::kSum:
        return ReduceAll<T>(Sum(), terms, &out, pool);
      case ReductionOp::kProduct:
        return ReduceAll<T>(Product(), terms, &out, pool);
      case ReductionOp::kMin:
        return ReduceAll<T>(Least(), terms, &out, pool);
      case ReductionOp::kMax:
        return ReduceAll<T>(Greatest(), terms, &out, pool);
    }
  });
  if (!known) return InvalidArgument("Cannot reduce ", DTypeName(out.dtype()));
  return out;
}

void Divide(Tensor* tensor, int count) {
  VisitDType(tensor->dtype(), RealNumbers(), [&]<typename T>() {
    T* const values = tensor->data<T>();
    for (int64_t i = 0; i < tensor->num_elements(); ++i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
        values[i] = T(static_cast<float>(values[i]) / static_cast<float>(count));
      } else if constexpr (std::is_integral_v<T>) {
        using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
        values[i] = static_cast<T>(static_cast<Wide>(values[i]) / static_cast<Wide>(count));
      } else {
        values[i] = values[i] / static_cast<T>(count);
      }
    }
  });
}

}  // namespace weft::collective
