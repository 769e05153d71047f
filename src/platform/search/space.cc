// SPDX-License-Identifier: Apache-2.0
#include "platform/search/space.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weft::platform {
namespace {

using Kind = SearchParameter::Kind;

// Whole numbers of a range must be exact as doubles.
constexpr double kLargestInt = 9007199254740992.0;

constexpr char kForms[] =
    "expected low..high, low..high/step, log(low,high) or {choice,choice,...}";

StatusOr<double> ParseNumber(absl::string_view name, absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) {
    return InvalidArgument("parameter '", name, "': '", text, "' is no number; ", kForms);
  }
  return number;
}

bool IsWhole(absl::string_view text) {
  int64_t number;
  return absl::SimpleAtoi(text, &number);
}

Status ParseChoices(absl::string_view text, SearchParameter* p) {
  p->kind = Kind::kChoice;
  for (absl::string_view choice : absl::StrSplit(text, ',')) {
    choice = absl::StripAsciiWhitespace(choice);
    if (choice.empty()) {
      return InvalidArgument("parameter '", p->name, "' has an empty choice");
    }
    if (absl::c_linear_search(p->choices, choice)) {
      return InvalidArgument("parameter '", p->name, "' has the choice '", choice, "' twice");
    }
    p->choices.emplace_back(choice);
  }
  return absl::OkStatus();
}

Status ParseRange(absl::string_view low, absl::string_view high, absl::string_view step,
                  SearchParameter* p) {
  WEFT_ASSIGN_OR_RETURN(p->low, ParseNumber(p->name, low));
  WEFT_ASSIGN_OR_RETURN(p->high, ParseNumber(p->name, high));
  if (!step.empty()) {
    WEFT_ASSIGN_OR_RETURN(p->step, ParseNumber(p->name, step));
    if (p->step <= 0) {
      return InvalidArgument("parameter '", p->name, "': the step ", step, " is not positive");
    }
  }
  const bool whole = IsWhole(low) && IsWhole(high) && (step.empty() || IsWhole(step));
  p->kind = whole ? Kind::kInt : Kind::kDouble;
  if (p->low > p->high) {
    return InvalidArgument("parameter '", p->name, "': ", low, " is larger than ", high);
  }
  if (whole && std::max(std::abs(p->low), std::abs(p->high)) > kLargestInt) {
    return InvalidArgument("parameter '", p->name, "': whole numbers go up to 2^53");
  }
  return absl::OkStatus();
}

StatusOr<SearchParameter> ParseParameter(absl::string_view word) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(word, absl::MaxSplits('=', 1));
  SearchParameter p;
  p.name = std::string(absl::StripAsciiWhitespace(halves.first));
  absl::string_view value = absl::StripAsciiWhitespace(halves.second);
  if (p.name.empty() || !absl::StrContains(word, '=')) {
    return InvalidArgument("'", word,
                           "' is no parameter: expected name=range, as lr=log(1e-4,1e-1)");
  }
  if (absl::ConsumePrefix(&value, "{") && absl::ConsumeSuffix(&value, "}")) {
    WEFT_RETURN_IF_ERROR(ParseChoices(value, &p));
    return p;
  }
  if (absl::ConsumePrefix(&value, "log(") && absl::ConsumeSuffix(&value, ")")) {
    const std::vector<absl::string_view> ends = absl::StrSplit(value, ',');
    if (ends.size() != 2) {
      return InvalidArgument("parameter '", p.name, "': log takes a low and a high number");
    }
    WEFT_RETURN_IF_ERROR(ParseRange(absl::StripAsciiWhitespace(ends[0]),
                                    absl::StripAsciiWhitespace(ends[1]), "", &p));
    p.logarithmic = true;
    if (p.low <= 0) {
      return InvalidArgument("parameter '", p.name, "': a logarithmic range begins above 0");
    }
    return p;
  }
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(value, absl::MaxSplits("..", 1));
  if (!absl::StrContains(value, "..")) {
    return InvalidArgument("parameter '", p.name, "': '", value, "' is no range; ", kForms);
  }
  const std::pair<absl::string_view, absl::string_view> rest =
      absl::StrSplit(ends.second, absl::MaxSplits('/', 1));
  WEFT_RETURN_IF_ERROR(ParseRange(ends.first, rest.first, rest.second, &p));
  return p;
}

// `name=value|value` after a question mark.
Status ParseCondition(absl::string_view text, const SearchSpace& space, SearchParameter* p) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const SearchParameter& other = space.parameters[i];
    if (other.name != halves.first || other.kind != Kind::kChoice) continue;
    p->depends_on = static_cast<int>(i);
    for (const absl::string_view value : absl::StrSplit(halves.second, '|')) {
      WEFT_ASSIGN_OR_RETURN(const double index, other.Parse(value));
      p->depends_on_values.push_back(index);
    }
    return absl::OkStatus();
  }
  return InvalidArgument("parameter '", p->name, "' depends on '", halves.first,
                         "': a choice that stands before it is allowed");
}

