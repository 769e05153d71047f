// SPDX-License-Identifier: Apache-2.0
// Values of node attributes (attr_value.proto in memory).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft {

class AttrValue;
// Ordered, so that exports are deterministic.
using AttrMap = std::map<std::string, AttrValue, std::less<>>;

// A function's name with the attributes it is instantiated with.
struct FunctionRef {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;  // shared: values are immutable and copied with graphs
};

// Inside a function body: the value comes from the caller's attribute of this name.
struct AttrPlaceholder {
  std::string name;
};

// Bytes of an attr_value.proto that this version does not understand; kept for the next reader.
struct OpaqueAttr {
  std::string serialized;
};

// One attribute: a string, int, float, bool, type, shape, tensor, function, or a list of one of
// these.
class AttrValue {
 public:
  using StringList = std::vector<std::string>;
  using IntList = std::vector<int64_t>;
  using FloatList = std::vector<float>;
  using BoolList = std::vector<bool>;
  using TypeList = std::vector<DType>;
  using ShapeList = std::vector<PartialShape>;
  using TensorList = std::vector<Tensor>;
  using FunctionList = std::vector<FunctionRef>;
  struct EmptyList {};  // an empty list says nothing of its element type
  using Value =
      std::variant<std::monostate, std::string, int64_t, float, bool, DType, PartialShape, Tensor,
                   FunctionRef, StringList, IntList, FloatList, BoolList, TypeList, ShapeList,
                   TensorList, FunctionList, EmptyList, AttrPlaceholder, OpaqueAttr>;

  AttrValue() = default;
  template <typename T>
  requires std::is_constructible_v<Value, T> &&
      (!std::is_integral_v<std::decay_t<T>>)AttrValue(T value)
      : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): literals
  AttrValue(const char* text) : value_(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  AttrValue(bool value) : value_(value) {}                    // NOLINT(google-explicit-constructor)
  AttrValue(int64_t value) : value_(value) {}                 // NOLINT(google-explicit-constructor)
  AttrValue(int value) : value_(int64_t{value}) {}            // NOLINT(google-explicit-constructor)
  AttrValue(Shape shape) : value_(PartialShape(shape)) {}     // NOLINT(google-explicit-constructor)

  const Value& value() const { return value_; }
  // Calls the visitor's overload for what it holds.
  template <typename Visitor>
  auto Visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), value_);
  }
  bool IsSet() const { return !std::holds_alternative<std::monostate>(value_); }
  // Null unless it holds a T. An empty list is a T for each list type.
  template <typename T>
  const T* As() const {
    if (const T* found = std::get_if<T>(&value_)) return found;
    if constexpr (std::is_same_v<T, StringList> || std::is_same_v<T, IntList> ||
                  std::is_same_v<T, FloatList> || std::is_same_v<T, BoolList> ||
                  std::is_same_v<T, TypeList> || std::is_same_v<T, ShapeList> ||
                  std::is_same_v<T, TensorList> || std::is_same_v<T, FunctionList>) {
      static const T* const empty = new T();
      if (std::holds_alternative<EmptyList>(value_)) return empty;
    }
    return nullptr;
  }
  // "int", "list(type)", as in op signatures; "placeholder", "opaque" or "nothing" otherwise.
  std::string KindName() const;
  // True if this can stand where the signature says `kind`.
  bool HasKind(absl::string_view kind) const;
  std::string ToString() const;
  // Deep equality; tensors by bytes.
  bool operator==(const AttrValue& other) const;

 private:
  Value value_;
};

// The attribute `name` as a T; NotFound or InvalidArgument naming it otherwise.
template <typename T>
StatusOr<T> FindAttr(const AttrMap& attrs, absl::string_view name) {
  const auto found = attrs.find(std::string(name));
  if (found == attrs.end()) return NotFound("No attribute named '", name, "'");
  const T* value = found->second.As<T>();
  if (value == nullptr) {
    return InvalidArgument("Attribute '", name, "' holds ", found->second.KindName(), " ",
                           found->second.ToString());
  }
  return *value;
}
template <typename T>
T FindAttrOr(const AttrMap& attrs, absl::string_view name, T fallback) {
  StatusOr<T> value = FindAttr<T>(attrs, name);
  return value.ok() ? *std::move(value) : fallback;
}

}  // namespace weft
