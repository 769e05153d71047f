// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/attr_value.h"

#include <array>
#include <cstring>

#include "absl/strings/str_join.h"

namespace weft {
namespace {

constexpr std::array<absl::string_view, 20> kKinds = {
    "nothing",      "string",      "int",        "float",       "bool",
    "type",         "shape",       "tensor",     "func",        "list(string)",
    "list(int)",    "list(float)", "list(bool)", "list(type)",  "list(shape)",
    "list(tensor)", "list(func)",  "list",       "placeholder", "opaque"};

bool Equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (!a.IsInitialized()) return true;
  if (a.dtype() == DType::kString) return a.span<std::string>() == b.span<std::string>();
  if (!IsPlain(a.dtype())) return a.SharesBufferWith(b);
  return std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) == 0;
}
bool Equal(const FunctionRef& a, const FunctionRef& b) {
  if (a.name != b.name) return false;
  static const AttrMap* const empty = new AttrMap();
  return (a.attrs ? *a.attrs : *empty) == (b.attrs ? *b.attrs : *empty);
}
template <typename T>
bool Equal(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, AttrValue::EmptyList>) {
    return true;
  } else if constexpr (std::is_same_v<T, AttrPlaceholder>) {
    return a.name == b.name;
  } else if constexpr (std::is_same_v<T, OpaqueAttr>) {
    return a.serialized == b.serialized;
  } else if constexpr (std::is_same_v<T, AttrValue::TensorList> ||
                       std::is_same_v<T, AttrValue::FunctionList>) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Equal(a[i], b[i])) return false;
    }
    return true;
  } else {
    return a == b;
  }
}

std::string Text(const std::string& value) { return absl::StrCat("\"", value, "\""); }
std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(float value) { return absl::StrCat(value); }
std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(DType value) { return std::string(DTypeName(value)); }
std::string Text(const PartialShape& value) { return value.ToString(); }
std::string Text(const Tensor& value) { return value.ToString(8); }
std::string Text(const FunctionRef& value) { return absl::StrCat("@", value.name); }
std::string Text(std::monostate) { return "nothing"; }
std::string Text(AttrValue::EmptyList) { return "[]"; }
std::string Text(const AttrPlaceholder& value) { return absl::StrCat("$", value.name); }
std::string Text(const OpaqueAttr& value) {
  return absl::StrCat(value.serialized.size(), " bytes");
}
template <typename T>
std::string Text(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&out, i > 0 ? ", " : "", Text(static_cast<const T&>(values[i])));
  }
  return out + "]";
}

}  // namespace

std::string AttrValue::KindName() const { return std::string(kKinds[value_.index()]); }

bool AttrValue::HasKind(absl::string_view kind) const {
  if (std::holds_alternative<EmptyList>(value_)) return kind.substr(0, 5) == "list(";
  return kKinds[value_.index()] == kind;
}

std::string AttrValue::ToString() const {
  return std::visit([](const auto& value) { return Text(value); }, value_);
}

bool AttrValue::operator==(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        return Equal(value, std::get<T>(other.value_));
      },
      value_);
}

}  // namespace weft
