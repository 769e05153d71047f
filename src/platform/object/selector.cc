// SPDX-License-Identifier: Apache-2.0
#include "platform/object/selector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr size_t kMostSelectorBytes = 64 << 10;

Status Malformed(absl::string_view part, absl::string_view what) {
  return InvalidArgument("unable to parse requirement '", part, "': ", what);
}

// Splits at commas that stand outside of parentheses.
std::vector<absl::string_view> SplitParts(absl::string_view text) {
  std::vector<absl::string_view> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(absl::StripAsciiWhitespace(text.substr(start, i - start)));
      start = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return parts;
}

bool IsKey(absl::string_view key) {
  if (key.empty() || key.size() > 317) return false;
  return std::all_of(key.begin(), key.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
           c == '/';
  });
}

std::string FieldText(const Json& object, const std::string& path) {
  const Json* at = &object;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    at = at->Find(name);
    if (at == nullptr || at->is_null()) return "";
  }
  return at->is_string() ? at->AsString().value_or("") : at->Dump();
}

}  // namespace

StatusOr<Selector::Requirement> Selector::ParseRequirement(absl::string_view text) {
  Requirement requirement;
  const auto finish = [&](absl::string_view key) -> StatusOr<Requirement> {
    requirement.key = std::string(absl::StripAsciiWhitespace(key));
    if (!IsKey(requirement.key)) return Malformed(text, "the key is not a label's name");
    return std::move(requirement);
  };
  if (absl::StartsWith(text, "!") && !absl::StrContains(text, '=')) {
    requirement.op = Operator::kDoesNotExist;
    return finish(text.substr(1));
  }
  const size_t paren = text.find('(');
  if (paren != absl::string_view::npos) {
    if (!absl::EndsWith(text, ")")) return Malformed(text, "expected ')' at the end");
    const std::vector<absl::string_view> words =
        absl::StrSplit(text.substr(0, paren), ' ', absl::SkipWhitespace());
    if (words.size() != 2 || (words[1] != "in" && words[1] != "notin")) {
      return Malformed(text, "expected 'key in (a,b)' or 'key notin (a,b)'");
    }
    requirement.op = words[1] == "in" ? Operator::kIn : Operator::kNotIn;
    for (const absl::string_view value :
         absl::StrSplit(text.substr(paren + 1, text.size() - paren - 2), ',')) {
      requirement.values.emplace_back(absl::StripAsciiWhitespace(value));
    }
    return finish(words[0]);
  }
  const size_t at = text.find_first_of("=!<>");
  if (at == absl::string_view::npos) {
    if (absl::StrContains(text, ' ')) return Malformed(text, "expected '=', 'in' or 'notin'");
    requirement.op = Operator::kExists;
    return finish(text);
  }
  absl::string_view rest = text.substr(at);
  if (absl::ConsumePrefix(&rest, "!=")) {
    requirement.op = Operator::kNotIn;
  } else if (absl::ConsumePrefix(&rest, ">")) {
    requirement.op = Operator::kGreater;
  } else if (absl::ConsumePrefix(&rest, "<")) {
    requirement.op = Operator::kLess;
  } else if (!absl::ConsumePrefix(&rest, "==") && !absl::ConsumePrefix(&rest, "=")) {
    return Malformed(text, "expected '=', '==' or '!='");
  }
  requirement.values.emplace_back(absl::StripAsciiWhitespace(rest));
  if (requirement.values[0].find_first_of("=!<>") != std::string::npos) {
    return Malformed(text, "the value holds an operator");
  }
  return finish(text.substr(0, at));
}

