// SPDX-License-Identifier: Apache-2.0
// The status of a pod, as its API server gets it.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

struct PodStatusFacts {
  std::string phase;
  bool is_overdue = false;
  bool are_inits_done = false;
  bool are_containers_ready = false;
  absl::Time started;
  std::string address;  // its own; empty: that of the machine
  std::string quality;  // the server's to say, and never changed; empty: unknown
  Json init_containers = Json::MakeArray();  // their statuses
  Json containers = Json::MakeArray();
};
Json MakePodStatus(PodStatusFacts facts);

// A container's status while it waits for its next run, from that of its last.
Json WaitingForRestart(Json ended);

}  // namespace weft::platform
