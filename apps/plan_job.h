// SPDX-License-Identifier: Apache-2.0
// `weft plan tfjob/NAME`: the counts of a job that runs.
#pragma once

#include <string>

#include "apps/command.h"
#include "base/status.h"

namespace weft::apps {

inline constexpr char kJobPrefix[] = "tfjob/";

struct RunningJob {
  ClusterFlags cluster;
  std::string name;
  std::string namespace_name;  // empty: the context's
  std::string prices;          // a price file; empty: all tasks cost alike
};

// Prints what is measured and expected of its counts, and which of them the operator would choose.
Status PrintJobPlan(const RunningJob& running);

}  // namespace weft::apps
