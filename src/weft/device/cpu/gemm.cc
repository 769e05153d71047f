// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/gemm.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "weft/device/cpu/dnnl_library.h"
#include "weft/device/cpu/gemm_block.h"
#include "weft/device/cpu/scratch.h"

namespace weft {
namespace {

// Multiply-adds that one thread should at least get.
constexpr int64_t kShareWork = 1 << 20;

// Few rows with a b larger than this wait for memory, which oneDNN reads best.
constexpr int64_t kStreamedElements = 1 << 19;
constexpr int64_t kFewestStreamedRows = 5;
constexpr int64_t kMostStreamedRows = 64;

// Unsigned for integers, so that they wrap.
template <typename T, bool integer = std::is_integral_v<T>>
struct SumT {
  using type = T;
};
template <typename T>
struct SumT<T, true> {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};

template <typename T>
void PlainProduct(const MatrixProduct<T>& p) {
  using S = typename SumT<T>::type;
  std::vector<T> transposed;
  const T* b = p.b;
  int64_t b_stride = p.b_stride;
  if (p.transpose_b) {
    transposed.resize(p.k * p.n);
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t i = 0; i < p.k; ++i) transposed[i * p.n + j] = p.b[j * p.b_stride + i];
    }
    b = transposed.data();
    b_stride = p.n;
  }
  std::vector<S> sums(p.n);
  for (int64_t i = 0; i < p.m; ++i) {
    std::fill(sums.begin(), sums.end(), S(0));
    for (int64_t l = 0; l < p.k; ++l) {
      const S factor =
          static_cast<S>(p.transpose_a ? p.a[l * p.a_stride + i] : p.a[i * p.a_stride + l]);
      for (int64_t j = 0; j < p.n; ++j) sums[j] += factor * static_cast<S>(b[l * b_stride + j]);
    }
    for (int64_t j = 0; j < p.n; ++j) p.c[i * p.c_stride + j] = static_cast<T>(sums[j]);
  }
}

template <typename T>
std::vector<float> Widened(const T* from, int64_t rows, int64_t columns, int64_t stride) {
  std::vector<float> wide(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      wide[i * columns + j] = static_cast<float>(from[i * stride + j]);
  }
  return wide;
}

template <typename T>
void NarrowProduct(const MatrixProduct<T>& p) {
  const int64_t a_rows = p.transpose_a ? p.k : p.m;
  const int64_t b_rows = p.transpose_b ? p.n : p.k;
  const int64_t a_columns = p.transpose_a ? p.m : p.k;
  const int64_t b_columns = p.transpose_b ? p.k : p.n;
  const std::vector<float> a = Widened(p.a, a_rows, a_columns, p.a_stride);
  const std::vector<float> b = Widened(p.b, b_rows, b_columns, p.b_stride);
  std::vector<float> c(p.m * p.n);
  Multiply<float>({p.transpose_a, p.transpose_b, p.m, p.n, p.k, a.data(), a_columns, b.data(),
                   b_columns, c.data(), p.n});
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) p.c[i * p.c_stride + j] = T(c[i * p.n + j]);
  }
}

// Rows [begin, end) of the product.
template <typename T>
MatrixProduct<T> RowsOf(MatrixProduct<T> p, int64_t begin, int64_t end) {
  p.a += p.transpose_a ? begin : begin * p.a_stride;
  p.c += begin * p.c_stride;
  p.m = end - begin;
  return p;
}
template <typename T>
MatrixProduct<T> ColumnsOf(MatrixProduct<T> p, int64_t begin, int64_t end) {
  p.b += p.transpose_b ? begin * p.b_stride : begin;
  p.c += begin;
  p.n = end - begin;
  return p;
}

template <typename T>
void AddRow(const T* added, int64_t n, T* row) {
  if constexpr (std::is_floating_point_v<T>) {
    GetBlockProducts().of<T>().add(added, n, row);
  } else {
    for (int64_t j = 0; j < n; ++j) row[j] = static_cast<T>(row[j] + added[j]);
  }
}

