// SPDX-License-Identifier: Apache-2.0
// A pod and its parts, typed. Views borrow the object, which holds what its schema allows; what is
// missing reads as empty, 0 or false unless it says otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

// How a run of a container ended.
class TerminationView {
 public:
  explicit TerminationView(const Json& terminated) : json_(terminated) {}

  int exit_code() const;
  int signal() const;
  std::string reason() const;
  std::string message() const;
  absl::Time started() const;   // InfinitePast: it is not told
  absl::Time finished() const;  // the same
  const Json& json() const { return json_; }

 private:
  const Json& json_;
};

// An item of `status.containerStatuses`.
class ContainerStatusView {
 public:
  explicit ContainerStatusView(const Json& status) : json_(status) {}

  std::string name() const;
  int64_t restarts() const;
  bool is_ready() const;
  bool has_started() const;
  bool is_running() const;
  bool is_waiting() const;
  std::string waiting_reason() const;
  std::optional<TerminationView> ended() const;         // of the run that counts
  std::optional<TerminationView> ended_before() const;  // of the run before
  bool has_failed() const { return ended().has_value() && ended()->exit_code() != 0; }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
};

// An item of `spec.containers`.
class ContainerView {
 public:
  explicit ContainerView(const Json& container) : json_(container) {}

  std::string name() const;
  std::string image() const;
  std::string restart_policy() const;  // its own; empty: the pod's
  bool is_always_restarted() const { return restart_policy() == "Always"; }
  bool has_hooks() const;
  const Json::Array& mounts() const;
  const Json* limit(absl::string_view resource) const;  // null: none
  // By its restartPolicyRules.
  bool IsRestartedAfter(int exit_code) const;
  const Json& json() const { return json_; }

 private:
  const Json& json_;
};

class PodView {
 public:
  explicit PodView(const Json& pod) : json_(pod) {}

  std::string label(absl::string_view name) const;
  std::string annotation(absl::string_view name) const;
  absl::Time created() const;

  std::string node() const;  // empty: none yet
  bool is_bound() const { return !node().empty(); }
  std::string scheduler() const;  // "default-scheduler" where it names none
  int64_t priority() const;
  bool has_gates() const;
  std::string restart_policy() const;
  absl::Duration grace() const;
  absl::Duration longest_run() const;  // InfiniteDuration: as long as it wants
  const Json::Array& containers() const;
  const Json::Array& init_containers() const;
  const Json::Array& volumes() const;
  const Json* FindContainer(absl::string_view name) const;      // of `containers`, or null
  const Json* FindInitContainer(absl::string_view name) const;  // of `initContainers`
  const Json* FindVolume(absl::string_view name) const;

  std::string phase() const;
  bool has_succeeded() const { return phase() == "Succeeded"; }
  bool has_failed() const { return phase() == "Failed"; }
  bool is_running() const { return phase() == "Running"; }
  // Neither over nor on its way out.
  bool is_active() const;
  bool is_ready() const;
  absl::Time ready_since() const;  // InfinitePast while it is not
  // Ready for so long.
  bool is_available(int64_t min_ready_seconds, absl::Time now) const;
  bool is_guaranteed() const;   // by its class of quality
  std::string quality() const;  // "Burstable"
  absl::Time started() const;   // InfinitePast: not yet
  absl::Time finished() const;  // the last of its containers; InfinitePast while one runs
  int64_t restarts() const;     // of its containers together
  std::string reason() const;   // of its state, as "Evicted"
  std::string message() const;
  const Json::Array& container_statuses() const;
  const Json::Array& init_container_statuses() const;
  // Of that name, or none.
  std::optional<ContainerStatusView> StatusOf(absl::string_view container) const;
  std::optional<ContainerStatusView> InitStatusOf(absl::string_view container) const;

  const Json& json() const { return json_; }

 private:
  const Json& json_;
};

}  // namespace weft::platform
