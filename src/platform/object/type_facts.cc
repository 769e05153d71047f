// SPDX-License-Identifier: Apache-2.0
#include "platform/object/type_facts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/object/kubernetes_types.h"
#include "platform/object/names.h"
#include "platform/object/object_time.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

using Holds = FieldFacts::Holds;
using Shape = FieldFacts::Shape;

constexpr std::pair<absl::string_view, Holds> kPlain[] = {{"any", Holds::kAny},
                                                          {"string", Holds::kString},
                                                          {"bool", Holds::kBool},
                                                          {"int32", Holds::kInt32},
                                                          {"int64", Holds::kInt64},
                                                          {"number", Holds::kNumber},
                                                          {"bytes", Holds::kBytes},
                                                          {"time", Holds::kTime},
                                                          {"micro-time", Holds::kMicroTime},
                                                          {"quantity", Holds::kQuantity},
                                                          {"int-or-string", Holds::kIntOrString}};

// "containers! []Container"
FieldFacts ReadField(absl::string_view line, std::map<std::string, size_t>* types,
                     std::vector<TypeFacts>* all) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(' ', 1));
  FieldFacts field;
  absl::string_view name = parts.first;
  field.is_required = absl::ConsumeSuffix(&name, "!");
  field.name = std::string(name);
  absl::string_view held = parts.second;
  if (absl::ConsumePrefix(&held, "[]")) field.shape = Shape::kList;
  if (absl::ConsumePrefix(&held, "{}")) field.shape = Shape::kMap;
  for (const auto& [word, holds] : kPlain) {
    if (held != word) continue;
    field.holds = holds;
    return field;
  }
  field.holds = Holds::kObject;
  field.type = &(*all)[(*types)[std::string(held)]];
  return field;
}

std::vector<TypeFacts>* ReadTypes() {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(kKubernetesTypes, '\n', absl::SkipEmpty());
  auto* const all = new std::vector<TypeFacts>;
  std::map<std::string, size_t> types;
  for (const absl::string_view line : lines) {
    if (line[0] == ' ') continue;
    types.emplace(std::string(line), all->size());
    all->push_back({std::string(line), {}});
  }
  // Fields point to types, which stay where they are from here.
  TypeFacts* type = nullptr;
  for (const absl::string_view line : lines) {
    if (line[0] != ' ') {
      type = &(*all)[types[std::string(line)]];
    } else {
      type->fields.push_back(ReadField(line.substr(1), &types, all));
    }
  }
  return all;
}

class Checker {
 public:
  explicit Checker(Problems* problems) : problems_(problems) {}

  bool is_readable() const { return is_readable_; }

  void Check(const Json& value, const TypeFacts& type, const std::string& path) {
    if (!value.is_object()) return Expected(value, path, "a mapping (name: value) is allowed");
    FieldReader reader(value, path, problems_);
    for (const JsonMember& member : value.members()) {
      const FieldFacts* const field = type.Find(member.name);
      if (field == nullptr || member.value.is_null()) continue;
      CheckShape(member.value, *field, reader.PathOf(member.name));
    }
    reader.Accept(type.Names());
    reader.Finish();
  }

  void CheckShape(const Json& value, const FieldFacts& field, const std::string& path) {
    if (field.shape == Shape::kOne) return CheckOne(value, field, path);
    if (field.shape == Shape::kList) return CheckList(value, field, path);
    if (!value.is_object()) return Expected(value, path, "a mapping (name: value) is allowed");
    for (const JsonMember& member : value.members()) {
      if (member.value.is_null()) continue;
      const std::string at = absl::StrCat(path, "[", member.name, "]");
      const Status status = field.holds == Holds::kQuantity ? Quantity::Parse(member.value).status()
                                                            : absl::OkStatus();
      if (status.ok()) {
        CheckOne(member.value, field, at);
      } else {
        AddUnreadable(member.value, at,
                      absl::StrCat(status.message(), DeviceListHint(member.name, member.value)));
      }
    }
  }

 private:
  void CheckList(const Json& value, const FieldFacts& field, const std::string& path) {
    if (value.is_string() && field.holds == Holds::kString) {
      return Expected(
          value, path,
          absl::StrCat("a list is allowed: write [", value.Dump(), "], or [\"sh\", \"-c\", ",
                       value.Dump(), "] for a shell's line"));
    }
    if (!value.is_array()) {
      return Expected(
          value, path,
          absl::StrCat("a list is allowed", value.is_object() ? ListHint(field.name, value) : ""));
    }
    size_t index = 0;
    for (const Json& item : value.items())
      CheckOne(item, field, absl::StrCat(path, "[", index++, "]"));
  }

