// SPDX-License-Identifier: Apache-2.0
// The passes that a graph goes through before it becomes a plan, one a file. A pass leaves results
// as they are, bit for bit, and what it cannot improve as it found it.
#pragma once

#include <vector>

#include "base/status.h"
#include "weft/compile/plan.h"

namespace weft::compile {

// Runs the passes that `options` switches on, in order.
Status RunPasses(const PlanOptions& options, Graph* graph);

// skip_identities.cc: readers of an Identity (or StopGradient, ...) read its input. Those of
// reference edges stay, because they take a variable's value at one moment, and those that control
// edges leave.
Status SkipIdentities(const PlanOptions& options, Graph* graph);
// drop_unread.cc: what nobody reads is not computed, though others wait for it, as the gates of
// TensorFlow's optimizers wait for the gradient of a first layer's input.
Status DropUnread(const PlanOptions& options, Graph* graph);
// open_gates.cc: who waits behind a gate of an optimizer for what changes nothing that it could see
// waits no longer.
Status OpenGates(const PlanOptions& options, Graph* graph);
// simplify_loops.cc: in branches and loops, reductions over no axes and views of the same shape go,
// and with them the stacks of shapes that gradients keep.
Status SimplifyLoops(const PlanOptions& options, Graph* graph);
// fold.cc: nodes of constants become constants; so do Shape, ShapeN, Size and Rank of what has a
// known shape. What fails, or makes much of little, is left for the step.
Status FoldConstants(const PlanOptions& options, Graph* graph);
// merge_equal.cc: of nodes that compute the same of the same inputs, one stays.
Status MergeEqualNodes(const PlanOptions& options, Graph* graph);
// sum_products.cc: products of matrices that a loop adds up are added when it is over.
Status SumProductsAfterLoops(const PlanOptions& options, Graph* graph);
// fuse_products.cc: MatMul + bias + activation become one call (_FusedProduct), and so do
// convolution + batch norm by given statistics + bias + sum + activation (_FusedConv).
Status FuseProducts(const PlanOptions& options, Graph* graph);
// fuse_elementwise.cc: trees of element-wise nodes become one pass over tiles (_FusedElementwise).
Status FuseElementwise(const PlanOptions& options, Graph* graph);

// Whether it matters what the node comes before and after: it may read or change what others see.
bool HasEffect(const Node& node);
bool HasReferences(const Node& node);
// Whether conditionals or loops in version-1 form are among the nodes, where some may be dead.
bool HasBranches(const std::vector<Node*>& nodes);
// Lets readers of `from` and those that wait for it turn to `to`, of as many outputs, and removes
// it. `to` inherits what `from` waits for.
void ReplaceNode(Graph* graph, Node* from, Node* to);

}  // namespace weft::compile
