// SPDX-License-Identifier: Apache-2.0
// What simulations have come to: a table for the terminal, and one page with plots.
#pragma once

#include <string>
#include <vector>

#include "platform/scheduling/simulator.h"

namespace weft::platform {

std::string FormatResults(const std::vector<SimulationResult>& results);
std::string FormatFills(const std::vector<FillResult>& results, double load);

// HTML with the plots in it as SVG; it asks for nothing from elsewhere and runs no scripts.
std::string MakeSimulationPage(const std::string& title,
                               const std::vector<SimulationResult>& results,
                               const std::vector<FillResult>& fills);

}  // namespace weft::platform
