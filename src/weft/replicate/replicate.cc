// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/replicate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

class Rewriter {
 public:
  Rewriter(const ReplicateOptions& options, const Analysis& analysis, Graph* graph)
      : options_(options),
        analysis_(analysis),
        graph_(graph),
        workers_(static_cast<int>(options.workers.size())) {}

  Status Run() {
    FindConstants();
    for (Node* node : analysis_.order) {
      if (Use(node).is_split) {
        WEFT_RETURN_IF_ERROR(Copy(node));
      } else {
        WEFT_RETURN_IF_ERROR(PutTogether(node));
      }
    }
    return CloseLoops();
  }
  int sums() const { return sums_; }

 private:
  const NodeUse& Use(const Node* node) const { return analysis_.uses.at(node); }
  const Share& ShareOf(const Endpoint& tensor) const {
    return Use(tensor.node).outputs[tensor.port];
  }
  // What reads a variable itself stays with it, what is behind a worker's own handle with that.
  const std::string& WorkerDevice(const Node& node, int worker) const {
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (!node.input_type(i).is_ref && node.input_type(i).dtype != DType::kResource) continue;
      const auto split = copies_.find(node.input(i).node);
      return split == copies_.end() ? node.assigned_device()
                                    : split->second[worker]->assigned_device();
    }
    return node.assigned_device() == options_.default_device ? options_.workers[worker]
                                                             : node.assigned_device();
  }

  StatusOr<Node*> Add(const std::string& name, const std::string& op, AttrMap attrs,
                      const std::vector<Endpoint>& inputs, const std::string& device) {
    WEFT_ASSIGN_OR_RETURN(
        Node * added,
        graph_->AddNode({.name = graph_->UniqueName(name), .op = op, .attrs = std::move(attrs)},
                        inputs));
    added->set_assigned_device(device);
    return added;
  }

  // The node itself becomes the first worker's, the others get copies.
  Status Copy(Node* node) {
    std::vector<std::vector<Endpoint>> inputs(workers_);
    for (int k = 0; k < workers_; ++k) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        WEFT_ASSIGN_OR_RETURN(const Endpoint input, InputOfWorker(*node, i, k));
        inputs[k].push_back(input);
      }
    }
    std::vector<Node*>& copies = copies_[node];
    copies.push_back(node);
    for (int k = 1; k < workers_; ++k) {
      AttrMap attrs = node->attrs();
      attrs.erase("_class");  // places are chosen already
      if (node->LowersTo(InstructionKind::kEnter)) {
        attrs["frame_name"] =
            absl::StrCat(FindAttrOr<std::string>(attrs, "frame_name", ""), "/of_worker_", k);
      }
      WEFT_ASSIGN_OR_RETURN(Node * copy,
                            Add(absl::StrCat(node->name(), "/of_worker_", k), node->op(),
                                std::move(attrs), inputs[k], WorkerDevice(*node, k)));
      for (Node* control : node->control_inputs()) {
        const auto split = copies_.find(control);
        graph_->AddControlEdge(split == copies_.end() ? control : split->second[k], copy);
      }
      copies.push_back(copy);
    }
    for (int i = 0; i < node->num_inputs(); ++i)
      WEFT_RETURN_IF_ERROR(SetIfOther(node, i, inputs[0][i]));
    node->set_assigned_device(WorkerDevice(*node, 0));
    return absl::OkStatus();
  }

  Status SetIfOther(Node* node, int i, const Endpoint& input) {
    if (node->input(i) == input) return absl::OkStatus();
    return graph_->SetInput(node, i, input);
  }

  // What comes round a loop is connected when all of it is there.
  Status CloseLoops() {
    for (Node* node : analysis_.order) {
      if (!Use(node).in_loop || !node->LowersTo(InstructionKind::kMerge)) continue;
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Endpoint round = node->input(i);
        if (!round.node->LowersTo(InstructionKind::kNextIteration)) continue;
        for (int k = 1; k < workers_; ++k) {
          WEFT_RETURN_IF_ERROR(
              graph_->SetInput(copies_.at(node)[k], i, {copies_.at(round.node)[k], round.port}));
        }
      }
    }
    return absl::OkStatus();
  }

  StatusOr<Endpoint> InputOfWorker(const Node& node, int i, int worker) {
    if (node.input(i).node->LowersTo(InstructionKind::kNextIteration))
      return worker == 0 ? node.input(i) : Endpoint();
    WEFT_ASSIGN_OR_RETURN(const Endpoint input, ScaledInputOfWorker(node, i, worker));
    const std::vector<int>& unscale = Use(&node).unscale;
    if (unscale.empty() || unscale[i] == 0) return input;
    Endpoint& unscaled = unscaled_[input];
    if (unscaled.node == nullptr) {
      WEFT_ASSIGN_OR_RETURN(unscaled, Scaled(input, Factor(unscale[i]),
                                             input.node->assigned_device(), Use(&node).in_loop));
    }
    return unscaled;
  }

  StatusOr<Endpoint> ScaledInputOfWorker(const Node& node, int i, int worker) {
    const Endpoint source = node.input(i);
    const Share& share = ShareOf(source);
    if (!Use(&node).sums.empty() && Use(&node).sums[i])
      return Whole(source, options_.default_device);
    const auto split = copies_.find(source.node);
    if (split != copies_.end()) return Endpoint{split->second[worker], source.port};
    if (share.cut) return RowsOf(source, worker);
    if (!of_constants_.contains(source.node)) return source;
    WEFT_ASSIGN_OR_RETURN(Node * own, ConstantOf(source.node, worker));
    return Endpoint{own, source.port};
  }

  // Constants, or what follows from such alone, in order.
  void FindConstants() {
    for (const Node* node : analysis_.order) {
      if (!node->control_inputs().empty() || Use(node).is_split || Use(node).in_loop) continue;
      const bool follows =
          node->num_inputs() > 0 && node->LowersTo(InstructionKind::kKernel) &&
          !node->schema().is_stateful && !IsRandom(*node) &&
          std::all_of(node->inputs().begin(), node->inputs().end(),
                      [&](const Endpoint& input) { return of_constants_.contains(input.node); });
      if (follows || node->traits().source == ValueSource::kConstant) of_constants_.insert(node);
    }
  }

  // Of FindConstants; they are not sent, each worker has its own.
  StatusOr<Node*> ConstantOf(Node* constant, int worker) {
    if (constant->assigned_device() != options_.default_device ||
        options_.workers[worker] == options_.default_device) {
      return constant;
    }
    const auto known = constants_.find({constant, worker});
    if (known != constants_.end()) return known->second;
    std::vector<Endpoint> inputs;
    for (const Endpoint& input : constant->inputs()) {
      WEFT_ASSIGN_OR_RETURN(Node * own, ConstantOf(input.node, worker));
      inputs.push_back({own, input.port});
    }
    AttrMap attrs = constant->attrs();
    attrs.erase("_class");
    WEFT_ASSIGN_OR_RETURN(Node * copy,
                          Add(absl::StrCat(constant->name(), "/of_worker_", worker), constant->op(),
                              std::move(attrs), inputs, options_.workers[worker]));
    constants_[{constant, worker}] = copy;
    return copy;
  }

  StatusOr<Endpoint> Constant(const std::string& name, Tensor value, const std::string& device) {
    AttrMap attrs;
    attrs["dtype"] = value.dtype();
    attrs["value"] = std::move(value);
    WEFT_ASSIGN_OR_RETURN(Node * node, Add(name, "Const", std::move(attrs), {}, device));
    return Endpoint{node, 0};
  }

  // A worker's rows of what is there as a whole.
  StatusOr<Endpoint> RowsOf(const Endpoint& whole, int worker) {
    Node*& split = rows_[whole];
    if (split == nullptr) {
      const std::string& device = whole.node->assigned_device();
      const std::string name = absl::StrCat(whole.node->name(), "/rows");
      WEFT_ASSIGN_OR_RETURN(const Endpoint axis,
                            Constant(absl::StrCat(name, "/axis"),
                                     Tensor::Scalar<int32_t>(ShareOf(whole).dim), device));
      AttrMap attrs;
      attrs["num_split"] = int64_t{workers_};
      attrs["T"] = whole.node->output_type(whole.port).dtype;
      WEFT_ASSIGN_OR_RETURN(split, Add(name, "Split", std::move(attrs), {axis, whole}, device));
    }
    return Endpoint{split, worker};
  }

  // Times a factor, of any floating or integer type; `in_loop`: in the loop that the tensor is in.
  StatusOr<Endpoint> Scaled(const Endpoint& tensor, double factor, const std::string& device,
                            bool in_loop = false) {
    const DType dtype = tensor.node->output_type(tensor.port).dtype;
    const std::string name = absl::StrCat(tensor.node->name(), "/scaled");
    WEFT_ASSIGN_OR_RETURN(
        Endpoint by, Constant(absl::StrCat(name, "/by"), Tensor::Scalar<double>(factor), device));
    if (in_loop) graph_->AddControlEdge(tensor.node, by.node);
    if (dtype != DType::kDouble) {
      AttrMap attrs;
      attrs["SrcT"] = DType::kDouble;
      attrs["DstT"] = dtype;
      WEFT_ASSIGN_OR_RETURN(
          Node * cast, Add(absl::StrCat(name, "/cast"), "Cast", std::move(attrs), {by}, device));
      by = {cast, 0};
    }
    AttrMap attrs;
    attrs["T"] = dtype;
    WEFT_ASSIGN_OR_RETURN(Node * node, Add(name, "Mul", std::move(attrs), {tensor, by}, device));
    return Endpoint{node, 0};
  }

  double Factor(int power) const { return std::pow(static_cast<double>(workers_), -power); }

  // The whole step's value of what workers computed.
  StatusOr<Endpoint> Whole(const Endpoint& tensor, const std::string& device) {
    const Share& share = ShareOf(tensor);
    const auto split = copies_.find(tensor.node);
    if (split == copies_.end()) return tensor;
    Endpoint& whole = wholes_[{tensor, device}];
    if (whole.node != nullptr) return whole;
    if (share.is_equal()) {
      WEFT_ASSIGN_OR_RETURN(whole, WholeSize(tensor, share, device));
      return whole;
    }
    std::vector<Endpoint> parts;
    for (Node* copy : split->second) parts.push_back({copy, tensor.port});
    AttrMap attrs;
    attrs["N"] = int64_t{workers_};
    attrs["T"] = tensor.node->output_type(tensor.port).dtype;
    const std::string name = absl::StrCat(tensor.node->name(), "/of_all_workers");
    if (share.is_slice()) {
      WEFT_ASSIGN_OR_RETURN(
          const Endpoint axis,
          Constant(absl::StrCat(name, "/axis"), Tensor::Scalar<int32_t>(share.dim), device));
      parts.push_back(axis);
      attrs["Tidx"] = DType::kInt32;
    }
    WEFT_ASSIGN_OR_RETURN(Node * together, Add(name, share.is_slice() ? "ConcatV2" : "AddN",
                                               std::move(attrs), parts, device));
    whole = {together, 0};
    ++sums_;
    if (share.scale != 0 && !share.zero) {
      WEFT_ASSIGN_OR_RETURN(const Endpoint scaled, Scaled(whole, Factor(share.scale), device));
      wholes_[{tensor, device}] = scaled;
      return scaled;
    }
    return whole;
  }

  // The first worker's, with what depends on the number of rows brought to the whole batch's.
  StatusOr<Endpoint> WholeSize(const Endpoint& tensor, const Share& share,
                               const std::string& device) {
    if (const std::optional<int> power = share.UniformPower()) {
      if (*power == 0) return tensor;
      return Scaled(tensor, Factor(*power), device);
    }
    std::vector<double> factors;
    for (const Element& element : *share.elements) factors.push_back(Factor(element.power));
    const DType dtype = tensor.node->output_type(tensor.port).dtype;
    const std::string name = absl::StrCat(tensor.node->name(), "/of_all_workers");
    const Shape shape{static_cast<int64_t>(factors.size())};
    WEFT_ASSIGN_OR_RETURN(
        const Endpoint by,
        Constant(absl::StrCat(name, "/by"), Tensor::FromSpan<double>(shape, factors), device));
    AttrMap casts;
    casts["SrcT"] = DType::kDouble;
    casts["DstT"] = dtype;
    WEFT_ASSIGN_OR_RETURN(Node * cast,
                          Add(absl::StrCat(name, "/cast"), "Cast", std::move(casts), {by}, device));
    AttrMap attrs;
    attrs["T"] = dtype;
    WEFT_ASSIGN_OR_RETURN(Node * node,
                          Add(name, "Mul", std::move(attrs), {tensor, {cast, 0}}, device));
    return Endpoint{node, 0};
  }

  // A node that runs once reads wholes, and waits for all workers where it waited for one device.
  Status PutTogether(Node* node) {
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint source = node->input(i);
      if (!copies_.contains(source.node)) continue;
      WEFT_ASSIGN_OR_RETURN(const Endpoint whole, Whole(source, node->assigned_device()));
      WEFT_RETURN_IF_ERROR(SetIfOther(node, i, whole));
    }
    const std::vector<Node*> controls = node->control_inputs();
    for (Node* control : controls) {
      const auto split = copies_.find(control);
      if (split == copies_.end()) continue;
      for (int k = 1; k < workers_; ++k) graph_->AddControlEdge(split->second[k], node);
    }
    return absl::OkStatus();
  }

  const ReplicateOptions& options_;
  const Analysis& analysis_;
  Graph* const graph_;
  const int workers_;
  int sums_ = 0;
  absl::flat_hash_map<const Node*, std::vector<Node*>> copies_;  // by worker
  std::map<std::pair<Node*, int>, Node*> constants_;
  absl::flat_hash_set<const Node*> of_constants_;
  absl::flat_hash_map<Endpoint, Node*> rows_;
  absl::flat_hash_map<Endpoint, Endpoint> unscaled_;  // by a worker's
  absl::flat_hash_map<std::pair<Endpoint, std::string>, Endpoint> wholes_;
};

}  // namespace

