// SPDX-License-Identifier: Apache-2.0
// Products by blocks of some rows and 2 vectors that stay in registers. Columns of b are taken in
// panels as wide as a block, and copied where they are transposed or too many to be read again from
// where they lie. Each element is summed up in the order of k, whichever way is taken, but for up
// to four rows times a transposed b: the same product has the same bits on any number of threads.
#include "weft/device/cpu/gemm_block.h"

#include <algorithm>
#include <memory>
#include <new>

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
constexpr int64_t kDepth = 256;    // of a panel at a time: 256 x 2 vectors lie in the nearest cache
constexpr int64_t kColumns = 512;  // of b that are copied before many rows meet them
// Of few rows: b's bytes that no near cache holds, the columns that are read side by side of some
// of its rows, and the fewest that are worth it.
constexpr int64_t kStreamedBytes = 768 << 10;
constexpr int64_t kRun = 2048;
constexpr int kSideBySide = 8;
constexpr int64_t kFewestInRun = 256;
constexpr int64_t kNarrowDepth = 1024;  // of up to 8 columns that are read where they lie

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
  bool add;      // to what c holds, from the first element on
  bool add_sum;  // to what c holds, at the end
  T* copy;       // where Reading::kCopies leaves what it has read of b, for further rows
};

// How b is read: where it lies, the same with a copy left behind, or packed and padded.
enum class Reading { kInPlace, kCopies, kPacked };

// `vectors` wide; the last has `rest` columns, all of them unless masked.
template <int rows, int vectors, bool masked, Reading reading, typename D,
          typename T = hn::TFromD<D>>
HWY_INLINE void MultiplyBlock(D d, const Block<T>& x, int64_t rest) {
  constexpr bool copies = reading == Reading::kCopies;
  constexpr bool masks_b = masked && reading != Reading::kPacked;
  using V = hn::Vec<D>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, static_cast<size_t>(rest));
  V sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      const T* c = x.c + r * x.c_stride + v * lanes;
      if (!x.add) {
        sums[r][v] = hn::Zero(d);
      } else {
        sums[r][v] = masked && v == vectors - 1 ? hn::MaskedLoad(mask, d, c) : hn::LoadU(d, c);
      }
    }
  }
  const T* b = x.b;
  const T* a = x.a;
  T* copy = x.copy;
  for (int64_t i = 0; i < x.k; ++i, b += x.b_stride, a += x.a_depth) {
    V columns[vectors];
    for (int v = 0; v < vectors; ++v) {
      columns[v] = masks_b && v == vectors - 1 ? hn::MaskedLoad(mask, d, b + v * lanes)
                                               : hn::LoadU(d, b + v * lanes);
      if constexpr (copies) hn::StoreU(columns[v], d, copy + v * lanes);
    }
    if constexpr (copies) copy += 2 * lanes;
    for (int r = 0; r < rows; ++r) {
      const V factor = hn::Set(d, a[r * x.a_row]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      T* c = x.c + r * x.c_stride + v * lanes;
      if (x.add_sum) {
        const bool is_masked = masked && v == vectors - 1;
        sums[r][v] = hn::Add(is_masked ? hn::MaskedLoad(mask, d, c) : hn::LoadU(d, c), sums[r][v]);
      }
      if (masked && v == vectors - 1) {
        hn::BlendedStore(sums[r][v], mask, d, c);
      } else {
        hn::StoreU(sums[r][v], d, c);
      }
    }
  }
}

template <int rows, Reading reading, typename D, typename T = hn::TFromD<D>>
void MultiplyRows(D d, const Block<T>& x, int64_t columns) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns == 2 * lanes) return MultiplyBlock<rows, 2, false, reading>(d, x, lanes);
  if (columns > lanes) return MultiplyBlock<rows, 2, true, reading>(d, x, columns - lanes);
  if (columns == lanes) return MultiplyBlock<rows, 1, false, reading>(d, x, lanes);
  return MultiplyBlock<rows, 1, true, reading>(d, x, columns);
}

