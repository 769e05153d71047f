// SPDX-License-Identifier: Apache-2.0
// A program that was written for one device, beside the server that distributes its steps.
#pragma once

#include <string>
#include <vector>

#include <signal.h>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/cluster/cluster_spec.h"

namespace weft::apps {

// The task of a cluster that runs the program: the chief or master, else the first worker, else
// the first of `self`'s job.
cluster::TaskId LeadingTask(const cluster::ClusterSpec& cluster, const cluster::TaskId& self);

// Runs `program` with its sessions that name no target at `target`, until it ends or one of
// `signals`, which the caller holds back, comes; it then has `grace` to end by itself. Its exit
// code.
StatusOr<int> RunServersProgram(const std::vector<std::string>& program, const std::string& target,
                                const sigset_t& signals, absl::Duration grace);

}  // namespace weft::apps
