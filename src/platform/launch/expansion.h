// SPDX-License-Identifier: Apache-2.0
// $(NAME) in commands, arguments and variables, as Kubernetes expands it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace weft::platform {

using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

// $(NAME) becomes its value, or stays when there is none; $$ becomes $, so $$(NAME) is a literal
// $(NAME).
std::string ExpandVariables(absl::string_view text, const VariableLookup& lookup);

}  // namespace weft::platform
