// SPDX-License-Identifier: Apache-2.0
#include "weft/step/session_graph.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "weft/compile/late_reads.h"
#include "weft/compile/lower_calls.h"
#include "weft/compile/partition.h"
#include "weft/gradients/symbolic_gradient.h"
#include "weft/graph/function_check.h"
#include "weft/graph/import.h"
#include "weft/replicate/batch_norm.h"
#include "weft/replicate/cut_variables.h"
#include "weft/step/partial_ends.h"

namespace weft::step {
namespace {

// A step that becomes larger than this by looking into its calls is left closed.
constexpr int kMostOpened = 1'000'000;

// What a feed for `fed` must look like: any shape, unless it is a placeholder that says.
PartialShape FeedShape(const Graph& graph, const Endpoint& fed) {
  PartialShape shape;
  if (fed.node->traits().source == ValueSource::kPlaceholder) {
    shape = FindAttrOr<PartialShape>(fed.node->attrs(), "shape", PartialShape());
  }
  // Before version 24 a Placeholder without sizes meant "any shape".
  if (graph.versions().producer < 24 && shape.rank() == 0) return PartialShape();
  return shape;
}

// The step with the bodies of its functions in the place of calls, branches and loops, and batch
// normalization as sums: what is hidden in them can then be split.
StatusOr<Graph> Opened(const compile::PlaceOptions& place, const std::string& device,
                       const Graph& step) {
  Graph open = step.Clone();
  // Functions call functions; one that calls itself has no end.
  while (open.num_nodes() < kMostOpened) {
    WEFT_ASSIGN_OR_RETURN(const bool lowered, compile::LowerCalls(device, &open));
    if (!lowered) break;
    WEFT_RETURN_IF_ERROR(compile::PlaceGraph(place, &open));
  }
  WEFT_RETURN_IF_ERROR(replicate::ExpandBatchNorm(&open));
  return open;
}

// Changes the step only if it can be replicated.
Status Replicate(const compile::PlaceOptions& place, Replication* replication, Graph* step) {
  if (compile::HasCalls(*step) || replicate::HasBatchNorm(*step)) {
    StatusOr<Graph> open = Opened(place, replication->options.default_device, *step);
    if (open.ok()) {
      WEFT_ASSIGN_OR_RETURN(replication->outcome,
                            replicate::ReplicateStep(replication->options, &*open));
      if (replication->outcome.refusal.empty()) *step = *std::move(open);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(replication->outcome,
                          replicate::ReplicateStep(replication->options, step));
    if (!replication->outcome.refusal.empty()) {
      absl::StrAppend(&replication->outcome.refusal,
                      ", which cannot be opened: ", open.status().message());
    }
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(replication->outcome, replicate::ReplicateStep(replication->options, step));
  return absl::OkStatus();
}

}  // namespace

Status CheckFeeds(absl::Span<const PartialShape> shapes, const std::vector<Feed>& feeds) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const auto& [name, value] = feeds[i];
    if (!value.IsInitialized()) {
      return InvalidArgument("Tensor ", name,
                             " is fed a tensor that is not initialized: was it made of as many "
                             "values as its shape has elements?");
    }
    if (i < shapes.size() && !shapes[i].IsCompatibleWith(value.shape())) {
      return InvalidArgument("Cannot feed value of shape ", value.shape().ToString(),
                             " for Tensor '", name, "', which has shape ", shapes[i].ToString());
    }
  }
  return absl::OkStatus();
}

SessionGraph::SessionGraph(const OpRegistry* ops, std::string client_device)
    : client_device_(std::move(client_device)), graph_(ops) {}

Status SessionGraph::Extend(GraphDef def, const compile::PlaceOptions& place) {
  std::vector<std::string> functions;
  absl::MutexLock lock(&mutex_);
  if (gradients::AsksForGradients(def)) {
    WEFT_RETURN_IF_ERROR(gradients::ResolveSymbolicGradients(graph_, &def));
  }
  for (const FunctionDef& function : def.functions) {
    if (graph_.FindFunction(function.signature.name) == nullptr)
      functions.push_back(function.signature.name);
  }
  const int old_end = graph_.max_id();
  const Versions old_versions = graph_.versions();
  WEFT_RETURN_IF_ERROR(ImportGraph(std::move(def), ImportOptions(), &graph_));
  const Status placed = compile::PlaceGraph(place, &graph_);
  if (placed.ok()) return absl::OkStatus();
  // Nodes that were there before do not read new ones, so the new ones can go, last first.
  const std::vector<Node*> nodes = graph_.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend() && (*node)->id() >= old_end; ++node) {
    graph_.RemoveNode(*node);
  }
  for (const std::string& function : functions) graph_.RemoveFunction(function);
  graph_.versions() = old_versions;
  return placed;
}