  void CheckOne(const Json& value, const FieldFacts& field, const std::string& path) {
    switch (field.holds) {
      case Holds::kAny:
        return;
      case Holds::kString:
        if (!value.is_string()) Expected(value, path, TextAllowed(value));
        return;
      case Holds::kTime:
      case Holds::kMicroTime:
        return CheckTime(value, field.holds == Holds::kMicroTime, path);
      case Holds::kBytes:
        return CheckBytes(value, path);
      case Holds::kBool:
        if (!value.is_bool()) Expected(value, path, "true or false is allowed");
        return;
      case Holds::kInt32:
      case Holds::kInt64:
        return CheckWhole(value, field.holds == Holds::kInt32, path);
      case Holds::kNumber:
        if (!value.is_number()) Expected(value, path, "a number is allowed");
        return;
      case Holds::kQuantity: {
        const Status status = Quantity::Parse(value).status();
        if (!status.ok()) AddUnreadable(value, path, status.message());
        return;
      }
      case Holds::kIntOrString:
        if (value.is_string()) return;
        return CheckWhole(value, true, path);
      case Holds::kObject:
        return Check(value, *field.type, path);
    }
  }

  void CheckBytes(const Json& value, const std::string& path) {
    std::string decoded;
    if (!value.is_string()) return Expected(value, path, TextAllowed(value));
    if (!absl::Base64Unescape(value.AsString().value_or(""), &decoded))
      AddUnreadable(value, path, "is not base64");
  }

  // As RFC 3339 has it.
  void CheckTime(const Json& value, bool is_micro, const std::string& path) {
    if (!value.is_string()) return Expected(value, path, TextAllowed(value));
    const std::string text = value.AsString().value_or("");
    const size_t dot = text.find('.');
    const size_t digits =
        dot == std::string::npos
            ? 0
            : std::min(text.find_first_not_of("0123456789", dot + 1), text.size()) - dot - 1;
    if (ParseObjectTime(text) != absl::InfinitePast() && (!is_micro || digits == 6)) return;
    Expected(value, path,
             is_micro ? "a time is allowed, as \"2026-11-21T12:20:02.000000Z\""
                      : "a time is allowed, as \"2026-11-21T12:20:02Z\"");
  }

  void CheckWhole(const Json& value, bool is_small, const std::string& path) {
    const StatusOr<int64_t> number = value.AsInt();
    if (number.ok() && (!is_small || (*number >= INT32_MIN && *number <= INT32_MAX))) return;
    Expected(value, path,
             value.is_string() ? "a whole number, without quotes, is allowed"
                               : "a whole number is allowed");
  }

  static std::string TextAllowed(const Json& value) {
    if (value.is_array() || value.is_object() || value.is_null()) return "a text is allowed";
    return absl::StrCat("a text is allowed: write it in quotes, \"", value.Dump(), "\"");
  }

  void Expected(const Json& value, const std::string& path, absl::string_view allowed) {
    AddUnreadable(value, path, HoldsButAllowed(value, allowed));
  }
  void AddUnreadable(const Json& value, const std::string& path, absl::string_view what) {
    is_readable_ = false;
    problems_->Add(value, path, what);
  }

  Problems* const problems_;
  bool is_readable_ = true;
};

void KeepOne(const FieldFacts& field, Json* value) {
  if (field.holds == Holds::kObject) return KeepKnownFields(*field.type, value);
  if (field.holds != Holds::kQuantity) return;
  const StatusOr<Quantity> quantity = Quantity::Parse(*value);
  if (quantity.ok()) *value = quantity->ToString();
}

}  // namespace

const FieldFacts* TypeFacts::Find(absl::string_view field) const {
  const auto found = std::lower_bound(
      fields.begin(), fields.end(), field,
      [](const FieldFacts& facts, absl::string_view wanted) { return facts.name < wanted; });
  return found == fields.end() || found->name != field ? nullptr : &*found;
}

std::vector<std::string> TypeFacts::Names() const {
  std::vector<std::string> names;
  for (const FieldFacts& field : fields) names.push_back(field.name);
  return names;
}

const std::vector<TypeFacts>& AllTypeFacts() {
  static const auto* const all = ReadTypes();
  return *all;
}

const TypeFacts* FindTypeFacts(absl::string_view name) {
  const std::vector<TypeFacts>& all = AllTypeFacts();
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const TypeFacts& type, absl::string_view wanted) { return type.name < wanted; });
  return found == all.end() || found->name != name ? nullptr : &*found;
}

bool CheckFields(const Json& value, const TypeFacts& type, const std::string& path,
                 Problems* problems) {
  Checker checker(problems);
  checker.Check(value, type, path);
  return checker.is_readable();
}

bool CheckField(const Json& value, const FieldFacts& field, const std::string& path,
                Problems* problems) {
  Checker checker(problems);
  checker.CheckShape(value, field, path);
  return checker.is_readable();
}

void KeepKnownFields(const TypeFacts& type, Json* value) {
  Json::Object* const members = value->mutable_members();
  if (members == nullptr) return;
  members->erase(std::remove_if(members->begin(), members->end(),
                                [&](const JsonMember& member) {
                                  return member.value.is_null() ||
                                         type.Find(member.name) == nullptr;
                                }),
                 members->end());
  for (JsonMember& member : *members) {
    const FieldFacts& field = *type.Find(member.name);
    if (field.shape == Shape::kOne) {
      KeepOne(field, &member.value);
    } else if (Json::Array* const items = member.value.mutable_items()) {
      for (Json& item : *items) KeepOne(field, &item);
    } else if (Json::Object* const entries = member.value.mutable_members()) {
      for (JsonMember& entry : *entries) KeepOne(field, &entry.value);
    }
  }
}

}  // namespace weft::platform