// How many of `left` rows go through registers together.
HWY_INLINE int64_t RowsTogether(int64_t left) {
  return left >= kRows ? kRows : left >= 4 ? 4 : left;
}

template <Reading reading, typename D, typename T = hn::TFromD<D>>
void MultiplyTogether(D d, const Block<T>& x, int64_t rows, int64_t columns) {
  switch (rows) {
    case kRows:
      return MultiplyRows<kRows, reading>(d, x, columns);
    case 4:
      return MultiplyRows<4, reading>(d, x, columns);
    case 3:
      return MultiplyRows<3, reading>(d, x, columns);
    case 2:
      return MultiplyRows<2, reading>(d, x, columns);
    default:
      return MultiplyRows<1, reading>(d, x, columns);
  }
}

// All rows of one panel of at most 2 vectors.
template <typename D, typename T = hn::TFromD<D>>
void MultiplyPanel(D d, Reading reading, Block<T> x, int64_t m, int64_t columns) {
  for (int64_t i = 0; i < m;) {
    const int64_t rows = RowsTogether(m - i);
    if (reading == Reading::kInPlace) {
      MultiplyTogether<Reading::kInPlace>(d, x, rows, columns);
    } else if (reading == Reading::kPacked) {
      MultiplyTogether<Reading::kPacked>(d, x, rows, columns);
    } else {
      MultiplyTogether<Reading::kCopies>(d, x, rows, columns);
      x.b = x.copy;
      x.b_stride = 2 * static_cast<int64_t>(hn::Lanes(d));
      reading = Reading::kPacked;
    }
    x.a += rows * x.a_row;
    x.c += rows * x.c_stride;
    i += rows;
  }
}

// Where op(a) is transposed, its rows lie beside each other in `rows` from now on.
template <typename T>
void TakePackedRows(int64_t height, bool is_packed, T* rows, Block<T>* x) {
  if (!is_packed) {
    for (int64_t l = 0; l < x->k; ++l) {
      std::copy_n(x->a + l * x->a_depth, height, rows + l * height);
    }
  }
  x->a = rows;
  x->a_row = 1;
  x->a_depth = height;
}

#if HWY_TARGET != HWY_SCALAR
// The 4 x 4 or, of doubles, 2 x 2 elements at `from`, rows and columns exchanged.
template <typename T>
HWY_INLINE void TransposeSquare(const T* from, int64_t stride, int64_t width, T* to) {
  const hn::Full128<T> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
    hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + width);
  } else {
    const auto r2 = hn::LoadU(d, from + 2 * stride), r3 = hn::LoadU(d, from + 3 * stride);
    const auto l02 = hn::InterleaveLower(d, r0, r2), u02 = hn::InterleaveUpper(d, r0, r2);
    const auto l13 = hn::InterleaveLower(d, r1, r3), u13 = hn::InterleaveUpper(d, r1, r3);
    hn::StoreU(hn::InterleaveLower(d, l02, l13), d, to);
    hn::StoreU(hn::InterleaveUpper(d, l02, l13), d, to + width);
    hn::StoreU(hn::InterleaveLower(d, u02, u13), d, to + 2 * width);
    hn::StoreU(hn::InterleaveUpper(d, u02, u13), d, to + 3 * width);
  }
}
template <typename T>
constexpr int64_t kSide = 16 / sizeof(T);
#else
template <typename T>
HWY_INLINE void TransposeSquare(const T* from, int64_t, int64_t, T* to) {
  *to = *from;
}
template <typename T>
constexpr int64_t kSide = 1;
#endif

// Copies `columns` rows of memory, `stride` apart and `depth` long, to columns `width` apart.
template <typename T>
void Transpose(const T* from, int64_t stride, int64_t columns, int64_t depth, int64_t width,
               T* to) {
  constexpr int64_t side = kSide<T>;
  const int64_t squares = columns / side * side;
  const int64_t whole = depth / side * side;
  for (int64_t c = 0; c < squares; c += side) {
    for (int64_t i = 0; i < whole; i += side) {
      TransposeSquare(from + c * stride + i, stride, width, to + i * width + c);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t i = c < squares ? whole : 0; i < depth; ++i) {
      to[i * width + c] = from[c * stride + i];
    }
  }
}

