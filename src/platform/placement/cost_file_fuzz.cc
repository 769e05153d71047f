// SPDX-License-Identifier: Apache-2.0
// Whatever is read as a cost file becomes a graph, or an error that says why not.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "platform/placement/cost_file.h"
#include "platform/placement/step_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  // Most bytes are no JSON: they also stand in for what is in a list of ops.
  for (const std::string& text :
       {bytes, R"({"format": "weft.dev/costs", "version": 1, "ops": [)" + bytes + "]}"}) {
    const auto costs = weft::platform::ParseCostFile(text, "fuzz");
    if (!costs.ok()) {
      if (costs.status().message().empty()) abort();
      continue;
    }
    const auto graph = weft::platform::MakeStepGraph(*costs, "fuzz");
    if (graph.ok() && graph->ops.empty()) abort();
  }
  return 0;
}
