// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_standing.h"

#include <algorithm>

namespace weft::platform {

bool IsRestarted(ContainerKind kind, int exit_code, const std::string& pod_policy,
                 const ContainerView* container) {
  if (kind == ContainerKind::kSidecar) return true;
  const bool is_init = kind == ContainerKind::kInit;
  std::string policy = pod_policy;
  if (container != nullptr && !is_init) {
    if (container->IsRestartedAfter(exit_code)) return true;
    const std::string own = container->restart_policy();
    if (!own.empty()) policy = own;
  }
  if (exit_code == 0) return !is_init && policy == "Always";
  return policy != "Never";
}

bool AreInitsDone(const ContainerStandings& all) {
  return std::all_of(all.begin(), all.end(),
                     [](const auto& one) { return !one.is_init() || one.is_past; });
}

bool HasInitFailed(const ContainerStandings& all) {
  return std::any_of(all.begin(), all.end(), [](const auto& one) {
    return one.is_init() && one.fate == ContainerFate::kFailed;
  });
}

bool AreMainsOver(const ContainerStandings& all) {
  return AreInitsDone(all) && std::all_of(all.begin(), all.end(), [](const auto& one) {
           return one.is_init() || one.fate == ContainerFate::kSucceeded ||
                  one.fate == ContainerFate::kFailed;
         });
}

bool Runs(const ContainerStandings& all, bool is_sidecar) {
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    return one.is_sidecar() == is_sidecar && one.state == ContainerState::kRunning;
  });
}

std::string PhaseOf(const ContainerStandings& all, const PodEnd& end) {
  if (end.is_overdue && !Runs(all, true) && !Runs(all, false)) return "Failed";
  if (HasInitFailed(all)) return Runs(all, true) ? "Pending" : "Failed";
  if (!AreInitsDone(all)) return "Pending";
  bool has_failed = false;
  bool has_begun = false;
  bool goes_on = false;
  for (const ContainerStanding& one : all) {
    if (one.is_init()) continue;
    has_begun = has_begun || one.state != ContainerState::kWaiting;
    has_failed = has_failed || one.fate == ContainerFate::kFailed;
    goes_on =
        goes_on || one.fate == ContainerFate::kRuns || one.fate == ContainerFate::kWillRestart;
  }
  if (!has_begun) return end.is_terminating ? "Failed" : "Pending";
  if (goes_on || Runs(all, true)) return "Running";
  return has_failed ? "Failed" : "Succeeded";
}

}  // namespace weft::platform
