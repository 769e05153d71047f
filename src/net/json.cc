// SPDX-License-Identifier: Apache-2.0
#include "net/json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

constexpr size_t kFewMembers = 16;
constexpr size_t kLongText = 1024;  // from here on copies share it

// Gives the parser its characters and keeps count, so that values and errors have a place.
struct Cursor {
  absl::string_view text;
  size_t next = 0;

  TextPosition PositionOf(size_t offset) const {
    offset = std::min(offset, text.size());
    const absl::string_view before = text.substr(0, offset);
    const size_t line_start =
        before.rfind('\n') == absl::string_view::npos ? 0 : before.rfind('\n') + 1;
    return {1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
            1 + static_cast<int>(offset - line_start)};
  }
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(Cursor* cursor, bool at_end) : cursor_(cursor), at_end_(at_end) {}
  reference operator*() const { return cursor_->text[cursor_->next]; }
  CountingIterator& operator++() {
    ++cursor_->next;
    return *this;
  }
  CountingIterator operator++(int) { return ++*this; }
  bool operator==(const CountingIterator& other) const { return IsAtEnd() == other.IsAtEnd(); }
  bool operator!=(const CountingIterator& other) const { return !(*this == other); }

 private:
  bool IsAtEnd() const { return at_end_ || cursor_->next >= cursor_->text.size(); }
  Cursor* cursor_;
  bool at_end_;
};

