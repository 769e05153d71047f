// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/json_query.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace weft::platform {
namespace {

using Found = StatusOr<std::optional<Json>>;

constexpr int kDeepestQuery = 32;

struct Step {
  absl::string_view word;  // "name", "#", "#(...)", "#(...)#"
  absl::string_view rest;  // behind the separator
  bool is_pipe = false;    // which separator that is
};

// Up to a point or a bar outside of brackets and quotes.
StatusOr<Step> CutStep(absl::string_view query) {
  int depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < query.size(); ++i) {
    const char c = query[i];
    if (is_quoted) {
      if (c == '\\') ++i;
      if (c == '"') is_quoted = false;
      continue;
    }
    if (c == '"') is_quoted = true;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) break;
    if (depth == 0 && (c == '.' || c == '|'))
      return Step{query.substr(0, i), query.substr(i + 1), c == '|'};
  }
  if (depth != 0 || is_quoted)
    return InvalidArgument("brackets or quotes of '", query, "' are not closed");
  return Step{query, "", false};
}

struct Comparison {
  absl::string_view path;
  absl::string_view op;  // empty: there is something at the path
  absl::string_view value;
};

Comparison CutComparison(absl::string_view text) {
  int depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth != 0) continue;
    for (const absl::string_view op : {"==", "!=", "<=", ">=", "!%", "=", "<", ">", "%"}) {
      if (text.substr(i, op.size()) != op) continue;
      return {absl::StripAsciiWhitespace(text.substr(0, i)), op,
              absl::StripAsciiWhitespace(text.substr(i + op.size()))};
    }
  }
  return {absl::StripAsciiWhitespace(text), "", ""};
}

// `*` any number of characters, `?` one.
bool FitsPattern(absl::string_view text, absl::string_view pattern) {
  size_t at = 0, star = absl::string_view::npos, resume = 0, p = 0;
  while (at < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[at]) && pattern[p] != '*') {
      ++p;
      ++at;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = at;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

template <typename T>
bool CompareOrdered(const T& a, absl::string_view op, const T& b) {
  if (op == "==" || op == "=") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return false;
}

StatusOr<bool> Compare(const Json& value, absl::string_view op, absl::string_view text) {
  WEFT_ASSIGN_OR_RETURN(const Json wanted, Json::Parse(text));
  if (op == "%" || op == "!%") {
    const std::string pattern = wanted.AsString().value_or("");
    return value.is_string() && FitsPattern(value.AsString().value_or(""), pattern) == (op == "%");
  }
  if (value.is_string() && wanted.is_string())
    return CompareOrdered(value.AsString().value_or(""), op, wanted.AsString().value_or(""));
  if (value.is_number() && wanted.is_number())
    return CompareOrdered(value.AsDouble().value_or(0), op, wanted.AsDouble().value_or(0));
  if (value.kind() == wanted.kind()) {
    return op == "!=" ? !(value == wanted) : (op == "==" || op == "=") && value == wanted;
  }
  return op == "!=";
}

Found Query(const Json& value, absl::string_view query, int depth);

StatusOr<bool> Matches(const Json& item, const Comparison& comparison, int depth) {
  Json at = item;
  if (!comparison.path.empty()) {
    WEFT_ASSIGN_OR_RETURN(std::optional<Json> found, Query(item, comparison.path, depth + 1));
    if (!found.has_value()) return false;
    at = *std::move(found);
  }
  if (comparison.op.empty()) return true;
  return Compare(at, comparison.op, comparison.value);
}

// `#(...)` and `#(...)#`.
Found Filter(const Json& value, absl::string_view word, int depth) {
  absl::string_view text = word.substr(2);
  const bool takes_all = absl::ConsumeSuffix(&text, ")#");
  if (!takes_all && !absl::ConsumeSuffix(&text, ")"))
    return InvalidArgument("'", word, "' is no query: #(name==\"value\") is");
  const Comparison comparison = CutComparison(text);
  const Json::Array alone = value.is_object() ? Json::Array{value} : Json::Array();
  Json all = Json::MakeArray();
  for (const Json& item : value.is_array() ? value.items() : alone) {
    WEFT_ASSIGN_OR_RETURN(const bool fits, Matches(item, comparison, depth));
    if (!fits) continue;
    if (!takes_all) return std::optional<Json>(item);
    all.Append(item);
  }
  if (!takes_all) return std::optional<Json>();
  return std::optional<Json>(std::move(all));
}

// The rest of a query for each item.
Found QueryEach(const Json& items, absl::string_view query, int depth) {
  Json all = Json::MakeArray();
  for (const Json& item : items.items()) {
    WEFT_ASSIGN_OR_RETURN(std::optional<Json> found, Query(item, query, depth + 1));
    if (found.has_value()) all.Append(*std::move(found));
  }
  return std::optional<Json>(std::move(all));
}

Found Take(const Json& value, absl::string_view word, int depth) {
  if (word.substr(0, 2) == "#(") return Filter(value, word, depth);
  if (word == "@this") return std::optional<Json>(value);
  if (word == "#") {
    if (!value.is_array()) return std::optional<Json>();
    return std::optional<Json>(Json(static_cast<int64_t>(value.size())));
  }
  int64_t index = 0;
  if (value.is_array()) {
    if (!absl::SimpleAtoi(word, &index) || index < 0 || index >= static_cast<int64_t>(value.size()))
      return std::optional<Json>();
    return std::optional<Json>(value.items()[static_cast<size_t>(index)]);
  }
  const Json* const member = value.Find(word);
  return member == nullptr ? std::optional<Json>() : std::optional<Json>(*member);
}

Found Query(const Json& value, absl::string_view query, int depth) {
  if (depth > kDeepestQuery) return InvalidArgument("the query is nested too deeply");
  WEFT_ASSIGN_OR_RETURN(const Step step, CutStep(query));
  if (step.word.empty()) return InvalidArgument("'", query, "' has an empty part");
  const bool is_each = step.word == "#" && !step.rest.empty() && !step.is_pipe;
  if (is_each) return QueryEach(value, step.rest, depth);
  WEFT_ASSIGN_OR_RETURN(std::optional<Json> found, Take(value, step.word, depth));
  if (!found.has_value() || step.rest.empty()) return found;
  // Behind a query for all a point goes on in each of them, a bar in their list.
  const bool is_all =
      step.word.size() > 2 && step.word.substr(0, 2) == "#(" && step.word.back() == '#';
  if (is_all && !step.is_pipe) return QueryEach(*found, step.rest, depth);
  return Query(*found, step.rest, depth + 1);
}

}  // namespace

StatusOr<std::optional<Json>> QueryJson(const Json& value, absl::string_view query) {
  StatusOr<std::optional<Json>> found = Query(value, query, 0);
  if (!found.ok()) return Annotate(found.status(), absl::StrCat("the condition ", query));
  return found;
}

std::optional<Json> FirstFound(const std::optional<Json>& found) {
  if (!found.has_value()) return std::nullopt;
  if (found->is_object()) return found;
  if (found->is_array() && found->size() > 0) return found->items()[0];
  return std::nullopt;
}

}  // namespace weft::platform