template <typename T>
void Finish(const MatrixProduct<T>& p, const ProductEpilogue& epilogue, int64_t first_column) {
  const T* bias = static_cast<const T*>(epilogue.bias);
  if (epilogue.finish != nullptr) (*epilogue.finish)(p.c, p.m, p.n);
  if (bias == nullptr && epilogue.activation == nullptr) return;
  for (int64_t i = 0; i < p.m; ++i) {
    T* row = p.c + i * p.c_stride;
    if (bias != nullptr) AddRow(bias + first_column, p.n, row);
    if (epilogue.activation != nullptr) {
      auto* bytes = reinterpret_cast<std::byte*>(row);
      epilogue.activation(bytes, 1, nullptr, 0, bytes, p.n);
    }
  }
}

template <typename T>
bool IsStreamed(const MatrixProduct<T>& p) {
  return std::is_same_v<T, float> && !p.transpose_b && p.m >= kFewestStreamedRows &&
         p.m <= kMostStreamedRows && p.n * p.k > kStreamedElements;
}

// False where the library is missing or refuses.
bool LibraryProduct(const MatrixProduct<float>& p) {
  const DnnlSgemm sgemm = LoadDnnlSgemm();
  return sgemm != nullptr &&
         sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, 1.0f, p.a,
               p.a_stride, p.b, p.b_stride, 0.0f, p.c, p.c_stride) == 0;
}

// `is_streamed` is said of the whole product, so that no part of it is computed otherwise than the
// rest.
template <typename T>
void MultiplyHere(const MatrixProduct<T>& p, bool is_streamed) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    for (int64_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.c_stride, p.n, T(0.0f));
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (is_streamed && LibraryProduct(p)) return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    GetBlockProducts().of<T>().whole(p);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    NarrowProduct(p);
  } else {
    PlainProduct(p);
  }
}

// Rounds shares to whole register blocks.
constexpr int64_t kRowUnit = 8;
constexpr int64_t kColumnUnit = 32;
// Up to this many rows threads take columns, and each packs what it needs of b.
constexpr int64_t kFewRows = 128;
constexpr int64_t kMostPacked = 1 << 20;   // elements of b at a time
constexpr int64_t kPackedShare = 1 << 16;  // elements that a thread should at least pack
constexpr int64_t kPanelsAtOnce = 2;
// Units of columns of sums of products that a thread takes: it packs a transposed a for them.
constexpr int64_t kFewestAdded = 3;

// Packs op(b) once for all threads, which then share tiles of c. False if memory is short.
template <typename T>
bool SharePanels(const MatrixProduct<T>& product, const ProductEpilogue& epilogue,
                 WorkSharer share) {
  const BlockCode<T>& code = GetBlockProducts().of<T>();
  const int64_t strip = code.panel * product.k;
  const int64_t most_panels = std::max(kPanelsAtOnce, kMostPacked / strip);
  const int64_t all_panels = (product.n + code.panel - 1) / code.panel;
  const Scratch<T> packed(std::min(all_panels, most_panels) * strip);
  if (packed.data() == nullptr) return false;
  const int64_t height = std::clamp(product.m / 8 / code.rows * code.rows, code.rows, kRowsAtOnce);
  const int64_t blocks = (product.m + height - 1) / height;
  for (int64_t done = 0; done < all_panels; done += most_panels) {
    const int64_t first_column = done * code.panel;
    const MatrixProduct<T> p = ColumnsOf(
        product, first_column, std::min(product.n, first_column + most_panels * code.panel));
    const int64_t panels = std::min(most_panels, all_panels - done);
    share(panels, std::max<int64_t>(1, kPackedShare / strip),
          [&](int64_t begin, int64_t end) { code.pack(p, begin, end, packed.data()); });
    const int64_t groups = (panels + kPanelsAtOnce - 1) / kPanelsAtOnce;
    const int64_t least = kShareWork / (height * kPanelsAtOnce * strip) + 1;
    share(blocks * groups, least, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t row = begin / groups * height;
        const int64_t first = begin % groups;
        const int64_t last = std::min(groups, first + end - begin);
        const MatrixProduct<T> rows = RowsOf(p, row, std::min(p.m, row + height));
        const int64_t last_panel = std::min(panels, last * kPanelsAtOnce);
        code.multiply_packed(rows, first * kPanelsAtOnce, last_panel, packed.data());
        const int64_t column = first * kPanelsAtOnce * code.panel;
        Finish(ColumnsOf(rows, column, std::min(p.n, last_panel * code.panel)), epilogue,
               first_column + column);
        begin += last - first;
      }
    });
  }
  return true;
}

}  // namespace

