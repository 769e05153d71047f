// SPDX-License-Identifier: Apache-2.0
// The one value type for JSON, and for YAML once it is read (yaml.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft {

class Json;

// A template so that it may be named here, before Json is complete.
template <typename Value>
struct NamedValue {
  std::string name;
  Value value;
  bool operator==(const NamedValue& other) const = default;
};
using JsonMember = NamedValue<Json>;

struct JsonLimits {
  size_t max_bytes = size_t{16} << 20;
  int max_depth = 64;
};

// Where a value stood in its text; 0 is unknown.
struct TextPosition {
  int line = 0;
  int column = 0;
};

// A value: copies deeply, compares deeply (positions aside). Objects keep the order of their
// members. Copies share their long texts, which nobody changes. Thread-compatible.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

  Json() = default;
  Json(bool value) : value_(value) {}                     // NOLINT(google-explicit-constructor)
  Json(int value) : value_(int64_t{value}) {}             // NOLINT(google-explicit-constructor)
  Json(int64_t value) : value_(value) {}                  // NOLINT(google-explicit-constructor)
  Json(double value) : value_(value) {}                   // NOLINT(google-explicit-constructor)
  Json(std::string value) { SetText(std::move(value)); }  // NOLINT(google-explicit-constructor)
  Json(const char* value) : Json(std::string(value)) {}   // NOLINT(google-explicit-constructor)
  Json(absl::string_view value)
      : Json(std::string(value)) {}                 // NOLINT(google-explicit-constructor)
  Json(Array value) : value_(std::move(value)) {}   // NOLINT(google-explicit-constructor)
  Json(Object value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  static Json MakeArray() { return Json(Array()); }
  static Json MakeObject() { return Json(Object()); }

  // InvalidArgument with line and column on anything but one JSON text within the limits; a name
  // that stands twice in an object is an error.
  static StatusOr<Json> Parse(absl::string_view text, const JsonLimits& limits = {});
  // With `indent` 0 on one line without spaces. Bytes that are not UTF-8 become U+FFFD, and numbers
  // that JSON cannot hold null.
  std::string Dump(int indent = 0) const;

  Kind kind() const {
    return std::holds_alternative<LongText>(value_) ? Kind::kString
                                                    : static_cast<Kind>(value_.index());
  }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int() const { return kind() == Kind::kInt; }
  bool is_number() const { return kind() == Kind::kInt || kind() == Kind::kDouble; }
  bool is_string() const { return text() != nullptr; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }

  // InvalidArgument: "expected a string, found 12". The caller puts the path in front (Annotate).
  StatusOr<bool> AsBool() const;
  StatusOr<int64_t> AsInt() const;  // also a double that is whole
  StatusOr<double> AsDouble() const;
  StatusOr<std::string> AsString() const;

  // Null unless it is a string. As long as this value is not changed.
  const std::string* text() const {
    if (const LongText* const held = std::get_if<LongText>(&value_)) return held->get();
    return std::get_if<std::string>(&value_);
  }
  // Empty unless it is an array, an object.
  const Array& items() const;
  const Object& members() const;
  size_t size() const { return is_array() ? items().size() : members().size(); }

  // Null when there is no such member or this is no object.
  const Json* Find(absl::string_view name) const;
  StatusOr<const Json*> At(absl::string_view name) const;
  // Replaces or adds at the end. A null becomes an object first; anything else is replaced by one.
  void Set(absl::string_view name, Json value);
  // The same for arrays.
  void Append(Json value);
  // To edit in place. Null when there is no such member, or this is no object.
  Json* FindMutable(absl::string_view name);
  // The items or members to edit; null unless it is an array, an object.
  Array* mutable_items() { return std::get_if<Array>(&value_); }
  Object* mutable_members() { return std::get_if<Object>(&value_); }
  // True if there was such a member.
  bool Erase(absl::string_view name);
  // Long texts that stand at the same places in `other` are held once from now on.
  void ShareLongTexts(const Json& other);

  // The value in a few words for messages: `12`, `"text"`, `a list of 3`, `a mapping with "name",
  // "image"`.
  std::string Describe() const;

  TextPosition position() const { return position_; }
  void set_position(TextPosition position) { position_ = position; }

  bool operator==(const Json& other) const;

 private:
  using LongText = std::shared_ptr<const std::string>;
  void SetText(std::string value);
  // The first ones in the order of Kind.
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object, LongText> value_;
  TextPosition position_;
};

}  // namespace weft
