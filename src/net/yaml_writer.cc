// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "net/yaml.h"
#include "net/yaml_scalar.h"

namespace weft {
namespace {

// May stand without quotes: nothing in it means something to YAML, and it reads back as the same
// text.
bool IsPlain(const std::string& text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  const auto is_plain_character = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("_-./+ ()=,$~;<>:@^", c);
  };
  if (!std::all_of(text.begin(), text.end(), is_plain_character)) return false;
  if (absl::StrContains(text, ": ") || absl::StrContains(text, " #")) return false;
  const char first = text.front();
  if (!absl::ascii_isalnum(static_cast<unsigned char>(first)) && first != '/' && first != '_' &&
      first != '.' && first != '$') {
    return false;
  }
  return ResolveYamlScalar(text).is_string();
}

// Several lines, none of which needs quotes.
bool IsBlock(const std::string& text) {
  if (!absl::StrContains(text, '\n') || text.front() == ' ' || text.front() == '\n') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return c == '\n' || (u >= 0x20 && u < 0x7f);
  });
}

std::string Scalar(const Json& value) {
  if (!value.is_string()) return value.Dump();
  const std::string text = value.AsString().value_or("");
  return IsPlain(text) ? text : Json(text).Dump();
}

void Write(const Json& value, size_t indent, bool is_in_list, std::string* out);

void WriteMember(const JsonMember& member, size_t indent, std::string* out) {
  absl::StrAppend(out, Scalar(Json(member.name)), ":");
  const Json& value = member.value;
  const std::string text = value.is_string() ? value.AsString().value_or("") : "";
  if (IsBlock(text)) {
    absl::StrAppend(out, absl::EndsWith(text, "\n") ? " |" : " |-", "\n");
    for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
      absl::StrAppend(out, line.empty() ? "" : std::string(indent + 2, ' '), line, "\n");
    }
  } else if (value.size() == 0 || (!value.is_array() && !value.is_object())) {
    absl::StrAppend(out, " ", Scalar(value), "\n");
  } else {
    out->push_back('\n');
    Write(value, value.is_array() ? indent : indent + 2, false, out);
  }
}

void Write(const Json& value, size_t indent, bool is_in_list, std::string* out) {
  const std::string space(indent, ' ');
  if (value.is_object() && value.size() > 0) {
    for (const JsonMember& member : value.members()) {
      const bool follows_dash = is_in_list && &member == &value.members().front();
      if (!follows_dash) out->append(space);
      WriteMember(member, indent, out);
    }
  } else if (value.is_array() && value.size() > 0) {
    for (const Json& item : value.items()) {
      absl::StrAppend(out, is_in_list && &item == &value.items().front() ? "" : space, "- ");
      Write(item, indent + 2, true, out);
    }
  } else {
    absl::StrAppend(out, Scalar(value), "\n");
  }
}

}  // namespace

std::string DumpYaml(const Json& value) {
  std::string text;
  Write(value, 0, false, &text);
  return text;
}

}  // namespace weft
