// SPDX-License-Identifier: Apache-2.0
// The graph of one session: it grows, is placed, and the graphs of steps are cut out of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "weft/compile/place.h"
#include "weft/compile/prune.h"
#include "weft/graph/graph.h"
#include "weft/replicate/replicate.h"
#include "weft/step/signature.h"

namespace weft::step {

// The graph of one signature's step, placed.
struct StepGraph {
  Graph graph;
  std::vector<PartialShape> feed_shapes;  // what placeholders demand, by feed
  std::vector<PartialShape> made_for;     // the signature's, where they are what is demanded
};

// A wish that a step is replicated over workers, and what became of it.
struct Replication {
  replicate::ReplicateOptions options;  // with the feeds in the signature's order
  replicate::Replicated outcome;
};

// InvalidArgument names the feed whose value has no bytes or does not fit. `shapes` are by feed;
// without them any shape fits.
Status CheckFeeds(absl::Span<const PartialShape> shapes, const std::vector<Feed>& feeds);

// Thread-safe.
class SessionGraph {
 public:
  // What is fed and fetched is at `client_device`, in full: where the client's call is.
  SessionGraph(const OpRegistry* ops, std::string client_device);

  // Adds nodes and functions and gives each new node a device: all or nothing.
  Status Extend(GraphDef def, const compile::PlaceOptions& place);
  // `place` as for Extend: bodies of functions that name devices of their own become part of the
  // step's graph. With `replication` the step is one of several workers, where that can be.
  StatusOr<StepGraph> Cut(const compile::Signature& signature, const compile::PlaceOptions& place,
                          Replication* replication = nullptr) const;
  // The same for a partial run: feeds and fetches meet the client in the step's rendezvous
  // (partial_ends.h).
  StatusOr<StepGraph> CutPartial(const compile::Signature& signature,
                                 const compile::PlaceOptions& place) const;
  // InvalidArgument names a fetch that needs one of the feeds `open`, which have not come; the
  // search stops at those in `fed`.
  Status CheckComputable(const std::vector<std::string>& fetches,
                         const std::vector<std::string>& fed,
                         const std::vector<std::string>& open) const;

 private:
  const std::string client_device_;
  mutable absl::Mutex mutex_;
  Graph graph_ ABSL_GUARDED_BY(mutex_);
};

// The part of each task: "/job:ps/replica:0/task:0" -> its nodes. `incarnations` are by device.
StatusOr<std::map<std::string, Graph>> SplitByTask(
    const Graph& step, const std::map<std::string, uint64_t>& incarnations);

}  // namespace weft::step
