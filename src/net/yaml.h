// SPDX-License-Identifier: Apache-2.0
// YAML as Kubernetes reads it, converted to Json at once.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft {

struct YamlLimits {
  size_t max_bytes = size_t{1} << 20;
  int max_depth = 64;
  // What aliases may add by standing for their anchors, in nodes and bytes of text together.
  size_t max_alias_expansion = size_t{1} << 20;
};

// The documents of `text`, each with the positions of its values; empty ones are left out. Plain
// words are null, true, false, yes, no, on, off and numbers as in YAML 1.1; `<<` merges. Errors are
// InvalidArgument: "<file>:<line>:<column>: what is wrong", with a hint where a dash seems to be
// missing.
StatusOr<std::vector<Json>> ParseYaml(absl::string_view text, const std::string& file,
                                      const YamlLimits& limits = {});

// One JSON text or any number of YAML documents.
StatusOr<std::vector<Json>> ParseYamlOrJson(absl::string_view text, const std::string& file);

// One document that reads back as the same value: two spaces a level, lists at the level of their
// name, quotes where they are needed, blocks for text of several lines.
std::string DumpYaml(const Json& value);

}  // namespace weft
