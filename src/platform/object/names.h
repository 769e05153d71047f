// SPDX-License-Identifier: Apache-2.0
// What names and keys may look like, told in the words of an API server, so that people find them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::platform {

// Each gives what is wrong with `text`; nothing when it may be used.
using NameProblems = std::vector<std::string>;

// Of containers, volumes, namespaces: "my-name", "123-abc", at most 63.
NameProblems LabelNameProblems(absl::string_view text);
// Of services: the same, a letter first.
NameProblems ServiceNameProblems(absl::string_view text);
// Of most objects: "example.com", at most 253.
NameProblems SubdomainProblems(absl::string_view text);
// Keys of labels and names of resources: "example.com/MyName", "MyName".
NameProblems QualifiedNameProblems(absl::string_view text);
NameProblems LabelValueProblems(absl::string_view text);
// Keys of config maps and secrets, which become names of files.
NameProblems DataKeyProblems(absl::string_view text);
NameProblems VariableNameProblems(absl::string_view text);
NameProblems PortNameProblems(absl::string_view text);

}  // namespace weft::platform
