// SPDX-License-Identifier: Apache-2.0
// Which processes `weft exec` runs in one container, from its program, WEFT_PROCESSES and
// TF_CONFIG. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

struct ProcessPlan {
  std::string name;  // "worker-3"
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", beside what all of them inherit
  std::string working_directory;         // empty: ours
  std::string restart;                   // "Never", "OnFailure", "Always", "ExitCode"
  bool serves = false;  // never ends by itself: it is ended when the others are done
};

struct ProcessWish {
  std::vector<std::string> program;
  // Empty: one process. `2` or `{"worker": 2}`: so many in each pod (of that task type), between
  // which the hosts of TF_CONFIG are spread out: host:2222 becomes host:2222 and host:2223. A list
  // says each process by itself:
  // [{"name": "ps", "command": ["weft", "server"], "args": [], "env": {"A": "b"}, "workingDir":
  // "/", "restart": "Never",
  //   "serves": true}, {"name": "worker", "gpus": 1}], where a missing command is the program. GPUs
  // that processes are given by number are those that we see, each for one of them.
  std::string processes;
  std::string visible_gpus;  // CUDA_VISIBLE_DEVICES; empty: all, from 0 on
  std::string tf_config;     // empty: there is none
  std::string restart = "ExitCode";
};

// InvalidArgument tells what WEFT_PROCESSES or TF_CONFIG holds and how to write it.
StatusOr<std::vector<ProcessPlan>> PlanProcesses(const ProcessWish& wish);

// How many ports in a row a task of the cluster wants for a WEFT_PROCESSES: 1 when it makes no
// sense.
int64_t PortsOfATask(absl::string_view processes);

}  // namespace weft::platform
