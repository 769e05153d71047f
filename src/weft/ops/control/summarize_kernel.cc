// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/control/summarize_kernel.h"

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace weft::ops::control {
namespace {

// The fewest digits of two that read back as the same number.
void AppendReal(float x, std::string* out) {
  std::string text = absl::StrFormat("%.6g", x);
  float back = 0;
  if (!absl::SimpleAtof(text, &back) || back != x) text = absl::StrFormat("%.9g", x);
  out->append(std::isfinite(x) ? text : std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}
void AppendReal(double x, std::string* out) {
  std::string text = absl::StrFormat("%.15g", x);
  double back = 0;
  if (!absl::SimpleAtod(text, &back) || back != x) text = absl::StrFormat("%.17g", x);
  out->append(std::isfinite(x) ? text : std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

template <typename T>
void AppendElement(const T& x, std::string* out) {
  if constexpr (std::is_same_v<T, std::string>) {
    out->append(absl::CEscape(x));
  } else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    out->push_back('(');
    AppendReal(x.real(), out);
    out->push_back(',');
    AppendReal(x.imag(), out);
    out->push_back(')');
  } else if constexpr (std::is_floating_point_v<T>) {
    AppendReal(x, out);
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int8_t> ||
                       std::is_same_v<T, uint8_t>) {
    absl::StrAppend(out, static_cast<int>(x));
  } else if constexpr (std::is_arithmetic_v<T>) {
    absl::StrAppend(out, x);
  } else if constexpr (requires { static_cast<float>(x); }) {
    AppendReal(static_cast<float>(x), out);
  } else {
    absl::StrAppend(out, "?");
  }
}

// One dimension: brackets around each part of it but the innermost. `at` counts what was printed.
template <typename T>
void AppendDim(const Tensor& tensor, int dim, int64_t limit, int64_t* at, std::string* out) {
  const bool innermost = dim == tensor.rank() - 1;
  for (int64_t i = 0; i < tensor.dim(dim); ++i) {
    if (*at >= limit) {
      if (innermost && dim != 0) out->append("...");
      return;
    }
    if (innermost) {
      if (i > 0) out->push_back(' ');
      AppendElement(tensor.data<T>()[(*at)++], out);
    } else {
      out->push_back('[');
      AppendDim<T>(tensor, dim + 1, limit, at, out);
      out->push_back(']');
    }
  }
}

// Between two parts of dimension `dim`: a space, or as many ends of lines as dimensions end.
void AppendGap(const Tensor& tensor, int dim, std::string* out) {
  if (dim == tensor.rank() - 1) {
    out->push_back(' ');
  } else {
    out->append(static_cast<size_t>(tensor.rank() - 1 - dim), '\n');
    out->append(static_cast<size_t>(dim) + 1, ' ');
  }
}

template <typename T>
void AppendEnds(const Tensor& tensor, int dim, int64_t ends, int64_t at, std::string* out) {
  if (dim == tensor.rank()) {
    constexpr bool kQuoted = std::is_same_v<T, std::string>;
    if constexpr (kQuoted) {
      absl::StrAppend(out, "\"", absl::Utf8SafeCEscape(tensor.data<T>()[at]), "\"");
    } else {
      AppendElement(tensor.data<T>()[at], out);
    }
    return;
  }
  const int64_t count = tensor.dim(dim);
  int64_t part = 1;
  for (int d = dim + 1; d < tensor.rank(); ++d) part *= tensor.dim(d);
  out->push_back('[');
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) AppendGap(tensor, dim, out);
    if (i == ends && count > 2 * ends) {
      out->append("...");
      i = count - ends - 1;
      continue;
    }
    AppendEnds<T>(tensor, dim + 1, ends, at + i * part, out);
  }
  out->push_back(']');
}

}  // namespace

std::string SummarizeEnds(const Tensor& tensor, int64_t ends) {
  std::string out;
  if (ends < 0) ends = tensor.num_elements();
  switch (tensor.dtype()) {
#define WEFT_SUMMARIZE(type, name)              \
  case DType::name:                             \
    AppendEnds<type>(tensor, 0, ends, 0, &out); \
    break;
    WEFT_DTYPE_LIST(WEFT_SUMMARIZE)
#undef WEFT_SUMMARIZE
    case DType::kInvalid:
      out = "<uninitialized>";
      break;
  }
  return out;
}

std::string Summarize(const Tensor& tensor, int64_t limit) {
  const int64_t n = tensor.num_elements();
  if (limit < 0 || limit > n) limit = n;
  std::string out;
  int64_t at = 0;
  switch (tensor.dtype()) {
#define WEFT_SUMMARIZE(type, name)                  \
  case DType::name:                                 \
    if (tensor.rank() > 0) {                        \
      AppendDim<type>(tensor, 0, limit, &at, &out); \
    } else if (limit > 0) {                         \
      AppendElement(*tensor.data<type>(), &out);    \
    }                                               \
    break;
    WEFT_DTYPE_LIST(WEFT_SUMMARIZE)
#undef WEFT_SUMMARIZE
    case DType::kInvalid:
      out = "<uninitialized>";
      break;
  }
  if (n > limit) out.append("...");
  return out;
}

}  // namespace weft::ops::control
