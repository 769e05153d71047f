// SPDX-License-Identifier: Apache-2.0
// A step of one device as a step of several workers.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/replicate/analysis.h"

namespace weft::replicate {

struct ReplicateOptions {
  std::vector<FedTensor> feeds;      // of the step, by the index of their arguments
  std::vector<std::string> workers;  // a device of each, in full
  // Where nodes are that nobody placed: what is split of them moves to the workers, the rest stays.
  std::string default_device;
};

struct Replicated {
  std::string refusal;  // why the step is left as it was; empty if it was replicated
  bool is_training = false;
  bool is_size_of_this_feed = false;
  int64_t batch = 0;
  std::vector<FeedUse> feeds;
  int split_nodes = 0;  // computed by each worker
  int sums = 0;         // put together of what all workers give
  std::vector<std::string> mid_step_sums;
  std::vector<std::string> random_nodes;

  // "12 of its nodes run on each of 2 workers, 4 sums": for logs.
  std::string Describe(int workers) const;
};

// Changes `step` (placed, one signature's; compile/prune.h) so that each worker computes what
// depends on the batch of its rows of the batch, and what they give is put together where it is
// read. Results equal those of the step as it was, but for the order in which sums over the batch
// are taken. If that cannot be, `step` is left alone and the refusal says why. Errors are
// InvalidArgument, for graphs that cannot be run either.
//
// In-graph replication: TensorFlow (OSDI 2016, section 4.4); what a worker's values are to the
// whole is followed as in GSPMD (Xu et al., 2021), with the batch as the one dimension that is
// split.
StatusOr<Replicated> ReplicateStep(const ReplicateOptions& options, Graph* step);

// Whether values of these shapes can go into a step that was replicated for `feeds`.
bool FeedsFit(const std::vector<FeedUse>& feeds, const std::vector<Shape>& shapes, int workers);

}  // namespace weft::replicate
