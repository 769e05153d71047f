// SPDX-License-Identifier: Apache-2.0
#include "weft/api/signature_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::api {
namespace {

std::string Text(const std::string& value) { return absl::StrCat("'", absl::CEscape(value), "'"); }
std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(float value) { return absl::StrCat(value); }
std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(DType value) {
  return absl::StrCat("DT_", absl::AsciiStrToUpper(DTypeName(value)));
}
std::string Text(const PartialShape& value) {
  if (!value.known_rank()) return "{ unknown_rank: true }";
  std::string out = "{";
  for (const int64_t size : value.dims()) absl::StrAppend(&out, " dim { size: ", size, " }");
  return out + " }";
}
template <typename T>
requires requires(const T& item) { Text(item); }
std::string Text(const std::vector<T>& values) {
  std::vector<std::string> items;
  for (const auto& value : values) items.push_back(Text(static_cast<const T&>(value)));
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

// Empty for what the language has no words for (tensors, functions).
std::string DefaultText(const AttrValue& value) {
  return value.Visit([](const auto& held) -> std::string {
    if constexpr (requires { Text(held); }) return Text(held);
    if constexpr (std::is_same_v<std::decay_t<decltype(held)>, AttrValue::EmptyList>) return "[]";
    return "";
  });
}

}  // namespace

std::string ArgText(const ArgSchema& arg) {
  std::string type = !arg.type_list_attr.empty() ? arg.type_list_attr
                     : !arg.type_attr.empty()    ? arg.type_attr
                                                 : std::string(DTypeName(arg.dtype));
  if (!arg.number_attr.empty()) type = absl::StrCat(arg.number_attr, " * ", type);
  if (arg.is_ref) type = absl::StrCat("Ref(", type, ")");
  return absl::StrCat(arg.name, ": ", type);
}

std::string AttrText(const AttrSchema& attr) {
  std::string kind = attr.kind;
  std::vector<std::string> allowed;
  for (const DType dtype : attr.allowed_types) allowed.emplace_back(DTypeName(dtype));
  for (const std::string& text : attr.allowed_strings) allowed.push_back(Text(text));
  if (!allowed.empty()) {
    const std::string set = absl::StrCat("{", absl::StrJoin(allowed, ", "), "}");
    kind = kind.rfind("list(", 0) == 0 ? absl::StrCat("list(", set, ")") : set;
  }
  if (attr.minimum) absl::StrAppend(&kind, " >= ", *attr.minimum);
  if (attr.default_value) {
    const std::string text = DefaultText(*attr.default_value);
    if (!text.empty()) absl::StrAppend(&kind, " = ", text);
  }
  return absl::StrCat(attr.name, ": ", kind);
}

}  // namespace weft::api