template <typename T>
void Multiply(const MatrixProduct<T>& p) {
  MultiplyHere(p, IsStreamed(p));
}

template <typename T>
void Multiply(const MatrixProduct<T>& p, const ProductEpilogue& epilogue, WorkSharer share) {
  const int64_t work = p.m * p.n * std::max<int64_t>(1, p.k);
  if (work < 2 * kShareWork) {
    Multiply(p);
    Finish(p, epilogue, 0);
    return;
  }
  const bool is_streamed = IsStreamed(p);
  if constexpr (std::is_floating_point_v<T>) {
    if (!is_streamed && (p.m > kFewRows || p.n < 8 * kColumnUnit)) {
      if (SharePanels(p, epilogue, share)) return;
    }
  }
  // Whoever has a few rows packs all of b for them: of wide products threads share the columns.
  if (p.m >= p.n || (p.m >= 64 && p.n < 2 * p.m)) {
    const int64_t units = (p.m + kRowUnit - 1) / kRowUnit;
    share(units, std::max<int64_t>(1, kShareWork / (work / units + 1)),
          [&](int64_t begin, int64_t end) {
            const MatrixProduct<T> part =
                RowsOf(p, begin * kRowUnit, std::min(p.m, end * kRowUnit));
            MultiplyHere(part, is_streamed);
            Finish(part, epilogue, 0);
          });
    return;
  }
  const int64_t units = (p.n + kColumnUnit - 1) / kColumnUnit;
  share(units, std::max<int64_t>(1, kShareWork / (work / units + 1)),
        [&](int64_t begin, int64_t end) {
          const MatrixProduct<T> part =
              ColumnsOf(p, begin * kColumnUnit, std::min(p.n, end * kColumnUnit));
          MultiplyHere(part, is_streamed);
          Finish(part, epilogue, begin * kColumnUnit);
        });
}

template <typename T>
bool AddProducts(absl::Span<const MatrixProduct<T>> products, WorkSharer share) {
  if (products.empty()) return true;
  const int64_t m = products[0].m;
  const int64_t n = products[0].n;
  const auto goes_through_blocks = [](const MatrixProduct<T>& p) {
    return p.k > 0 && !IsStreamed(p) && GetBlockProducts().of<T>().can_add(p);
  };
  int64_t work = 0;
  bool needs_scratch = false;
  for (const MatrixProduct<T>& p : products) {
    work += m * n * p.k;
    needs_scratch = needs_scratch || !goes_through_blocks(p);
  }
  const Scratch<T> scratch(needs_scratch ? m * n : 0);
  if (needs_scratch && scratch.data() == nullptr) return false;
  const auto add = [&](int64_t begin, int64_t end) {
    for (const MatrixProduct<T>& p : products) {
      MatrixProduct<T> part = ColumnsOf(p, begin, end);
      if (goes_through_blocks(p)) {
        part.is_added = true;
        GetBlockProducts().of<T>().whole(part);
        continue;
      }
      part.c = scratch.data() + begin;
      part.c_stride = n;
      MultiplyHere(part, IsStreamed(p));
      for (int64_t i = 0; i < m; ++i) {
        AddRow(scratch.data() + i * n + begin, end - begin, p.c + i * p.c_stride + begin);
      }
    }
  };
  const int64_t units = (n + kColumnUnit - 1) / kColumnUnit;
  const int64_t least = kShareWork / (work / std::max<int64_t>(1, units) + 1);
  share(units, std::max({int64_t{1}, least, std::min(kFewestAdded, units / 2)}),
        [&](int64_t begin, int64_t end) {
          add(begin * kColumnUnit, std::min(n, end * kColumnUnit));
        });
  return true;
}

template bool AddProducts<float>(absl::Span<const MatrixProduct<float>>, WorkSharer);
template bool AddProducts<double>(absl::Span<const MatrixProduct<double>>, WorkSharer);

#define WEFT_MULTIPLY(T)                              \
  template void Multiply<T>(const MatrixProduct<T>&); \
  template void Multiply<T>(const MatrixProduct<T>&, const ProductEpilogue&, WorkSharer);
WEFT_MULTIPLY_TYPES(WEFT_MULTIPLY)
#undef WEFT_MULTIPLY

}  // namespace weft