// Copies rows [k0, k0 + depth) and columns [j, j + columns) of op(b), one row after the other, with
// zeros behind.
template <typename T>
void PackPanel(const MatrixProduct<T>& p, int64_t k0, int64_t depth, int64_t j, int64_t columns,
               int64_t width, T* to) {
  for (int64_t i = 0; i < depth && columns < width; ++i) {
    std::fill(to + i * width + columns, to + (i + 1) * width, T(0));
  }
  if (p.transpose_b) {
    return Transpose(p.b + j * p.b_stride + k0, p.b_stride, columns, depth, width, to);
  }
  for (int64_t i = 0; i < depth; ++i) {
    std::copy_n(p.b + (k0 + i) * p.b_stride + j, columns, to + i * width);
  }
}

// The rows of a from column k0 of op(a) on, as far as a panel goes at a time.
template <typename T>
Block<T> BlockOf(const MatrixProduct<T>& p, int64_t k0) {
  const int64_t a_depth = p.transpose_a ? p.a_stride : 1;
  return {.a = p.a + k0 * a_depth,
          .a_row = p.transpose_a ? 1 : p.a_stride,
          .a_depth = a_depth,
          .b = nullptr,
          .b_stride = 0,
          .k = std::min(kDepth, p.k - k0),
          .c = p.c,
          .c_stride = p.c_stride,
          .add = k0 > 0,
          .add_sum = p.is_added,
          .copy = nullptr};
}

// One row: wide blocks, because a single chain of sums would wait for itself.
template <int vectors, typename D, typename T = hn::TFromD<D>>
void MultiplyRow(D d, const Block<T>& x, int64_t columns) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rest = columns - (vectors - 1) * lanes;
  if constexpr (vectors > 1) {
    if (rest <= 0) return MultiplyRow<vectors - 1>(d, x, columns);
  }
  MultiplyBlock<1, vectors, true, Reading::kInPlace>(d, x, rest);
}

// b as it lies. Narrow ones with narrow vectors: a masked load whose hidden lanes reach into a page
// that nobody has touched costs hundreds of nanoseconds.
template <typename D, typename T = hn::TFromD<D>>
void UnpackedProduct(D d, const MatrixProduct<T>& p) {
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(d));
  Block<T> x = BlockOf(p, 0);
  x.b_stride = p.b_stride;
  x.k = p.k;
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
    MultiplyPanel(d, Reading::kInPlace, x, p.m, std::min(width, p.n - j));
  }
}

