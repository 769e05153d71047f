// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "absl/functional/function_ref.h"

namespace weft::collective {
namespace {

// Elements of a share of the work that is worth a thread.
constexpr int64_t kShare = 64 << 10;
// Elements of a pass over all terms: what they take stays in the cache.
constexpr int64_t kTile = 4 << 10;
// Bytes of a share of a copy.
constexpr int64_t kCopyShare = 1 << 20;
// From so many bytes on, nobody finds what was written in a cache.
constexpr size_t kStreamed = 8 << 20;

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

template <typename T>
void DivideRange(T* values, int64_t size, int count) {
  for (int64_t i = 0; i < size; ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
      values[i] = T(static_cast<float>(values[i]) / static_cast<float>(count));
    } else if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      values[i] = static_cast<T>(static_cast<Wide>(values[i]) / static_cast<Wide>(count));
    } else {
      values[i] = values[i] / static_cast<T>(count);
    }
  }
}

// Past the caches: for what is larger than these.
void StreamCopy(std::byte* to, const std::byte* from, size_t size) {
#if defined(__SSE2__)
  const size_t front = std::min(size, (16 - reinterpret_cast<uintptr_t>(to) % 16) % 16);
  std::memcpy(to, from, front);
  size_t at = front;
  for (; at + 16 <= size; at += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
  std::memcpy(to + at, from + at, size - at);
  _mm_sfence();
#else
  std::memcpy(to, from, size);
#endif
}

template <typename T, typename Op>
void ReduceTile(Op op, absl::Span<const Tensor> terms, int divisor, T* out, int64_t at,
                int64_t count) {
  Combine(op, terms[0].data<T>() + at, terms[1].data<T>() + at, out, count);
  for (size_t i = 2; i < terms.size(); ++i) Combine(op, out, terms[i].data<T>() + at, out, count);
  if (divisor > 1) DivideRange(out, count, divisor);
}

template <typename T, typename Op>
void ReduceRange(Op op, absl::Span<const Tensor> terms, int divisor, T* out, int64_t begin,
                 int64_t end, bool streams) {
  alignas(64) std::byte tile[kTile * sizeof(T)];
  for (int64_t at = begin; at < end; at += kTile) {
    const int64_t count = std::min(kTile, end - at);
    if (!streams) {
      ReduceTile(op, terms, divisor, out + at, at, count);
      continue;
    }
    ReduceTile(op, terms, divisor, reinterpret_cast<T*>(tile), at, count);
    StreamCopy(reinterpret_cast<std::byte*>(out + at), tile,
               static_cast<size_t>(count) * sizeof(T));
  }
}

void Share(int64_t size, int64_t share, ThreadPool* pool,
           absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (pool == nullptr || size <= share) return body(0, size);
  pool->ParallelFor(size, share, body);
}

template <typename T, typename Op>
void ReduceAll(Op op, absl::Span<const Tensor> terms, int divisor, ThreadPool* pool, Tensor* out) {
  T* const to = out->data<T>();
  const bool streams = out->size_bytes() >= kStreamed;
  Share(out->num_elements(), kShare, pool, [&](int64_t begin, int64_t end) {
    ReduceRange(op, terms, divisor, to, begin, end, streams);
  });
}

}  // namespace

bool CanReduce(DType dtype) {
  return VisitDType(dtype, RealNumbers(), []<typename T>() {});
}

StatusOr<Tensor> Reduce(ReductionOp op, absl::Span<const Tensor> terms, ThreadPool* pool) {
  if (terms.size() == 1) return terms[0].Clone();
  WEFT_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(terms[0].dtype(), terms[0].shape()));
  WEFT_RETURN_IF_ERROR(ReduceInto(op, terms, /*divisor=*/1, pool, &out));
  return out;
}

Status ReduceInto(ReductionOp op, absl::Span<const Tensor> terms, int divisor, ThreadPool* pool,
                  Tensor* out) {
  const bool known = VisitDType(out->dtype(), RealNumbers(), [&]<typename T>() {
    switch (op) {
      case ReductionOp::kSum:
        return ReduceAll<T>(Sum(), terms, divisor, pool, out);
      case ReductionOp::kProduct:
        return ReduceAll<T>(Product(), terms, divisor, pool, out);
      case ReductionOp::kMin:
        return ReduceAll<T>(Least(), terms, divisor, pool, out);
      case ReductionOp::kMax:
        return ReduceAll<T>(Greatest(), terms, divisor, pool, out);
    }
  });
  if (!known) return InvalidArgument("Cannot reduce ", DTypeName(out->dtype()));
  return absl::OkStatus();
}

void CopyInto(const Tensor& from, ThreadPool* pool, Tensor* to) {
  std::byte* const target = to->bytes();
  const std::byte* const source = from.bytes();
  Share(static_cast<int64_t>(from.size_bytes()), kCopyShare, pool, [&](int64_t begin, int64_t end) {
    const auto size = static_cast<size_t>(end - begin);
    if (from.size_bytes() >= kStreamed) {
      StreamCopy(target + begin, source + begin, size);
    } else {
      std::memcpy(target + begin, source + begin, size);
    }
  });
}

void Divide(Tensor* tensor, int count) {
  VisitDType(tensor->dtype(), RealNumbers(),
             [&]<typename T>() { DivideRange(tensor->data<T>(), tensor->num_elements(), count); });
}

}  // namespace weft::collective
