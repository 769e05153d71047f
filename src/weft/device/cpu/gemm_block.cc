// SPDX-License-Identifier: Apache-2.0
// Products by blocks of some rows and 2 vectors that stay in registers. Panels of b are copied when
// they are transposed or too large to be read again from where they lie, and so are rows of a that
// many panels meet.
#include "weft/device/cpu/gemm_block.h"

#include <algorithm>
#include <vector>

#include "base/vector_sets.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/device/cpu/gemm_block.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// As many as registers hold beside 2 vectors of b, so that few loads are waited for.
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 8 : 6;
constexpr int64_t kFewRows = 4;    // up to which b is read where it lies
constexpr int64_t kRowBlock = 64;  // rows of a at a time against all panels, so that they stay near
constexpr int64_t kDepth = 256;    // of a packed panel: 256 x 2 vectors lie in the nearest cache
constexpr int64_t kColumns = 512;  // of a packed block
constexpr int64_t kSmall = 64 * 64;  // elements of b below which it is read where it lies

// Rows and columns of one register block; b's rows are b_stride apart.
template <typename T>
struct Block {
  const T* a;
  int64_t a_row;    // from row to row of op(a)
  int64_t a_depth;  // from column to column of op(a)
  const T* b;
  int64_t b_stride;
  int64_t k;
  T* c;
  int64_t c_stride;
  bool add;  // to what c holds
};

// kVectors vectors wide; the last has `rest` columns, all of them unless masked.
template <int rows, int vectors, bool masked, typename D, typename T = hn::TFromD<D>>
HWY_INLINE void MultiplyBlock(D d, const Block<T>& x, int64_t rest) {
  using V = hn::Vec<D>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, static_cast<size_t>(rest));
  V sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const T* b = x.b;
  const T* a = x.a;
  for (int64_t i = 0; i < x.k; ++i, b += x.b_stride, a += x.a_depth) {
    V columns[vectors];
    for (int v = 0; v < vectors; ++v) {
      columns[v] = masked && v == vectors - 1 ? hn::MaskedLoad(mask, d, b + v * lanes)
                                              : hn::LoadU(d, b + v * lanes);
    }
    for (int r = 0; r < rows; ++r) {
      const V factor = hn::Set(d, a[r * x.a_row]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      T* c = x.c + r * x.c_stride + v * lanes;
      if (masked && v == vectors - 1) {
        if (x.add) sums[r][v] = hn::Add(sums[r][v], hn::MaskedLoad(mask, d, c));
        hn::BlendedStore(sums[r][v], mask, d, c);
      } else {
        if (x.add) sums[r][v] = hn::Add(sums[r][v], hn::LoadU(d, c));
        hn::StoreU(sums[r][v], d, c);
      }
    }
  }
}

template <int rows, typename D, typename T = hn::TFromD<D>>
void MultiplyRows(D d, const Block<T>& x, int64_t columns) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns == 2 * lanes) return MultiplyBlock<rows, 2, false>(d, x, lanes);
  if (columns > lanes) return MultiplyBlock<rows, 2, true>(d, x, columns - lanes);
  if (columns == lanes) return MultiplyBlock<rows, 1, false>(d, x, lanes);
  return MultiplyBlock<rows, 1, true>(d, x, columns);
}

// How many of `left` rows go through registers together.
HWY_INLINE int64_t RowsTogether(int64_t left) {
  return left >= kRows ? kRows : left >= 4 ? 4 : left;
}

// All rows of one panel of at most 2 vectors. Rows of a lie as x says, or are packed: together as
// they go through registers, column by column.
template <typename D, typename T = hn::TFromD<D>>
void MultiplyPanel(D d, Block<T> x, int64_t m, int64_t columns, bool is_packed) {
  for (int64_t i = 0; i < m;) {
    const int64_t rows = RowsTogether(m - i);
    if (is_packed) {
      x.a_row = 1;
      x.a_depth = rows;
    }
    switch (rows) {
      case kRows:
        MultiplyRows<kRows>(d, x, columns);
        break;
      case 4:
        MultiplyRows<4>(d, x, columns);
        break;
      case 3:
        MultiplyRows<3>(d, x, columns);
        break;
      case 2:
        MultiplyRows<2>(d, x, columns);
        break;
      default:
        MultiplyRows<1>(d, x, columns);
    }
    x.a += rows * (is_packed ? x.k : x.a_row);
    x.c += rows * x.c_stride;
    i += rows;
  }
}

// Copies m rows of op(a), whose first x.a is, as MultiplyPanel takes packed ones.
template <typename T>
void PackRows(const Block<T>& x, int64_t m, T* to) {
  for (int64_t i = 0; i < m;) {
    const int64_t rows = RowsTogether(m - i);
    const T* from = x.a + i * x.a_row;
    if (x.a_row == 1) {
      for (int64_t l = 0; l < x.k; ++l) std::copy_n(from + l * x.a_depth, rows, to + l * rows);
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t l = 0; l < x.k; ++l) to[l * rows + r] = from[r * x.a_row + l * x.a_depth];
      }
    }
    to += rows * x.k;
    i += rows;
  }
}

// Copies rows [k0, k0 + depth) and columns [j, j + columns) of op(b), one row after the other.
template <typename T>
void PackPanel(const MatrixProduct<T>& p, int64_t k0, int64_t depth, int64_t j, int64_t columns,
               int64_t width, T* to) {
  if (!p.transpose_b) {
    for (int64_t i = 0; i < depth; ++i) {
      std::copy_n(p.b + (k0 + i) * p.b_stride + j, columns, to + i * width);
    }
    return;
  }
  for (int64_t c = 0; c < columns; ++c) {
    const T* from = p.b + (j + c) * p.b_stride + k0;
    for (int64_t i = 0; i < depth; ++i) to[i * width + c] = from[i];
  }
}

