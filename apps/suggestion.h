// SPDX-License-Identifier: Apache-2.0
// `weft suggestion`, and Katib's calls beside a control plane.
#pragma once

#include <string>
#include <vector>

#include "apps/command.h"

namespace weft::apps {

void AddSuggestion(CLI::App& app, Action* action);
// --katib_address and --suggestion_service ("ALGORITHM=HOST:PORT") of a control plane.
void AddKatibFlags(CLI::App* command, std::string* address, std::vector<std::string>* services);

}  // namespace weft::apps
