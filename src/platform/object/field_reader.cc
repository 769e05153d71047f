// SPDX-License-Identifier: Apache-2.0
#include "platform/object/field_reader.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"

#include "base/nearest_name.h"

namespace weft::platform {
namespace {

constexpr size_t kMostProblems = 20;

}  // namespace

std::string ListHint(absl::string_view name, const Json& mapping) {
  std::string text = absl::StrCat("; put a dash before its first field:\n      ", name, ":");
  for (const JsonMember& member : mapping.members()) {
    const bool is_first = &member == &mapping.members().front();
    const bool is_short = !member.value.is_array() && !member.value.is_object();
    absl::StrAppend(&text, "\n      ", is_first ? "- " : "  ", member.name, ": ",
                    is_short ? member.value.AsString().value_or(member.value.Dump()) : "...");
  }
  return text;
}

std::string HoldsButAllowed(const Json& value, absl::string_view allowed) {
  return absl::StrCat("holds ", value.Describe(), ", ", allowed);
}

void Problems::Add(const Json& at, absl::string_view path, absl::string_view what,
                   bool is_unknown_field) {
  fields_.push_back({std::string(path), std::string(what), is_unknown_field});
  std::string place = file_;
  const TextPosition position = at.position();
  if (!place.empty() && position.line > 0)
    absl::StrAppend(&place, ":", position.line, ":", position.column);
  if (!place.empty()) place.append(": ");
  problems_.push_back(absl::StrCat(place, path, path.empty() ? "" : ": ", what));
}

void Problems::AddFor(const Json& at, absl::string_view path, absl::string_view reason,
                      std::string what, absl::string_view detail) {
  if (!detail.empty()) absl::StrAppend(&what, ": ", detail);
  Add(at, path, what);
  SetReason(reason);
}

void Problems::SetReason(absl::string_view reason) {
  if (!fields_.empty()) fields_.back().reason = std::string(reason);
}

void Problems::Required(const Json& at, absl::string_view path, absl::string_view detail) {
  AddFor(at, path, "FieldValueRequired", "Required value", detail);
}

void Problems::Invalid(const Json& at, absl::string_view path, const Json& value,
                       absl::string_view detail) {
  InvalidAs(at, path, value.Dump(), detail);
}

void Problems::InvalidAs(const Json& at, absl::string_view path, absl::string_view shown,
                         absl::string_view detail) {
  AddFor(at, path, "FieldValueInvalid", absl::StrCat("Invalid value: ", shown), detail);
}

void Problems::Unsupported(const Json& at, absl::string_view path, const Json& value,
                           const std::vector<std::string>& supported) {
  AddFor(at, path, "FieldValueNotSupported", absl::StrCat("Unsupported value: ", value.Dump()),
         absl::StrCat("supported values: \"", absl::StrJoin(supported, "\", \""), "\""));
}

void Problems::Duplicate(const Json& at, absl::string_view path, const Json& value) {
  AddFor(at, path, "FieldValueDuplicate", absl::StrCat("Duplicate value: ", value.Dump()), "");
}

void Problems::Forbidden(const Json& at, absl::string_view path, absl::string_view detail) {
  AddFor(at, path, "FieldValueForbidden", "Forbidden", detail);
}

void Problems::Missing(const Json& at, absl::string_view path, const Json& value) {
  AddFor(at, path, "FieldValueNotFound", absl::StrCat("Not found: ", value.Dump()), "");
}

void Problems::TooLong(const Json& at, absl::string_view path, int64_t most_bytes) {
  AddFor(at, path, "FieldValueTooLong", "Too long",
         absl::StrCat("may not be more than ", most_bytes, " bytes"));
}

Status Problems::ToStatus() const {
  if (problems_.empty()) return absl::OkStatus();
  // Two checks may stumble over the same field.
  std::set<absl::string_view> seen;
  std::vector<std::string> shown;
  for (const std::string& problem : problems_) {
    if (seen.insert(problem).second && seen.size() <= kMostProblems) shown.push_back(problem);
  }
  if (seen.size() > kMostProblems)
    shown.push_back(absl::StrCat("... and ", seen.size() - kMostProblems, " more"));
  return InvalidArgument(absl::StrJoin(shown, "\n"));
}

FieldReader::FieldReader(const Json& value, std::string path, Problems* problems)
    : value_(value), path_(std::move(path)), problems_(problems) {
  if (!value.is_object()) {
    problems_->Add(value, path_, HoldsButAllowed(value, "a mapping (name: value) is allowed"));
  }
}

std::string FieldReader::PathOf(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

const Json* FieldReader::Find(absl::string_view name) {
  known_.emplace_back(name);
  const Json* const value = value_.Find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void FieldReader::Expected(absl::string_view name, const Json& value, absl::string_view allowed) {
  problems_->Add(value, PathOf(name), HoldsButAllowed(value, allowed));
}

void FieldReader::ReadString(absl::string_view name, std::string* out) {
  const Json* const value = Find(name);
  if (value == nullptr) return;
  if (value->is_string()) {
    *out = value->AsString().value_or("");
  } else if (value->is_array() || value->is_object()) {
    Expected(name, *value, "a text is allowed");
  } else {
    Expected(name, *value,
             absl::StrCat("a text is allowed: write it in quotes, \"", value->Dump(), "\""));
  }
}

void FieldReader::ReadBool(absl::string_view name, bool* out) {
  const Json* const value = Find(name);
  if (value == nullptr) return;
  if (!value->is_bool()) return Expected(name, *value, "true or false is allowed");
  *out = value->AsBool().value_or(false);
}

void FieldReader::ReadInt(absl::string_view name, int64_t min, int64_t max, int64_t* out) {
  const Json* const value = Find(name);
  if (value == nullptr) return;
  const StatusOr<int64_t> number = value->AsInt();
  if (!number.ok() || *number < min || *number > max) {
    const std::string range = max == INT32_MAX ? absl::StrCat("of at least ", min)
                                               : absl::StrCat("from ", min, " to ", max);
    return Expected(name, *value,
                    absl::StrCat("a whole number ", range,
                                 value->is_string() ? ", without quotes," : "", " is allowed"));
  }
  *out = *number;
}

void FieldReader::ReadStrings(absl::string_view name, std::vector<std::string>* out) {
  const Json* const value = Find(name);
  if (value == nullptr) return;
  if (value->is_string()) {
    return Expected(name, *value,
                    absl::StrCat("a list is allowed: write [", value->Dump(),
                                 "], or [\"sh\", \"-c\", ", value->Dump(), "] for a shell's line"));
  }
  std::vector<std::string> texts;
  size_t index = 0;
  for (const Json& item : ReadList(name)) {
    const std::string path = absl::StrCat(PathOf(name), "[", index++, "]");
    if (!item.is_string()) {
      problems_->Add(
          item, path,
          HoldsButAllowed(item, item.is_array() || item.is_object() || item.is_null()
                                    ? std::string("a text is allowed")
                                    : absl::StrCat("a text is allowed: write it in quotes, \"",
                                                   item.Dump(), "\"")));
    }
    texts.push_back(item.AsString().value_or(""));
  }
  *out = std::move(texts);
}

void FieldReader::ReadStringMap(absl::string_view name,
                                std::vector<std::pair<std::string, std::string>>* out) {
  const Json* const value = Find(name);
  if (value == nullptr) return;
  FieldReader reader(*value, PathOf(name), problems_);
  for (const JsonMember& member : value->members()) {
    std::string text;
    reader.ReadString(member.name, &text);
    out->emplace_back(member.name, std::move(text));
  }
}

void FieldReader::ReadChoice(absl::string_view name, const std::vector<std::string>& allowed,
                             int* out) {
  const Json* const value = Find(name);
  if (value == nullptr) return;
  const std::string text = value->AsString().value_or("");
  const auto found = std::find(allowed.begin(), allowed.end(), text);
  if (value->is_string() && found != allowed.end()) {
    *out = static_cast<int>(found - allowed.begin());
    return;
  }
  const std::string nearest = NearestName(text, allowed);
  Expected(name, *value,
           absl::StrCat("allowed are ", absl::StrJoin(allowed, ", "),
                        nearest.empty() ? "" : absl::StrCat(". Did you mean '", nearest, "'?")));
}

const Json::Array& FieldReader::ReadList(absl::string_view name) {
  static const Json::Array* const empty = new Json::Array;
  const Json* const value = Find(name);
  if (value == nullptr) return *empty;
  if (!value->is_array()) {
    Expected(name, *value,
             absl::StrCat("a list is allowed", value->is_object() ? ListHint(name, *value) : ""));
  }
  return value->items();
}

bool FieldReader::Require(absl::string_view name, absl::string_view what) {
  if (Find(name) != nullptr) return true;
  if (value_.is_object()) problems_->Add(value_, PathOf(name), absl::StrCat("missing: ", what));
  return false;
}

void FieldReader::Accept(const std::vector<std::string>& names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void FieldReader::Finish() {
  for (const JsonMember& member : value_.members()) {
    if (std::find(known_.begin(), known_.end(), member.name) != known_.end()) continue;
    const std::set<std::string> sorted(known_.begin(), known_.end());
    const std::vector<std::string> names(sorted.begin(), sorted.end());
    const std::string nearest = NearestName(member.name, names);
    problems_->Add(
        member.value, PathOf(member.name),
        nearest.empty()
            ? absl::StrCat("there is no such field. Known are ", absl::StrJoin(names, ", "))
            : absl::StrCat("there is no such field. Did you mean '", nearest, "'?"),
        /*is_unknown_field=*/true);
  }
}

}  // namespace weft::platform
