// SPDX-License-Identifier: Apache-2.0
// Which nodes of a step workers can compute on their share of the batch, and why others cannot.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "weft/graph/graph.h"
#include "weft/graph/known_shapes.h"
#include "weft/replicate/share.h"

namespace weft::replicate {

// One fed tensor, in the order of the step's feeds.
struct FedTensor {
  std::string name;       // "x:0"
  PartialShape declared;  // what its placeholder demands; unknown rank: anything
  Shape shape;            // of the value that is fed now
};

// What is asked of later values of a feed, so that the same replicated step may take them.
struct FeedUse {
  bool is_split = false;  // its rows are the batch
  PartialShape shape;     // what the analysis built on
};

struct NodeUse {
  bool is_split = false;       // each worker computes it of its share
  std::vector<Share> outputs;  // by port
  // Of a node that runs once on the whole batch: the first on the way to it that had to.
  const Node* cause = nullptr;
  // Inputs that are parts of sums, but whose sum the workers get (as statistics of the batch).
  std::vector<bool> sums;
  // The powers of K by which rows are too large that are brought back before the node reads them;
  // empty if none is.
  std::vector<int> unscale;
  bool in_loop = false;  // of a loop over the batch
};

// What becomes of a step.
struct Analysis {
  // Empty if the step can be replicated, else why not, in words for its author.
  std::string refusal;
  bool is_training = false;  // variables are changed by what is fed or read
  // The sizes that were fed now do not split, others may.
  bool is_size_of_this_feed = false;
  int64_t batch = 0;
  std::vector<FeedUse> feeds;
  std::vector<Node*> order;
  absl::flat_hash_map<const Node*, NodeUse> uses;
  // Sums that workers wait for in mid-step: "'moments/mean' for 'sub'".
  std::vector<std::string> mid_step_sums;
  std::vector<std::string> random_nodes;  // drawn once, for the whole batch
};

// `step` is one signature's graph (compile/prune.h), whose arguments are `feeds`. Nothing is
// changed. InvalidArgument for a graph with a cycle.
StatusOr<Analysis> AnalyseStep(const Graph& step, const std::vector<FedTensor>& feeds, int workers);

}  // namespace weft::replicate
