// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/array/strided_kernel.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "weft/ops/elements.h"

namespace weft::ops::array {
namespace {

constexpr int64_t kBlock = 16;  // of a transposed square: 16 lines of each side stay in L1
constexpr int64_t kParallelBytes = 64 << 10;  // least work worth another thread

// Drops sizes of 1 and joins neighbours that are walked as one.
void Simplify(StridedCopy* copy) {
  size_t kept = 0;
  for (size_t i = 0; i < copy->sizes.size(); ++i) {
    const int64_t size = copy->sizes[i];
    if (size == 1) continue;
    if (kept > 0 && copy->source_strides[kept - 1] == copy->source_strides[i] * size &&
        copy->target_strides[kept - 1] == copy->target_strides[i] * size) {
      copy->sizes[kept - 1] *= size;
      copy->source_strides[kept - 1] = copy->source_strides[i];
      copy->target_strides[kept - 1] = copy->target_strides[i];
      continue;
    }
    copy->sizes[kept] = size;
    copy->source_strides[kept] = copy->source_strides[i];
    copy->target_strides[kept] = copy->target_strides[i];
    ++kept;
  }
  copy->sizes.resize(kept);
  copy->source_strides.resize(kept);
  copy->target_strides.resize(kept);
}

// Moves the dimension along which the source is dense next to the last one, so that both together
// make the squares of a transposition.
void MoveDenseSource(StridedCopy* copy) {
  const size_t rank = copy->sizes.size();
  if (rank < 2 || copy->source_strides[rank - 1] == 1) return;
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (copy->source_strides[i] != 1) continue;
    for (IndexVector* v : {&copy->sizes, &copy->source_strides, &copy->target_strides}) {
      std::rotate(v->begin() + i, v->begin() + i + 1, v->begin() + rank - 1);
    }
    return;
  }
}

template <typename T>
void CopyRow(const T* source, int64_t source_stride, int64_t n, T* target, int64_t target_stride) {
  if (target_stride == 1 && source_stride == 1) {
    // Short rows: a call to memcpy costs more than the bytes.
    if (n <= 4) {
      for (int64_t i = 0; i < n; ++i) target[i] = source[i];
    } else {
      CopyElements(source, n, target);
    }
  } else if (target_stride == 1 && source_stride == 0) {
    std::fill_n(target, n, *source);
  } else {
    for (int64_t i = 0; i < n; ++i) target[i * target_stride] = source[i * source_stride];
  }
}

// Transposes a full block whose rows in the source, and in the target, lie `source_stride` and
// `target_stride` apart.
template <typename T>
void TransposeBlock(const T* source, int64_t source_stride, T* target, int64_t target_stride) {
  T lines[kBlock][kBlock];
  for (int64_t k = 0; k < kBlock; ++k) {
    for (int64_t r = 0; r < kBlock; ++r) lines[r][k] = source[k * source_stride + r];
  }
  for (int64_t r = 0; r < kBlock; ++r) {
    std::memcpy(target + r * target_stride, lines[r], sizeof(lines[r]));
  }
}

template <typename T>
void CopySquare(const T* source, T* target, int64_t rows, int64_t columns,
                const int64_t* source_strides, const int64_t* target_strides) {
  const bool is_plain = source_strides[0] == 1 && target_strides[1] == 1;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = std::min(rows, r0 + kBlock);
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t c1 = std::min(columns, c0 + kBlock);
      if constexpr (std::is_trivially_copyable_v<T>) {
        if (is_plain && r1 - r0 == kBlock && c1 - c0 == kBlock) {
          TransposeBlock(source + r0 + c0 * source_strides[1], source_strides[1],
                         target + r0 * target_strides[0] + c0, target_strides[0]);
          continue;
        }
      }
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t k = c0; k < c1; ++k) {
          target[r * target_strides[0] + k * target_strides[1]] =
              source[r * source_strides[0] + k * source_strides[1]];
        }
      }
    }
  }
}

