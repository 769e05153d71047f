// SPDX-License-Identifier: Apache-2.0
// The probes of one run of a container together: whether it has started, is ready, or is to end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"

#include "base/subprocess.h"
#include "base/threads.h"
#include "net/json.h"
#include "platform/pods/container_environment.h"
#include "platform/pods/probe.h"

namespace weft::platform {

// Not thread-safe.
class ContainerProbes {
 public:
  // What one look has shown. The words are there once, when it comes to it.
  struct Health {
    bool has_started = false;
    bool is_ready = false;
    std::string unready;  // why it is not ready any more
    std::string death;    // why it has to end: "its liveness probe fails: ..."
  };

  // Null when the container has none.
  static std::unique_ptr<ContainerProbes> Begin(const Json& container,
                                                const ContainerCommand& command, absl::Time now);
  // Takes what has come, begins what is due. `grace` is how long it may take to end.
  Health Step(ProcessGuard* guard, ThreadPool* pool, absl::Duration grace, absl::Time now);
  // It was to end, and has had its time.
  bool is_overdue(absl::Time now) const { return now >= kill_time_; }
  absl::Time due() const;

 private:
  explicit ContainerProbes(const ContainerCommand& command) : command_(command) {}
  std::string FindDeath() const;

  const ContainerCommand command_;
  std::optional<Probe> startup_;
  std::optional<Probe> liveness_;
  std::optional<Probe> readiness_;
  bool is_unready_told_ = false;
  absl::Time kill_time_ = absl::InfiniteFuture();  // once it was found dead
};

}  // namespace weft::platform
