// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/dtype.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

#include "weft/tensor/resource_handle.h"
#include "weft/tensor/variant.h"

namespace weft {
namespace {

constexpr std::array<absl::string_view, kNumDTypes> kNames = {"invalid",
                                                              "float",
                                                              "double",
                                                              "int32",
                                                              "uint8",
                                                              "int16",
                                                              "int8",
                                                              "string",
                                                              "complex64",
                                                              "int64",
                                                              "bool",
                                                              "qint8",
                                                              "quint8",
                                                              "qint32",
                                                              "bfloat16",
                                                              "qint16",
                                                              "quint16",
                                                              "uint16",
                                                              "complex128",
                                                              "half",
                                                              "resource",
                                                              "variant",
                                                              "uint32",
                                                              "uint64",
                                                              "float8_e5m2",
                                                              "float8_e4m3fn",
                                                              "float8_e4m3fnuz",
                                                              "float8_e4m3b11fnuz",
                                                              "float8_e5m2fnuz",
                                                              "int4",
                                                              "uint4",
                                                              "int2",
                                                              "uint2"};

constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
#define WEFT_SIZE(type, name) \
  case DType::name:           \
    return sizeof(type);
    WEFT_DTYPE_LIST(WEFT_SIZE)
#undef WEFT_SIZE
    case DType::kInvalid:
      break;
  }
  return 0;
}

}  // namespace

size_t DTypeSize(DType dtype) { return SizeOf(dtype); }

absl::string_view DTypeName(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return index < kNames.size() ? kNames[index] : "invalid";
}

StatusOr<DType> DTypeFromName(absl::string_view name) {
  std::string lower = absl::AsciiStrToLower(name);
  absl::string_view key = lower;
  absl::ConsumePrefix(&key, "dt_");
  if (key == "float32") key = "float";
  if (key == "float64") key = "double";
  if (key == "float16") key = "half";
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == key) return static_cast<DType>(i);
  }
  return InvalidArgument("Unknown type name: '", name,
                         "', expected one like float, int32 or string");
}

StatusOr<DType> DTypeFromNumber(int number) {
  if (number > 0 && number < kNumDTypes) return static_cast<DType>(number);
  return InvalidArgument("Unknown DataType number: ", number, ", expected 1 to ", kNumDTypes - 1);
}

bool IsPlain(DType dtype) {
  return dtype != DType::kString && dtype != DType::kResource && dtype != DType::kVariant &&
         dtype != DType::kInvalid;
}

bool IsFloating(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kHalf:
    case DType::kBfloat16:
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E4m3fnuz:
    case DType::kFloat8E4m3b11fnuz:
    case DType::kFloat8E5m2fnuz:
      return true;
    default:
      return false;
  }
}

bool IsInteger(DType dtype) {
  switch (dtype) {
    case DType::kInt32:
    case DType::kUint8:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kInt64:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2:
      return true;
    default:
      return false;
  }
}

bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

bool IsQuantized(DType dtype) {
  return dtype == DType::kQint8 || dtype == DType::kQuint8 || dtype == DType::kQint16 ||
         dtype == DType::kQuint16 || dtype == DType::kQint32;
}

}  // namespace weft
