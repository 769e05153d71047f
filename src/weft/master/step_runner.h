// SPDX-License-Identifier: Apache-2.0
// What a master session runs its steps with: this task alone, or a cluster.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "weft/graph/node_def.h"
#include "weft/kernel/rendezvous.h"
#include "weft/session/session.h"

namespace weft::master {

struct StepResult {
  std::vector<Tensor> fetches;
  step::RunMetadata metadata;
};

// A partial run that has begun: its feeds come, and its fetches go, through the rendezvous.
struct PartialStart {
  Ref<Rendezvous> rendezvous;
  std::string client_device;
  std::vector<PartialShape> feed_shapes;  // what placeholders demand, by feed
};

// A graph that grows, and steps of it. Thread-safe. Outlives its running steps.
class StepRunner {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<StepResult>)>;
  struct Step {
    std::vector<step::Feed> feeds;
    std::vector<std::string> fetches;
    std::vector<std::string> targets;
    bool trace = false;
    bool partition_graphs = false;
    // Feeds may have other shapes than their placeholders say.
    bool any_shape = false;
    // The step's own; cancelled by whoever fails first. Shared with frames that may cancel it late.
    std::shared_ptr<Cancellation> cancellation;
    // Set for a partial run, whose feeds are names without values: called once, before any part
    // runs, unless the step cannot begin.
    absl::AnyInvocable<void(PartialStart)> started;
  };

  virtual ~StepRunner() = default;
  // All or nothing; running steps are not disturbed. May wait for other tasks, until `cancellation`
  // (may be null).
  virtual Status Extend(GraphDef graph, Cancellation* cancellation) = 0;
  // `done` runs once, maybe before this returns; every part of the step has ended by then.
  virtual void Run(Step step, Done done) = 0;
  // Of a partial run: InvalidArgument names a fetch that needs one of the feeds `open`.
  virtual Status CheckComputable(const std::vector<std::string>& fetches,
                                 const std::vector<std::string>& fed,
                                 const std::vector<std::string>& open) = 0;
};

}  // namespace weft::master