std::string Replicated::Describe(int workers) const {
  if (!refusal.empty()) return absl::StrCat("runs as it is: ", refusal);
  std::string text =
      absl::StrCat(split_nodes, " nodes run on each of ", workers, " workers, on a share of ",
                   batch, " rows; ", sums, " tensors are put together");
  if (!random_nodes.empty()) {
    absl::StrAppend(&text, "; drawn once for all rows: ", absl::StrJoin(random_nodes, ", "));
  }
  if (!mid_step_sums.empty()) {
    absl::StrAppend(&text, "; workers wait for ", mid_step_sums.size(),
                    " values of the whole batch in mid-step, first ", mid_step_sums.front());
  }
  return text;
}

bool FeedsFit(const std::vector<FeedUse>& feeds, const std::vector<Shape>& shapes, int workers) {
  if (feeds.size() != shapes.size()) return false;
  int64_t batch = -1;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i].shape.known_rank() && feeds[i].shape.rank() != shapes[i].rank()) return false;
    if (!feeds[i].is_split) continue;
    const int64_t rows = shapes[i].dim(0);
    if (batch >= 0 && rows != batch) return false;
    batch = rows;
  }
  return batch > 0 && batch % workers == 0;
}

StatusOr<Replicated> ReplicateStep(const ReplicateOptions& options, Graph* step) {
  const int workers = static_cast<int>(options.workers.size());
  Replicated result;
  if (workers < 2) {
    result.refusal = "there is only one worker";
    return result;
  }
  WEFT_ASSIGN_OR_RETURN(Analysis analysis, AnalyseStep(*step, options.feeds, workers));
  result.refusal = analysis.refusal;
  result.is_training = analysis.is_training;
  result.is_size_of_this_feed = analysis.is_size_of_this_feed;
  result.batch = analysis.batch;
  result.feeds = analysis.feeds;
  if (!result.refusal.empty()) return result;
  Rewriter rewriter(options, analysis, step);
  WEFT_RETURN_IF_ERROR(rewriter.Run());
  for (const auto& [node, use] : analysis.uses) result.split_nodes += use.is_split ? 1 : 0;
  result.sums = rewriter.sums();
  result.mid_step_sums = std::move(analysis.mid_step_sums);
  result.random_nodes = std::move(analysis.random_nodes);
  return result;
}

}  // namespace weft::replicate
