// SPDX-License-Identifier: Apache-2.0
// Where the containers of a pod stand, and what follows from that for the pod: its phase, who may
// begin, who is started again. Nothing here runs anything.
#pragma once

#include <string>
#include <vector>

#include "platform/object/pod_view.h"

namespace weft::platform {

enum class ContainerState { kWaiting, kRunning, kTerminated };
// A sidecar is an init container that goes on running beside the main ones.
enum class ContainerKind { kInit, kSidecar, kMain };
enum class ContainerFate { kRuns, kWillRestart, kSucceeded, kFailed };

struct ContainerStanding {
  ContainerKind kind = ContainerKind::kMain;
  ContainerState state = ContainerState::kWaiting;
  ContainerFate fate = ContainerFate::kRuns;
  bool is_past = false;  // what comes after it may begin

  bool is_init() const { return kind != ContainerKind::kMain; }
  bool is_sidecar() const { return kind == ContainerKind::kSidecar; }
};
using ContainerStandings = std::vector<ContainerStanding>;  // init containers first

// Whether one that has ended so is started again, as its pod's policy and its own say; `container`
// may be null.
bool IsRestarted(ContainerKind kind, int exit_code, const std::string& pod_policy,
                 const ContainerView* container);

bool AreInitsDone(const ContainerStandings& all);
bool HasInitFailed(const ContainerStandings& all);
// All main ones have ended for good.
bool AreMainsOver(const ContainerStandings& all);
// A sidecar, or one that is none, runs.
bool Runs(const ContainerStandings& all, bool is_sidecar);

struct PodEnd {
  bool is_terminating = false;
  bool is_overdue = false;  // it has run for longer than it may
};
// "Pending", "Running", "Succeeded", "Failed"
std::string PhaseOf(const ContainerStandings& all, const PodEnd& end);

}  // namespace weft::platform
