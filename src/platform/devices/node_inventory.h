// SPDX-License-Identifier: Apache-2.0
// Tells a cluster what its node has: labels, annotations and, where no kubelet does it, amounts.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "platform/devices/machine.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Which agent tells of a node, and that it is alive: {"machine", "host", "beat"}.
inline constexpr char kAgentAnnotation[] = "weft.dev/agent";

// Of one thread. Borrows store and clock.
class NodeInventory {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const Clock* clock = nullptr;
    std::string node;
    std::string machine;  // of which there can be one agent only; it takes over from itself at once
    std::string host;     // for people
    bool tells_amounts = false;  // there is no kubelet that counts devices
    absl::Duration heartbeat = absl::Minutes(1);
  };
  explicit NodeInventory(Options options);

  // To be called often: writes what has changed, and a sign of life. FailedPrecondition: another
  // agent tells of this node and is alive; we shall leave it alone. NotFound: there is no such node
  // yet. Other errors pass.
  Status Step(const Machine& machine);
  // Nobody tells of the node any more: what was told stays.
  void Leave();
  // Whether the node is ours to tell of.
  bool is_ours() const { return is_ours_; }

 private:
  StatusOr<bool> MayTell(const Json& node);
  Status Write(const Json& node, const Machine& machine);
  Status WriteMetadata(const Json& node, const Json& described);
  Json Claim();

  const Options options_;
  bool is_ours_ = false;
  bool is_without_reserved_labels_ = false;
  std::string others_claim_;  // that we saw
  absl::Duration others_since_;
  int64_t beat_ = 0;
  Json told_;  // what the node says by us
  absl::Duration next_beat_ = -absl::InfiniteDuration();
};

}  // namespace weft::platform