// Words between spaces; those within braces and brackets do not count.
std::vector<std::string> Words(absl::string_view text) {
  std::vector<std::string> words(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' || c == '(' ? 1 : c == '}' || c == ')' ? -1 : 0;
    if (depth <= 0 && absl::ascii_isspace(c)) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

int64_t SearchParameter::size() const {
  if (kind == Kind::kChoice) return static_cast<int64_t>(choices.size());
  if (kind == Kind::kDouble && step == 0) return low == high ? 1 : 0;
  const double count = std::floor((high - low) / (step == 0 ? 1 : step) * (1 + 1e-12)) + 1;
  return static_cast<int64_t>(std::min(count, kLargestInt));
}

double SearchParameter::ToUnit(double value) const {
  if (kind == Kind::kChoice) return (value + 0.5) / static_cast<double>(choices.size());
  if (low == high) return 0.5;
  const double position =
      logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return std::clamp(position, 0.0, 1.0);
}

double SearchParameter::FromUnit(double position) const {
  const double u = std::clamp(position, 0.0, 1.0);
  if (kind == Kind::kChoice) {
    const auto count = static_cast<double>(choices.size());
    return std::min(std::floor(u * count), count - 1);
  }
  const double grid = step != 0 ? step : kind == Kind::kInt ? 1 : 0;
  // Each value of a grid gets an equal part of [0, 1], except in a logarithmic range.
  double value = logarithmic ? low * std::pow(high / low, u) : low + u * (high - low);
  if (grid > 0) {
    const auto last = static_cast<double>(size() - 1);
    const double at = logarithmic ? std::round((value - low) / grid) : std::floor(u * (last + 1));
    value = low + std::clamp(at, 0.0, last) * grid;
  }
  // Ten digits are enough to try, and read better.
  double rounded = value;
  if (kind == Kind::kDouble) (void)absl::SimpleAtod(absl::StrFormat("%.10g", value), &rounded);
  return std::clamp(rounded, low, high);
}

std::string SearchParameter::Format(double value) const {
  if (std::isnan(value)) return "";
  if (kind == Kind::kChoice) return choices[static_cast<size_t>(value)];
  if (kind == Kind::kInt) return absl::StrCat(static_cast<int64_t>(value));
  // The shortest text that reads back as the same number.
  for (int digits = 6; digits < 17; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

StatusOr<double> SearchParameter::Parse(absl::string_view text) const {
  if (kind == Kind::kChoice) {
    const auto found = absl::c_find(choices, text);
    if (found != choices.end()) return static_cast<double>(found - choices.begin());
    return InvalidArgument("'", text, "' is no choice of parameter '", name,
                           "': ", absl::StrJoin(choices, ", "));
  }
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || number < low || number > high) {
    return InvalidArgument("'", text, "' is no value of parameter '", name, "' between ",
                           Format(low), " and ", Format(high));
  }
  return number;
}

std::vector<double> SearchSpace::At(const std::vector<double>& position) const {
  std::vector<double> values;
  for (size_t i = 0; i < position.size(); ++i) {
    values.push_back(parameters[i].FromUnit(position[i]));
  }
  DropInactive(&values);
  return values;
}

void SearchSpace::DropInactive(std::vector<double>* values) const {
  for (size_t i = 0; i < values->size(); ++i) {
    const SearchParameter& p = parameters[i];
    if (p.depends_on < 0) continue;
    if (!absl::c_linear_search(p.depends_on_values, (*values)[static_cast<size_t>(p.depends_on)]))
      (*values)[i] = std::numeric_limits<double>::quiet_NaN();
  }
}

std::vector<std::pair<std::string, std::string>> SearchSpace::Assign(
    const std::vector<double>& values) const {
  std::vector<std::pair<std::string, std::string>> assigned;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i]))
      assigned.emplace_back(parameters[i].name, parameters[i].Format(values[i]));
  }
  return assigned;
}

StatusOr<std::vector<double>> SearchSpace::ReadAssignments(
    const std::vector<std::pair<std::string, std::string>>& assignments) const {
  std::vector<double> values(parameters.size(), std::numeric_limits<double>::quiet_NaN());
  for (const auto& [name, text] : assignments) {
    const auto found =
        absl::c_find_if(parameters, [&](const SearchParameter& p) { return p.name == name; });
    if (found == parameters.end())
      return InvalidArgument("there is no parameter '", name, "' in the space");
    WEFT_ASSIGN_OR_RETURN(values[static_cast<size_t>(found - parameters.begin())],
                          found->Parse(text));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) && parameters[i].depends_on < 0)
      return InvalidArgument("parameter '", parameters[i].name, "' has no value");
  }
  return values;
}

StatusOr<SearchSpace> ParseSearchSpace(absl::string_view text) {
  SearchSpace space;
  for (const std::string& word : Words(text)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits('?', 1));
    WEFT_ASSIGN_OR_RETURN(SearchParameter parameter, ParseParameter(parts.first));
    if (!parts.second.empty())
      WEFT_RETURN_IF_ERROR(ParseCondition(parts.second, space, &parameter));
    for (const SearchParameter& other : space.parameters) {
      if (other.name == parameter.name) {
        return InvalidArgument("parameter '", parameter.name, "' stands twice in the space");
      }
    }
    space.parameters.push_back(std::move(parameter));
  }
  if (space.parameters.empty()) {
    return InvalidArgument("the space has no parameter: expected name=range, as lr=log(1e-4,1e-1)");
  }
  return space;
}

}  // namespace weft::platform
