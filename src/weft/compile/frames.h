// SPDX-License-Identifier: Apache-2.0
// The loops of version-1 graphs: which nodes run in which frame (Yu et al. 2018, "Dynamic control
// flow in large-scale machine learning", section 4).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// One loop of the graph, wherever it runs: nodes between its Enters and its Exits.
struct LoopFrame {
  std::string name;
  int parent = -1;  // -1 for the graph itself, which is frame 0
  int num_enters = 0;
  int parallel_iterations = 1;  // iterations that may be under way at once
  std::vector<int> kernels;     // of a plan: the instructions in it that call kernels
};

struct FrameLayout {
  std::vector<LoopFrame> frames;
  std::vector<int>
      runs_in;  // by node id: the frame a node runs in. An Enter runs in its loop's parent.
  std::vector<int>
      leads_to;  // by node id: the frame its outputs are in; not runs_in for Enter and Exit
};

// `order` has nodes after what they read, but for the edges out of NextIteration. InvalidArgument
// names a node that reads from two frames, an Exit outside loops or a bad attribute.
StatusOr<FrameLayout> LayOutFrames(const std::vector<Node*>& order, int max_id);

}  // namespace weft::compile
