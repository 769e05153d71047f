// SPDX-License-Identifier: Apache-2.0
#include "platform/object/runs_weft.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace weft::platform {
namespace {

bool IsProgram(absl::string_view word, absl::string_view name) {
  return word.substr(word.rfind('/') + 1) == name;
}

}  // namespace

bool RunsWeft(const Container& container) {
  // The image of weft has it as its entry point.
  if (container.command.empty()) return !container.args.empty() && container.args[0] == "server";
  std::vector<std::string> words = container.command;
  words.insert(words.end(), container.args.begin(), container.args.end());
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (IsProgram(words[i], "weft") && words[i + 1] == "server") return true;
    if (words[i] == "-m" && words[i + 1] == "weft") return true;
    // In a line for a shell.
    if (absl::StrContains(words[i + 1], "weft server ") ||
        absl::StrContains(words[i + 1], " -m weft ")) {
      return true;
    }
  }
  return false;
}

}  // namespace weft::platform