// Builds our value from the parser's events, so that its own tree (and recursion) is never made.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const Cursor* cursor, int max_depth) : cursor_(cursor), max_depth_(max_depth) {}

  bool null() override { return Place(Json()); }
  bool boolean(bool value) override { return Place(Json(value)); }
  bool number_integer(number_integer_t value) override { return Place(Json(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) {
      return Place(Json(static_cast<double>(value)));
    }
    return Place(Json(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return Place(Json(value)); }
  bool string(string_t& value) override { return Place(Json(std::move(value))); }
  bool binary(binary_t&) override { return Fail("binary values are not JSON"); }
  bool start_object(size_t) override { return Open(/*is_array=*/false); }
  bool start_array(size_t) override { return Open(/*is_array=*/true); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    Frame& frame = frames_.back();
    if (!frame.IsNew(name)) return Fail(absl::StrCat("\"", name, "\" stands twice"));
    frame.name = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string& last_token,
                   const nlohmann::json::exception&) override {
    const bool at_end = position > cursor_->text.size() || last_token.empty();
    return FailAt(position == 0 ? 0 : position - 1,
                  at_end && position >= cursor_->text.size()
                      ? std::string("the text ends too early")
                      : absl::StrCat("did not expect '", Shorten(last_token), "'"));
  }

  StatusOr<Json> Finish(bool parsed) {
    if (!error_.ok()) return error_;
    if (!parsed) return InvalidArgument("Not JSON");
    return std::move(root_);
  }

 private:
  struct Frame {
    bool is_array;
    TextPosition position;
    Json::Array items;
    Json::Object members;
    std::string name;             // of the member to come
    std::set<std::string> names;  // seen so far, once there are many

    bool IsNew(const std::string& next) {
      if (members.size() < kFewMembers) {
        return std::none_of(members.begin(), members.end(),
                            [&](const JsonMember& member) { return member.name == next; });
      }
      if (names.empty()) {
        for (const JsonMember& member : members) names.insert(member.name);
      }
      return names.insert(next).second;
    }
  };

  static std::string Shorten(const std::string& token) {
    std::string text;
    for (const char c : token.substr(token.size() > 24 ? token.size() - 24 : 0)) {
      text.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
    }
    return text;
  }
  bool Fail(absl::string_view what) { return FailAt(Here(), what); }
  bool FailAt(size_t offset, absl::string_view what) {
    const TextPosition position = cursor_->PositionOf(offset);
    error_ = InvalidArgument("Malformed JSON at line ", position.line, ", column ", position.column,
                             ": ", what);
    return false;
  }
  size_t Here() const { return cursor_->next == 0 ? 0 : cursor_->next - 1; }

  bool Open(bool is_array) {
    if (frames_.size() >= static_cast<size_t>(max_depth_)) {
      return Fail(absl::StrCat("nested deeper than ", max_depth_));
    }
    frames_.push_back(Frame{is_array, Position(), {}, {}, "", {}});
    return true;
  }
  bool Close() {
    Frame& frame = frames_.back();
    Json value = frame.is_array ? Json(std::move(frame.items)) : Json(std::move(frame.members));
    value.set_position(frame.position);
    frames_.pop_back();
    return Attach(std::move(value));
  }
  bool Place(Json value) {
    value.set_position(Position());
    return Attach(std::move(value));
  }
  bool Attach(Json value) {
    if (frames_.empty()) {
      root_ = std::move(value);
    } else if (frames_.back().is_array) {
      frames_.back().items.push_back(std::move(value));
    } else {
      frames_.back().members.push_back({std::move(frames_.back().name), std::move(value)});
    }
    return true;
  }
  // Only moves on, so that all positions together cost one pass over the text.
  TextPosition Position() {
    for (; scanned_ < Here(); ++scanned_) {
      ++position_.column;
      if (cursor_->text[scanned_] == '\n') position_ = {position_.line + 1, 1};
    }
    return position_;
  }

  const Cursor* const cursor_;
  const int max_depth_;
  size_t scanned_ = 0;
  TextPosition position_ = {1, 1};
  std::vector<Frame> frames_;
  Json root_;
  Status error_;
};

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Of a character that does not stand for itself.
void AppendEscape(char c, std::string* out) {
  static constexpr char kControls[] = "btn\0fr";  // from \b on
  out->push_back('\\');
  if (c == '"' || c == '\\') {
    out->push_back(c);
  } else if (c >= '\b' && c <= '\r' && c != '\v') {
    out->push_back(kControls[c - '\b']);
  } else {
    absl::StrAppendFormat(out, "u%04x", static_cast<int>(c));
  }
}

void AppendQuoted(const std::string& text, std::string* out) {
  if (!std::all_of(text.begin(), text.end(), IsAscii)) {
    out->append(
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  out->push_back('"');
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out->append(text, copied, i - copied);
    AppendEscape(c, out);
    copied = i + 1;
  }
  out->append(text, copied);
  out->push_back('"');
}

void AppendNumber(double value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append("null");
    return;
  }
  out->append(nlohmann::json(value).dump());
}

void Write(const Json& json, int indent, int depth, std::string* out) {
  const std::string inner =
      indent > 0 ? "\n" + std::string(static_cast<size_t>(indent * (depth + 1)), ' ') : "";
  const std::string outer =
      indent > 0 ? "\n" + std::string(static_cast<size_t>(indent * depth), ' ') : "";
  switch (json.kind()) {
    case Json::Kind::kNull:
      out->append("null");
      return;
    case Json::Kind::kBool:
      out->append(json.AsBool().value_or(false) ? "true" : "false");
      return;
    case Json::Kind::kInt:
      absl::StrAppend(out, json.AsInt().value_or(0));
      return;
    case Json::Kind::kDouble:
      AppendNumber(json.AsDouble().value_or(0), out);
      return;
    case Json::Kind::kString:
      AppendQuoted(*json.text(), out);
      return;
    case Json::Kind::kArray:
      out->push_back('[');
      for (const Json& item : json.items()) {
        absl::StrAppend(out, &item == &json.items().front() ? "" : ",", inner);
        Write(item, indent, depth + 1, out);
      }
      absl::StrAppend(out, json.size() == 0 ? "" : outer, "]");
      return;
    case Json::Kind::kObject:
      out->push_back('{');
      for (const JsonMember& member : json.members()) {
        absl::StrAppend(out, &member == &json.members().front() ? "" : ",", inner);
        AppendQuoted(member.name, out);
        out->append(indent > 0 ? ": " : ":");
        Write(member.value, indent, depth + 1, out);
      }
      absl::StrAppend(out, json.size() == 0 ? "" : outer, "}");
      return;
  }
}

}  // namespace

StatusOr<Json> Json::Parse(absl::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return InvalidArgument("The JSON text is too long: ", text.size(), " bytes, at most ",
                           limits.max_bytes, " are read");
  }
  Cursor cursor{text};
  Builder builder(&cursor, limits.max_depth);
  bool parsed = false;
  // The parser reports by events, but may still run out of memory, say.
  try {
    parsed = nlohmann::json::sax_parse(CountingIterator(&cursor, false),
                                       CountingIterator(&cursor, true), &builder);
  } catch (const std::exception& e) {
    return InvalidArgument("Malformed JSON: ", e.what());
  }
  return builder.Finish(parsed);
}

std::string Json::Dump(int indent) const {
  std::string text;
  Write(*this, indent, 0, &text);
  return text;
}

