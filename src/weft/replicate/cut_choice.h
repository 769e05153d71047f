// SPDX-License-Identifier: Apache-2.0
// Which variables of a graph are cut by rows into parts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "weft/graph/node_def.h"
#include "weft/graph/op_registry.h"

namespace weft::replicate {

// Of a variable's node: the devices of its parts, in the order of rows. Part i has rows
// [i * n, (i + 1) * n) of N, where n is N over the number of parts, rounded up.
inline constexpr char kPartsAttr[] = "_parts";

struct CutWish {
  int parts = 2;
  // Variables of fewer bytes stay whole, together with their optimizer's slots.
  int64_t least_bytes = int64_t{1} << 20;
  // Cut only what is more than one part's share of all variables.
  bool only_largest = true;
};

// The names of variables that can be cut, and should be. A variable goes with all others that some
// op changes together with it. It can be cut if its shape is known and each node that reads it is
// one that CutUseOf (cut_rules.h) knows, or takes its value. Nodes that are added to the graph
// later are not seen.
//
// Rows in contiguous parts are the "div" strategy of TensorFlow's partitioned variables; to cut
// what exceeds a server's share is done as in Parallax (Kim et al., EuroSys 2019).
std::set<std::string> ChooseCuts(const OpRegistry& ops, const std::vector<NodeDef>& nodes,
                                 const CutWish& wish);

// Of what the node declares; of unknown shapes one element.
int64_t BytesOfVariable(const NodeDef& node);

}  // namespace weft::replicate
