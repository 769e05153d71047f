// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

#include "weft/inspect/describe_kinds.h"
#include "weft/tensor/narrow_float.h"

namespace weft::inspect {
namespace {

template <typename T>
Json ElementJson(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return Json(value);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return Json(static_cast<double>(value));
    return Json(static_cast<int64_t>(value));
  } else if constexpr (std::is_integral_v<T>) {
    return Json(static_cast<int64_t>(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return Json(value);
  } else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    return Json(Json::Array{Json(static_cast<double>(value.real())),
                            Json(static_cast<double>(value.imag()))});
  } else if constexpr (requires { static_cast<float>(value); }) {
    if constexpr (std::is_same_v<T, double>) return Json(value);
    return Json(static_cast<double>(static_cast<float>(value)));
  } else if constexpr (requires { value.bits; }) {
    return Json(static_cast<int64_t>(value.bits));
  } else {
    return Json();  // a resource, a variant
  }
}

Json ValuesJson(const Tensor& tensor, int64_t count) {
  Json values = Json::MakeArray();
  switch (tensor.dtype()) {
#define WEFT_VALUES(type, name)                                                                   \
  case DType::name:                                                                               \
    for (int64_t i = 0; i < count; ++i) values.Append(ElementJson<type>(tensor.data<type>()[i])); \
    break;
    WEFT_DTYPE_LIST(WEFT_VALUES)
#undef WEFT_VALUES
    case DType::kInvalid:
      break;
  }
  return values;
}

}  // namespace

std::string TypeText(DType dtype, const PartialShape& shape) {
  return absl::StrCat(DTypeName(dtype), " ", shape.ToString());
}

Json ShapeJson(const PartialShape& shape) {
  if (shape.rank() < 0) return Json();
  Json dims = Json::MakeArray();
  for (int64_t dim : shape.dims()) dims.Append(dim);
  return dims;
}

std::string BytesText(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " bytes")
                   : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

Description DescribeValues(const std::string& name, const Tensor& tensor, int64_t max_values) {
  const int64_t shown = std::min<int64_t>(tensor.num_elements(), std::max<int64_t>(0, max_values));
  Description description;
  constexpr int64_t kMostInt = std::numeric_limits<int>::max();
  description.text =
      absl::StrCat(name, ": ", tensor.ToString(static_cast<int>(std::min(shown, kMostInt))), "\n");
  description.json = Json::MakeObject();
  description.json.Set("name", name);
  description.json.Set("dtype", DTypeName(tensor.dtype()));
  description.json.Set("shape", ShapeJson(tensor.shape()));
  description.json.Set("values", ValuesJson(tensor, shown));
  if (shown < tensor.num_elements())
    description.json.Set("left_out", tensor.num_elements() - shown);
  return description;
}

}  // namespace weft::inspect
