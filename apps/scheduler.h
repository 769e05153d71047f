// SPDX-License-Identifier: Apache-2.0
// What the commands that schedule share.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "platform/scheduling/pod_scheduler.h"

namespace weft::apps {

// spec.schedulerName of pods that want weft's scheduler on any cluster.
inline constexpr char kSchedulerName[] = "weft-scheduler";

struct SchedulingFlags {
  std::string order = "fifo";
  std::string placement = "packing";
  std::string queues;  // a file; empty: there are none
};
// `flags` outlives the parsing.
void AddSchedulingFlags(CLI::App* command, SchedulingFlags* flags);
// InvalidArgument names the file, the queue and the field.
Status ReadSchedulingFlags(const SchedulingFlags& flags, platform::PodScheduler::Options* options);

}  // namespace weft::apps