// Columns [j, j + vectors) of c, to which `depth` rows of b times their factors are added. Only the
// first `lanes` of a vector count if it is masked.
template <int rows, int vectors, int depth, bool masked, typename D, typename T = hn::TFromD<D>>
HWY_INLINE void AddRowsOfB(D d, const Block<T>& x, int64_t j, hn::Mask<D> mask) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](const T* from) HWY_ATTR {
    return masked ? hn::MaskedLoad(mask, d, from) : hn::LoadU(d, from);
  };
  hn::Vec<D> sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = x.add ? load(x.c + r * x.c_stride + j + v * lanes) : hn::Zero(d);
    }
  }
  for (int l = 0; l < depth; ++l) {
    hn::Vec<D> of_b[vectors];
    for (int v = 0; v < vectors; ++v) of_b[v] = load(x.b + l * x.b_stride + j + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const auto factor = hn::Set(d, x.a[r * x.a_row + l * x.a_depth]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, of_b[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      T* c = x.c + r * x.c_stride + j + v * lanes;
      if (masked) {
        hn::BlendedStore(sums[r][v], mask, d, c);
      } else {
        hn::StoreU(sums[r][v], d, c);
      }
    }
  }
}

template <int rows, int depth, typename D, typename T = hn::TFromD<D>>
HWY_INLINE void AddStreamed(D d, const Block<T>& x, int64_t columns) {
  constexpr int vectors = 2;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::FirstN(d, static_cast<size_t>(lanes));
  int64_t j = 0;
  for (; j + vectors * lanes <= columns; j += vectors * lanes) {
    AddRowsOfB<rows, vectors, depth, false>(d, x, j, all);
  }
  for (; j + lanes <= columns; j += lanes) AddRowsOfB<rows, 1, depth, false>(d, x, j, all);
  if (j == columns) return;
  AddRowsOfB<rows, 1, depth, true>(d, x, j, hn::FirstN(d, static_cast<size_t>(columns - j)));
}

// Few rows times a b that waits for memory: it is read in long runs, a few rows side by side.
template <int rows, typename D, typename T = hn::TFromD<D>>
void StreamedProduct(D d, const MatrixProduct<T>& p) {
  for (int64_t j = 0; j < p.n; j += kRun) {
    const int64_t columns = std::min(kRun, p.n - j);
    Block<T> x = BlockOf(p, 0);
    x.b = p.b + j;
    x.b_stride = p.b_stride;
    x.c = p.c + j;
    for (int64_t l = 0; l < p.k; x.add = true) {
      const int64_t depth = l + kSideBySide <= p.k ? kSideBySide : 1;
      if (depth == kSideBySide) {
        AddStreamed<rows, kSideBySide>(d, x, columns);
      } else {
        AddStreamed<rows, 1>(d, x, columns);
      }
      x.a += depth * x.a_depth;
      x.b += depth * x.b_stride;
      l += depth;
    }
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

// Panels are copied one by one where a few rows meet them, by the first of those rows if they lie
// that way, and many at a time for many rows.
template <typename D, typename T = hn::TFromD<D>>
void MultiplyByPanels(D d, const MatrixProduct<T>& p) {
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(d));
  const int64_t all = (p.n + width - 1) / width * width;
  const bool is_low = p.m <= kRowsAtOnce;
  const auto most = static_cast<size_t>(std::min(all, kColumns) * std::min(kDepth, p.k));
  const std::unique_ptr<T[]> far(is_low ? nullptr : new (std::nothrow) T[most]);
  HWY_ALIGN T near[2 * hn::MaxLanes(hn::ScalableTag<T>()) * kDepth];
  HWY_ALIGN T rows[kRowsAtOnce * kDepth];
  const bool one_by_one = far == nullptr;
  T* const packed = one_by_one ? near : far.get();
  const int64_t together = one_by_one ? width : kColumns;
  const bool is_read_in_place = is_low && !p.transpose_b;
  const Reading reading = !is_read_in_place ? Reading::kPacked
                          : p.m <= kRows    ? Reading::kInPlace
                                            : Reading::kCopies;
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    const Block<T> at = BlockOf(p, k0);
    for (int64_t j0 = 0; j0 < p.n; j0 += together) {
      const int64_t block = std::min(together, p.n - j0);
      for (int64_t j = 0; j < block && !is_read_in_place; j += width) {
        PackPanel(p, k0, at.k, j0 + j, std::min(width, block - j), width, packed + j * at.k);
      }
      for (int64_t i = 0; i < p.m; i += kRowsAtOnce) {
        const int64_t height = std::min(kRowsAtOnce, p.m - i);
        Block<T> x = at;
        x.a += i * x.a_row;
        if (p.transpose_a) TakePackedRows(height, /*is_packed=*/is_low && j0 > 0, rows, &x);
        for (int64_t j = 0; j < block; j += width) {
          x.b = is_read_in_place ? p.b + k0 * p.b_stride + j0 : packed + j * x.k;
          x.b_stride = is_read_in_place ? p.b_stride : width;
          x.copy = near;
          x.c = p.c + i * p.c_stride + j0 + j;
          MultiplyPanel(d, reading, x, height, std::min(width, block - j));
        }
      }
    }
  }
}

template <typename T>
bool IsStreamed(const MatrixProduct<T>& p) {
  return !p.is_added && p.m <= kFewRows && p.n >= kFewestInRun &&
         p.k * p.n * static_cast<int64_t>(sizeof(T)) > kStreamedBytes;
}

template <typename T>
bool IsOfDots(const MatrixProduct<T>& p) {
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return p.transpose_b && !p.transpose_a && p.m <= kFewRows && p.k >= width;
}

template <typename T>
void Product(const MatrixProduct<T>& p) {
  const hn::ScalableTag<T> d;
  if (!p.transpose_b && (p.m <= kFewRows || (p.n <= 8 && p.k <= kNarrowDepth))) {
    if (p.n <= 4) return UnpackedProduct(hn::CappedTag<T, 4>(), p);
    if (p.n <= 8) return UnpackedProduct(hn::CappedTag<T, 8>(), p);
    if (!IsStreamed(p)) return UnpackedProduct(d, p);
    if (p.m == 1) return StreamedProduct<1>(d, p);
    if (p.m == 2) return StreamedProduct<2>(d, p);
    if (p.m == 3) return StreamedProduct<3>(d, p);
    return StreamedProduct<4>(d, p);
  }
  if (IsOfDots(p)) return DotProducts(d, p);
  MultiplyByPanels(d, p);
}

// What goes through blocks in one piece.
template <typename T>
bool CanAdd(const MatrixProduct<T>& p) {
  return p.k <= kDepth && !IsOfDots(p);
}

// Rows of p, which are few, times panels [first, last) of op(b).
template <typename T>
void MultiplyPacked(const MatrixProduct<T>& p, int64_t first, int64_t last, const T* packed) {
  const hn::ScalableTag<T> d;
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T rows[kRowsAtOnce * kDepth];
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    Block<T> x = BlockOf(p, k0);
    x.b_stride = width;
    if (p.transpose_a) TakePackedRows(p.m, /*is_packed=*/false, rows, &x);
    for (int64_t panel = first; panel < last; ++panel) {
      x.b = packed + (panel * p.k + k0) * width;
      x.c = p.c + panel * width;
      MultiplyPanel(d, Reading::kPacked, x, p.m, std::min(width, p.n - panel * width));
    }
  }
}

