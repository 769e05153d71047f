// SPDX-License-Identifier: Apache-2.0
// `weft suggestion`, and Katib's calls beside a control plane.
#pragma once

#include <string>

#include "apps/command.h"

namespace weft::apps {

void AddSuggestion(CLI::App& app, Action* action);
// --katib_address of a control plane.
void AddKatibFlag(CLI::App* command, std::string* address);

}  // namespace weft::apps