// One row: wide blocks, because a single chain of sums would wait for itself.
template <int vectors, typename D, typename T = hn::TFromD<D>>
void MultiplyRow(D d, const Block<T>& x, int64_t columns) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rest = columns - (vectors - 1) * lanes;
  if constexpr (vectors > 1) {
    if (rest <= 0) return MultiplyRow<vectors - 1>(d, x, columns);
  }
  MultiplyBlock<1, vectors, true>(d, x, rest);
}

// b as it lies. Narrow ones with narrow vectors: a masked load whose hidden lanes reach into a page
// that nobody has touched costs hundreds of nanoseconds.
template <typename D, typename T = hn::TFromD<D>>
void UnpackedProduct(D d, const MatrixProduct<T>& p, Block<T> x) {
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(d));
  x.b_stride = p.b_stride;
  x.k = p.k;
  x.a = p.a;
  if (p.m == 1 && p.n > width) {
    constexpr int kWide = 8;
    const int64_t wide = kWide / 2 * width;
    for (int64_t j = 0; j < p.n; j += wide) {
      x.b = p.b + j;
      x.c = p.c + j;
      MultiplyRow<kWide>(d, x, std::min(wide, p.n - j));
    }
    return;
  }
  for (int64_t j = 0; j < p.n; j += width) {
    x.a = p.a;
    x.b = p.b + j;
    x.c = p.c + j;
    MultiplyPanel(d, x, p.m, std::min(width, p.n - j), false);
  }
}

// Few rows times a transposed b: each element is the product of two runs of memory.
template <typename D, typename T = hn::TFromD<D>>
void DotProducts(D d, const MatrixProduct<T>& p) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < p.n; ++j) {
    const T* b = p.b + j * p.b_stride;
    for (int64_t i = 0; i < p.m; ++i) {
      const T* a = p.a + i * p.a_stride;
      auto first = hn::Zero(d), second = hn::Zero(d);
      int64_t l = 0;
      for (; l + 2 * lanes <= p.k; l += 2 * lanes) {
        first = hn::MulAdd(hn::LoadU(d, a + l), hn::LoadU(d, b + l), first);
        second = hn::MulAdd(hn::LoadU(d, a + l + lanes), hn::LoadU(d, b + l + lanes), second);
      }
      T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second)));
      for (; l < p.k; ++l) sum += a[l] * b[l];
      p.c[i * p.c_stride + j] = sum;
    }
  }
}

template <typename T>
void Product(const MatrixProduct<T>& p) {
  const hn::ScalableTag<T> d;
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(d));
  Block<T> x{};
  x.a_row = p.transpose_a ? 1 : p.a_stride;
  x.a_depth = p.transpose_a ? p.a_stride : 1;
  x.c_stride = p.c_stride;
  if (!p.transpose_b && (p.k * p.n <= kSmall || p.m <= kFewRows)) {
    if (p.n <= 4) return UnpackedProduct(hn::CappedTag<T, 4>(), p, x);
    if (p.n <= 8) return UnpackedProduct(hn::CappedTag<T, 8>(), p, x);
    return UnpackedProduct(d, p, x);
  }
  if (p.transpose_b && !p.transpose_a && p.m <= kFewRows && p.k >= width) return DotProducts(d, p);
  HWY_ALIGN T small[1024];
  const int64_t padded = (std::min(kColumns, p.n) + width - 1) / width * width;
  std::vector<T> large;
  T* packed = small;
  if (padded * std::min(kDepth, p.k) > 1024) {
    large.resize(padded * std::min(kDepth, p.k));
    packed = large.data();
  }
  // Pays where each row is met by several panels.
  const bool packs_rows = p.n >= 4 * width;
  std::vector<T> rows(packs_rows ? std::min(kRowBlock, p.m) * std::min(kDepth, p.k) : 0);
  x.b_stride = width;
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    x.k = std::min(kDepth, p.k - k0);
    x.add = k0 > 0;
    for (int64_t j0 = 0; j0 < p.n; j0 += kColumns) {
      const int64_t block = std::min(kColumns, p.n - j0);
      for (int64_t j = 0; j < block; j += width) {
        PackPanel(p, k0, x.k, j0 + j, std::min(width, block - j), width, packed + j * x.k);
      }
      for (int64_t i = 0; i < p.m; i += kRowBlock) {
        const int64_t height = std::min(kRowBlock, p.m - i);
        Block<T> part = x;
        part.a = p.a + i * x.a_row + k0 * x.a_depth;
        if (packs_rows) {
          PackRows(part, height, rows.data());
          part.a = rows.data();
        }
        for (int64_t j = 0; j < block; j += width) {
          part.b = packed + j * x.k;
          part.c = p.c + i * p.c_stride + j0 + j;
          MultiplyPanel(d, part, height, std::min(width, block - j), packs_rows);
        }
      }
    }
  }
}

BlockProducts Products() { return {Product<float>, Product<double>}; }

}  // namespace
}  // namespace weft::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {
HWY_EXPORT(Products);

const BlockProducts& GetBlockProducts() {
  static const BlockProducts products = HWY_DYNAMIC_DISPATCH(Products)();
  return products;
}

}  // namespace weft
#endif