StatusOr<Selector> Selector::ParseLabels(absl::string_view text) {
  Selector selector;
  text = absl::StripAsciiWhitespace(text);
  if (text.size() > kMostSelectorBytes)
    return Malformed(text.substr(0, 20), "the selector is too long");
  if (text.empty()) return selector;
  for (const absl::string_view part : SplitParts(text)) {
    WEFT_ASSIGN_OR_RETURN(Requirement requirement, ParseRequirement(part));
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

StatusOr<Selector> Selector::ParseFields(absl::string_view text) {
  WEFT_ASSIGN_OR_RETURN(Selector selector, ParseLabels(text));
  for (Requirement& requirement : selector.requirements_) {
    requirement.is_field = true;
    if (requirement.op != Operator::kIn && requirement.op != Operator::kNotIn) {
      return Malformed(requirement.key, "fields are compared with '=' or '!='");
    }
  }
  return selector;
}

bool Selector::ExcludesName(absl::string_view name) const {
  return std::any_of(
      requirements_.begin(), requirements_.end(), [&](const Requirement& requirement) {
        return requirement.is_field && requirement.key == "metadata.name" &&
               requirement.op == Operator::kIn &&
               std::find(requirement.values.begin(), requirement.values.end(), name) ==
                   requirement.values.end();
      });
}

std::vector<std::string> Selector::Keys() const {
  std::vector<std::string> keys;
  for (const Requirement& requirement : requirements_) keys.push_back(requirement.key);
  return keys;
}

bool Selector::MatchesOne(const Requirement& requirement, const Json& object) {
  bool is_there = true;
  std::string value;
  if (requirement.is_field) {
    value = FieldText(object, requirement.key);
  } else {
    const Json* const label = FindField(object, {"metadata", "labels", requirement.key});
    is_there = label != nullptr;
    if (is_there) value = label->AsString().value_or("");
  }
  const auto is_listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), value) !=
           requirement.values.end();
  };
  int64_t held = 0;
  int64_t bound = 0;
  switch (requirement.op) {
    case Operator::kExists:
      return is_there;
    case Operator::kDoesNotExist:
      return !is_there;
    case Operator::kIn:
      return is_there && is_listed();
    case Operator::kNotIn:
      return !is_there || !is_listed();
    case Operator::kGreater:
    case Operator::kLess:
      if (!absl::SimpleAtoi(value, &held) || !absl::SimpleAtoi(requirement.values[0], &bound))
        return false;
      return requirement.op == Operator::kGreater ? held > bound : held < bound;
  }
  return false;
}

bool Selector::Matches(const Json& object) const {
  return std::all_of(
      requirements_.begin(), requirements_.end(),
      [&](const Requirement& requirement) { return MatchesOne(requirement, object); });
}

StatusOr<Selector> Selector::FromObject(const Json& selector) {
  Selector parsed;
  if (const Json* const labels = FindField(selector, {"matchLabels"})) {
    for (const JsonMember& member : labels->members()) {
      parsed.requirements_.push_back(
          {false, member.name, Operator::kIn, {member.value.AsString().value_or("")}});
    }
  }
  const Json* const expressions = FindField(selector, {"matchExpressions"});
  if (expressions == nullptr) return parsed;
  for (const Json& expression : expressions->items()) {
    static constexpr std::pair<absl::string_view, Operator> kOperators[] = {
        {"In", Operator::kIn},
        {"NotIn", Operator::kNotIn},
        {"Exists", Operator::kExists},
        {"DoesNotExist", Operator::kDoesNotExist}};
    const std::string word = StringField(expression, {"operator"});
    Requirement requirement;
    requirement.key = StringField(expression, {"key"});
    const auto known = std::find_if(std::begin(kOperators), std::end(kOperators),
                                    [&](const auto& one) { return one.first == word; });
    if (known == std::end(kOperators))
      return InvalidArgument("\"", word, "\" is not a valid label selector operator");
    requirement.op = known->second;
    if (const Json* const values = FindField(expression, {"values"})) {
      for (const Json& value : values->items())
        requirement.values.push_back(value.AsString().value_or(""));
    }
    parsed.requirements_.push_back(std::move(requirement));
  }
  return parsed;
}

std::string LabelSelectorOf(const std::vector<std::pair<std::string, std::string>>& labels) {
  return absl::StrJoin(labels, ",", absl::PairFormatter("="));
}

}  // namespace weft::platform
