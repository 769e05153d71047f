// SPDX-License-Identifier: Apache-2.0
// How a subcommand joins the program: each file of this folder adds one.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace weft::apps {

// What the chosen subcommand does; the exit code.
using Action = std::function<int()>;

void AddServer(CLI::App& app, Action* action);
void AddInspect(CLI::App& app, Action* action);

}  // namespace weft::apps