// Runs the outer dimensions [0, outer_rank) from flat position `begin` to `end`, calling
// `inner(source offset, target offset)` at each.
template <typename Inner>
void Walk(const StridedCopy& copy, size_t outer_rank, int64_t begin, int64_t end,
          const Inner& inner) {
  IndexVector at(outer_rank);
  int64_t source = copy.source_offset;
  int64_t target = copy.target_offset;
  int64_t rest = begin;
  for (size_t i = outer_rank; i-- > 0;) {
    at[i] = rest % copy.sizes[i];
    rest /= copy.sizes[i];
    source += at[i] * copy.source_strides[i];
    target += at[i] * copy.target_strides[i];
  }
  for (int64_t position = begin; position < end; ++position) {
    inner(source, target);
    for (size_t i = outer_rank; i-- > 0;) {
      source += copy.source_strides[i];
      target += copy.target_strides[i];
      if (++at[i] < copy.sizes[i]) break;
      source -= copy.sizes[i] * copy.source_strides[i];
      target -= copy.sizes[i] * copy.target_strides[i];
      at[i] = 0;
    }
  }
}

template <typename T>
void CopyTyped(const KernelContext& c, const StridedCopy& copy, const T* source, T* target) {
  const size_t rank = copy.sizes.size();
  if (rank == 0) {
    target[copy.target_offset] = source[copy.source_offset];
    return;
  }
  const bool squares = rank >= 2 && copy.source_strides[rank - 1] != 1 &&
                       copy.source_strides[rank - 1] != 0 && copy.source_strides[rank - 2] == 1;
  const size_t outer_rank = squares ? rank - 2 : rank - 1;
  int64_t outer = 1;
  int64_t inner = 1;
  for (size_t i = 0; i < rank; ++i) (i < outer_rank ? outer : inner) *= copy.sizes[i];
  const int64_t* sizes = copy.sizes.data() + outer_rank;
  const int64_t* source_strides = copy.source_strides.data() + outer_rank;
  const int64_t* target_strides = copy.target_strides.data() + outer_rank;
  if (squares && outer == 1) {
    const int64_t rows = std::max<int64_t>(
        1, kParallelBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(1, sizes[1]));
    c.ParallelFor(sizes[0], rows, [&](int64_t begin, int64_t end) {
      CopySquare(source + copy.source_offset + begin * source_strides[0],
                 target + copy.target_offset + begin * target_strides[0], end - begin, sizes[1],
                 source_strides, target_strides);
    });
    return;
  }
  const int64_t min_block =
      std::max<int64_t>(1, kParallelBytes / static_cast<int64_t>(sizeof(T)) / inner);
  c.ParallelFor(outer, min_block, [&](int64_t begin, int64_t end) {
    Walk(copy, outer_rank, begin, end, [&](int64_t from, int64_t to) {
      if (squares) {
        CopySquare(source + from, target + to, sizes[0], sizes[1], source_strides, target_strides);
      } else {
        CopyRow(source + from, source_strides[0], sizes[0], target + to, target_strides[0]);
      }
    });
  });
}

}  // namespace

void StridedCopy::MakeTargetDense() {
  target_strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    target_strides[i] = stride;
    stride *= sizes[i];
  }
}

IndexVector StridesOf(const Shape& shape) {
  IndexVector strides(shape.rank());
  int64_t stride = 1;
  for (int i = shape.rank(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape.dim(i);
  }
  return strides;
}

void Copy(const KernelContext& c, StridedCopy copy, const Tensor& source, Tensor* target) {
  for (int64_t size : copy.sizes) {
    if (size == 0) return;
  }
  Simplify(&copy);
  MoveDenseSource(&copy);
  VisitElement(source.dtype(),
               [&]<typename T>() { CopyTyped<T>(c, copy, source.bits<T>(), target->bits<T>()); });
}

}  // namespace weft::ops::array