StatusOr<bool> Json::AsBool() const {
  if (const bool* value = std::get_if<bool>(&value_)) return *value;
  return InvalidArgument("expected true or false, found ", Describe());
}

StatusOr<int64_t> Json::AsInt() const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return *value;
  const double* value = std::get_if<double>(&value_);
  if (value != nullptr && std::trunc(*value) == *value && std::abs(*value) < 9e15) {
    return static_cast<int64_t>(*value);
  }
  return InvalidArgument("expected a whole number, found ", Describe());
}

StatusOr<double> Json::AsDouble() const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  return InvalidArgument("expected a number, found ", Describe());
}

StatusOr<std::string> Json::AsString() const {
  if (const std::string* const value = text()) return *value;
  return InvalidArgument("expected a string, found ", Describe());
}

const Json::Array& Json::items() const {
  static const Array* const empty = new Array;
  const Array* value = std::get_if<Array>(&value_);
  return value == nullptr ? *empty : *value;
}

const Json::Object& Json::members() const {
  static const Object* const empty = new Object;
  const Object* value = std::get_if<Object>(&value_);
  return value == nullptr ? *empty : *value;
}

const Json* Json::Find(absl::string_view name) const {
  for (const JsonMember& member : members()) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

StatusOr<const Json*> Json::At(absl::string_view name) const {
  if (!is_object()) return InvalidArgument("expected a mapping, found ", Describe());
  const Json* found = Find(name);
  if (found == nullptr) {
    return NotFound("there is no \"", name, "\", only ", Describe());
  }
  return found;
}

void Json::Set(absl::string_view name, Json value) {
  if (!is_object()) value_ = Object();
  for (JsonMember& member : *std::get_if<Object>(&value_)) {
    if (member.name == name) {
      member.value = std::move(value);
      return;
    }
  }
  std::get_if<Object>(&value_)->push_back({std::string(name), std::move(value)});
}

void Json::Append(Json value) {
  if (!is_array()) value_ = Array();
  std::get_if<Array>(&value_)->push_back(std::move(value));
}

Json* Json::FindMutable(absl::string_view name) {
  return const_cast<Json*>(std::as_const(*this).Find(name));
}

bool Json::Erase(absl::string_view name) {
  Object* const members = mutable_members();
  if (members == nullptr) return false;
  return std::erase_if(*members, [&](const JsonMember& member) { return member.name == name; }) > 0;
}

void Json::SetText(std::string value) {
  if (value.size() < kLongText) {
    value_ = std::move(value);
  } else {
    value_ = std::make_shared<const std::string>(std::move(value));
  }
}

bool Json::operator==(const Json& other) const {
  const std::string* const mine = text();
  const std::string* const others = other.text();
  if (mine == nullptr || others == nullptr) return value_ == other.value_;
  return mine == others || *mine == *others;
}

void Json::ShareLongTexts(const Json& other) {
  if (LongText* const mine = std::get_if<LongText>(&value_)) {
    const LongText* const others = std::get_if<LongText>(&other.value_);
    if (others != nullptr && **mine == **others) *mine = *others;
  } else if (Array* const list = mutable_items()) {
    const size_t count = std::min(list->size(), other.items().size());
    for (size_t i = 0; i < count; ++i) (*list)[i].ShareLongTexts(other.items()[i]);
  } else if (Object* const mapping = mutable_members()) {
    for (JsonMember& member : *mapping) {
      if (const Json* const same = other.Find(member.name)) member.value.ShareLongTexts(*same);
    }
  }
}

std::string Json::Describe() const {
  constexpr size_t kMostNames = 6;
  switch (kind()) {
    case Kind::kNull:
      return "nothing (null)";
    case Kind::kArray:
      return items().empty() ? "an empty list" : absl::StrCat("a list of ", items().size());
    case Kind::kObject: {
      if (members().empty()) return "an empty mapping";
      std::vector<std::string> names;
      for (const JsonMember& member : members()) {
        if (names.size() < kMostNames) names.push_back(absl::StrCat("\"", member.name, "\""));
      }
      return absl::StrCat("a mapping with ", absl::StrJoin(names, ", "),
                          members().size() > kMostNames ? ", ..." : "");
    }
    default: {
      std::string text = Dump();
      if (text.size() > 60) text = absl::StrCat(text.substr(0, 57), "...");
      return text;
    }
  }
}

}  // namespace weft