// Of a transposed b as many columns are copied at a time, so that what is written stays in the
// nearest cache; others are copied row by row to all panels, as they lie in memory.
constexpr int64_t kPackedRows = 64;

template <typename T>
void PackPanels(const MatrixProduct<T>& p, int64_t first, int64_t last, T* packed) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = 2 * lanes;
  const int64_t whole = p.transpose_b ? first : std::clamp(p.n / width, first, last);
  for (int64_t i = 0; i < p.k; ++i) {
    const T* from = p.b + i * p.b_stride + first * width;
    T* to = packed + first * width * p.k + i * width;
    for (int64_t panel = first; panel < whole; ++panel, from += width, to += width * p.k) {
      hn::StoreU(hn::LoadU(d, from), d, to);
      hn::StoreU(hn::LoadU(d, from + lanes), d, to + lanes);
    }
  }
  for (int64_t panel = whole; panel < last; ++panel) {
    const int64_t j = panel * width;
    for (int64_t i = 0; i < p.k; i += kPackedRows) {
      PackPanel(p, i, std::min(kPackedRows, p.k - i), j, std::min(width, p.n - j), width,
                packed + j * p.k + i * width);
    }
  }
}

template <typename T>
void AddRow(const T* added, int64_t n, T* row) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, row + i), hn::LoadU(d, added + i)), d, row + i);
  }
  for (; i < n; ++i) row[i] += added[i];
}

template <typename T>
BlockCode<T> Code() {
  return {.whole = Product<T>,
          .can_add = CanAdd<T>,
          .rows = kRows,
          .panel = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())),
          .pack = PackPanels<T>,
          .multiply_packed = MultiplyPacked<T>,
          .add = AddRow<T>};
}

BlockProducts Products() { return {Code<float>(), Code<double>()}; }

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
