// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/expansion.h"

#include "absl/strings/str_cat.h"

namespace weft::platform {

std::string ExpandVariables(absl::string_view text, const VariableLookup& lookup) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] != '$' || (next != '$' && next != '(')) {
      out.push_back(text[at]);
      continue;
    }
    if (next == '$') {
      out.push_back('$');
      ++at;
      continue;
    }
    const size_t end = text.find(')', at);
    if (end == absl::string_view::npos) return absl::StrCat(out, text.substr(at));
    const std::string name(text.substr(at + 2, end - at - 2));
    const std::optional<std::string> value = lookup(name);
    absl::StrAppend(&out, value.has_value() ? *value : absl::StrCat("$(", name, ")"));
    at = end;
  }
  return out;
}

}  // namespace weft::platform