StatusOr<StepGraph> SessionGraph::Cut(const compile::Signature& signature,
                                      const compile::PlaceOptions& place,
                                      Replication* replication) const {
  std::vector<PartialShape> feed_shapes;
  absl::MutexLock lock(&mutex_);
  for (const std::string& feed : signature.feeds) {
    const StatusOr<Endpoint> fed = graph_.FindEndpoint(feed);
    // A feed of what is not there is refused by the cut.
    feed_shapes.push_back(fed.ok() ? FeedShape(graph_, *fed) : PartialShape());
  }
  compile::Signature wanted = signature;
  for (size_t i = 0; i < wanted.shapes.size(); ++i) {
    // A value that will be refused, and a part of a batch, are no shapes to build on.
    if (replication == nullptr && wanted.shapes[i].IsCompatibleWith(feed_shapes[i])) continue;
    wanted.shapes.clear();
  }
  WEFT_ASSIGN_OR_RETURN(Graph step, compile::CutStepGraph(graph_, wanted));
  WEFT_RETURN_IF_ERROR(CheckCalledFunctions(step));
  for (Node* node : step.nodes()) {
    if (node->IsCallEnd()) node->set_assigned_device(client_device_);
  }
  while (true) {  // functions call functions
    WEFT_ASSIGN_OR_RETURN(const bool lowered, compile::LowerSpanningCalls(&step));
    if (!lowered) break;
    WEFT_RETURN_IF_ERROR(compile::PlaceGraph(place, &step));
  }
  if (replication != nullptr) {
    for (size_t i = 0; i < replication->options.feeds.size() && i < feed_shapes.size(); ++i)
      replication->options.feeds[i].declared = feed_shapes[i];
    WEFT_RETURN_IF_ERROR(Replicate(place, replication, &step));
  }
  WEFT_RETURN_IF_ERROR(replicate::CutVariables(&step));
  WEFT_RETURN_IF_ERROR(compile::ReadAfterUpdates(&step));
  return StepGraph{std::move(step), std::move(feed_shapes), std::move(wanted.shapes)};
}

StatusOr<StepGraph> SessionGraph::CutPartial(const compile::Signature& signature,
                                             const compile::PlaceOptions& place) const {
  WEFT_ASSIGN_OR_RETURN(StepGraph cut, Cut(signature, place));
  WEFT_RETURN_IF_ERROR(OpenCallEnds(signature, client_device_, &cut.graph));
  return cut;
}

Status SessionGraph::CheckComputable(const std::vector<std::string>& fetches,
                                     const std::vector<std::string>& fed,
                                     const std::vector<std::string>& open) const {
  absl::MutexLock lock(&mutex_);
  const auto endpoints = [&](const std::vector<std::string>& names) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    absl::flat_hash_set<Endpoint> found;
    for (const std::string& name : names) {
      if (const StatusOr<Endpoint> endpoint = graph_.FindEndpoint(name); endpoint.ok())
        found.insert(*endpoint);
    }
    return found;
  };
  const absl::flat_hash_set<Endpoint> known = endpoints(fed), missing = endpoints(open);
  for (const std::string& fetch : fetches) {
    WEFT_ASSIGN_OR_RETURN(const Endpoint start, graph_.FindEndpoint(fetch));
    std::vector<Endpoint> next = {start};
    absl::flat_hash_set<const Node*> seen;
    while (!next.empty()) {
      const Endpoint at = next.back();
      next.pop_back();
      if (missing.contains(at)) {
        return InvalidArgument("Tensor ", fetch,
                               " can't be computed from the feeds have been fed so far.");
      }
      if (known.contains(at) || !seen.insert(at.node).second) continue;
      for (const Endpoint& input : at.node->inputs()) {
        if (input.node != nullptr) next.push_back(input);
      }
      for (Node* control : at.node->control_inputs()) next.push_back({control, 0});
    }
  }
  return absl::OkStatus();
}

StatusOr<std::map<std::string, Graph>> SplitByTask(
    const Graph& step, const std::map<std::string, uint64_t>& incarnations) {
  const auto task_of = [](const std::string& device) {
    return device.substr(0, device.find("/device:"));
  };
  const auto incarnation_of = [&](const std::string& device) {
    const auto found = incarnations.find(device);
    return found == incarnations.end() ? 0 : found->second;
  };
  WEFT_ASSIGN_OR_RETURN(
      compile::Partitioned split,
      compile::PartitionGraph(step, {.place_of = task_of, .incarnation_of = incarnation_of}));
  return std::move(split.parts);
}

}  // namespace weft::step
