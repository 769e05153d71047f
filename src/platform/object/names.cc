// SPDX-License-Identifier: Apache-2.0
#include "platform/object/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::platform {
namespace {

constexpr size_t kMostLabel = 63;
constexpr size_t kMostSubdomain = 253;
constexpr size_t kMostPortName = 15;
constexpr char kLabelPattern[] = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr char kQualifiedPattern[] = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

bool IsLowerOrDigit(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

template <typename Predicate>
bool All(absl::string_view text, Predicate predicate) {
  return std::all_of(text.begin(), text.end(), predicate);
}

std::string AtMost(size_t length) {
  return absl::StrCat("must be no more than ", length, " characters");
}

std::string WithPattern(absl::string_view message, absl::string_view pattern,
                        const std::vector<absl::string_view>& examples) {
  std::string text = absl::StrCat(message, " (e.g. ");
  for (size_t i = 0; i < examples.size(); ++i)
    absl::StrAppend(&text, i == 0 ? "" : " or ", "'", examples[i], "', ");
  return absl::StrCat(text, "regex used for validation is '", pattern, "')");
}

bool IsLabel(absl::string_view text) {
  return !text.empty() && text.front() != '-' && text.back() != '-' &&
         All(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

// Letters, digits, and between them also '-', '_' and '.'.
bool IsWord(absl::string_view text) {
  return !text.empty() && absl::ascii_isalnum(text.front()) && absl::ascii_isalnum(text.back()) &&
         All(text,
             [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

std::string QualifiedMessage() {
  return WithPattern(
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
      "alphanumeric character",
      kQualifiedPattern, {"MyName", "my.name", "123-abc"});
}

}  // namespace

NameProblems LabelNameProblems(absl::string_view text) {
  NameProblems problems;
  if (text.size() > kMostLabel) problems.push_back(AtMost(kMostLabel));
  if (!IsLabel(text) && SubdomainProblems(text).empty()) {
    problems.push_back("must not contain dots");
  } else if (!IsLabel(text)) {
    problems.push_back(WithPattern(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character",
        kLabelPattern, {"my-name", "123-abc"}));
  }
  return problems;
}

NameProblems ServiceNameProblems(absl::string_view text) {
  NameProblems problems;
  if (text.size() > kMostLabel) problems.push_back(AtMost(kMostLabel));
  if (!IsLabel(text) || !absl::ascii_islower(text.front())) {
    problems.push_back(WithPattern(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
        "an alphabetic character, and end with an alphanumeric character",
        "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return problems;
}

NameProblems SubdomainProblems(absl::string_view text) {
  NameProblems problems;
  if (text.size() > kMostSubdomain) problems.push_back(AtMost(kMostSubdomain));
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  if (!std::all_of(parts.begin(), parts.end(), IsLabel)) {
    problems.push_back(WithPattern(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
        "or '.', and must start and end with an alphanumeric character",
        absl::StrCat(kLabelPattern, "(\\.", kLabelPattern, ")*"), {"example.com"}));
  }
  return problems;
}

NameProblems QualifiedNameProblems(absl::string_view text) {
  NameProblems problems;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (parts.size() > 2) {
    return {absl::StrCat("a qualified name ", QualifiedMessage(),
                         " with an optional DNS subdomain prefix and '/' (e.g. "
                         "'example.com/MyName')")};
  }
  if (parts.size() == 2 && parts[0].empty()) {
    problems.push_back("prefix part must be non-empty");
  } else if (parts.size() == 2) {
    for (const std::string& problem : SubdomainProblems(parts[0]))
      problems.push_back(absl::StrCat("prefix part ", problem));
  }
  const absl::string_view name = parts.back();
  if (name.empty()) problems.push_back("name part must be non-empty");
  if (name.size() > kMostLabel) problems.push_back(absl::StrCat("name part ", AtMost(kMostLabel)));
  if (!IsWord(name)) problems.push_back(absl::StrCat("name part ", QualifiedMessage()));
  return problems;
}

NameProblems LabelValueProblems(absl::string_view text) {
  NameProblems problems;
  if (text.size() > kMostLabel) problems.push_back(AtMost(kMostLabel));
  if (!text.empty() && !IsWord(text)) {
    problems.push_back(WithPattern(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character",
        absl::StrCat("(", kQualifiedPattern, ")?"), {"MyValue", "my_value", "12345"}));
  }
  return problems;
}

NameProblems DataKeyProblems(absl::string_view text) {
  NameProblems problems;
  if (text.size() > kMostSubdomain) problems.push_back(AtMost(kMostSubdomain));
  const bool is_word = !text.empty() && All(text, [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (!is_word) {
    problems.push_back(
        WithPattern("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                    "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  if (text == ".") {
    problems.push_back("must not be '.'");
  } else if (text == "..") {
    problems.push_back("must not be '..'");
  } else if (absl::StartsWith(text, "..")) {
    problems.push_back("must not start with '..'");
  }
  return problems;
}

NameProblems VariableNameProblems(absl::string_view text) {
  if (text.empty()) return {"environment variable name must be non-empty"};
  if (All(text, [](char c) { return absl::ascii_isprint(c) && c != '='; })) return {};
  return {
      "a valid environment variable name must consist only of printable ASCII characters other "
      "than '='"};
}

NameProblems PortNameProblems(absl::string_view text) {
  NameProblems problems;
  if (text.size() > kMostPortName) problems.push_back(AtMost(kMostPortName));
  if (text.empty() || !All(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; })) {
    problems.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::any_of(text.begin(), text.end(), absl::ascii_islower))
    problems.push_back("must contain at least one letter (a-z)");
  if (absl::StrContains(text, "--")) problems.push_back("must not contain consecutive hyphens");
  if (!text.empty() && (text.front() == '-' || text.back() == '-'))
    problems.push_back("must not begin or end with a hyphen");
  return problems;
}

}  // namespace weft::platform
