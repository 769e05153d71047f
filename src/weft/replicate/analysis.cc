// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/analysis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/replicate/loops.h"
#include "weft/replicate/node_facts.h"
#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

// How often the step is gone over at most, until what was assumed of loops holds.
constexpr int kMostRounds = 64;

class Analyser {
 public:
  Analyser(const Graph& step, const std::vector<FedTensor>& feeds, int workers)
      : step_(step), feeds_(feeds), workers_(workers) {}

  StatusOr<Analysis> Run() {
    WEFT_ASSIGN_OR_RETURN(analysis_.order, step_.TopologicalOrder());
    const bool has_rows = std::any_of(feeds_.begin(), feeds_.end(),
                                      [](const FedTensor& feed) { return feed.shape.rank() > 0; });
    analysis_.is_training =
        HasUpdates() && (has_rows || std::any_of(analysis_.order.begin(), analysis_.order.end(),
                                                 [](Node* n) { return IsStatefulSource(*n); }));
    if (!HasUpdates()) return Refuse("it changes no variables, so nothing of it is training");
    ChooseBatch();
    if (!analysis_.refusal.empty()) return std::move(analysis_);
    WEFT_ASSIGN_OR_RETURN(loops_, Loops::Make(analysis_.order, step_.max_id()));
    analysis_.order = loops_.WithLoopsWhole(analysis_.order);
    for (int round = 0; round < kMostRounds; ++round) {
      GoOver();
      const bool loops_changed = loops_.TakeChanged();
      if (is_stale_ || stores_.is_stale()) loops_.ForgetVariables();
      if (!stores_.TakeChanged() && !loops_changed) {
        if (analysis_.refusal.empty()) CheckOutcome();
        return std::move(analysis_);
      }
    }
    return Refuse("what its loops carry from round to round could not be told");
  }

 private:
  Analysis Refuse(std::string why) {
    analysis_.refusal = std::move(why);
    return std::move(analysis_);
  }
  void Stop(std::string why) { analysis_.refusal = std::move(why); }

  bool HasUpdates() const {
    return std::any_of(analysis_.order.begin(), analysis_.order.end(),
                       [](const Node* node) { return IsUpdate(*node); });
  }

  // Feeds whose first size is open carry the batch: those of the commonest size, of several the
  // greatest. That is a choice and no guess: whatever is split, results are the same.
  void ChooseBatch() {
    std::map<int64_t, int> sizes;
    std::vector<std::string> fixed;
    for (const FedTensor& feed : feeds_) {
      analysis_.feeds.push_back({.shape = feed.declared});
      if (!feed.declared.known_rank())
        analysis_.feeds.back().shape = PartialShape::UnknownOfRank(feed.shape.rank());
      if (feed.shape.rank() == 0) continue;
      if (feed.declared.known_rank() && feed.declared.dim(0) >= 0) {
        if (feed.shape.dim(0) > 1)
          fixed.push_back(absl::StrCat("'", feed.name, "' of ", feed.declared.ToString()));
        continue;
      }
      ++sizes[feed.shape.dim(0)];
    }
    int most = 0;
    for (const auto& [size, count] : sizes) {
      if (count < most) continue;
      most = count;
      analysis_.batch = size;
    }
    if (most == 0) return Stop(WhyNoBatch(fixed));
    if (analysis_.batch == 0 || analysis_.batch % workers_ != 0) {
      analysis_.is_size_of_this_feed = true;
      return Stop(absl::StrCat("a batch of ", analysis_.batch, " does not split over ", workers_,
                               " workers evenly"));
    }
    for (size_t i = 0; i < feeds_.size(); ++i) {
      const FedTensor& feed = feeds_[i];
      const bool is_open =
          !feed.declared.known_rank() || (feed.declared.rank() > 0 && feed.declared.dim(0) < 0);
      analysis_.feeds[i].is_split =
          is_open && feed.shape.rank() > 0 && feed.shape.dim(0) == analysis_.batch;
    }
  }

  std::string WhyNoBatch(const std::vector<std::string>& fixed) const {
    for (const Node* node : analysis_.order) {
      if (!IsStatefulSource(*node)) continue;
      return absl::StrCat("its input comes from ", Quoted(*node),
                          ", whose state is in one process; feed the batch, or let each worker "
                          "read its own with a distribution that is written");
    }
    if (!fixed.empty()) {
      return absl::StrCat("the first size of what is fed is fixed (", absl::StrJoin(fixed, ", "),
                          "); leave it open (None), so that workers may get a part of the rows");
    }
    return "nothing that is fed has rows to split";
  }

  // Decides all nodes anew by what is assumed of loops.
  void GoOver() {
    analysis_.refusal.clear();
    analysis_.uses.clear();
    analysis_.mid_step_sums.clear();
    analysis_.random_nodes.clear();
    shapes_.emplace();
    is_stale_ = false;
    for (Node* node : analysis_.order) {
      if (!analysis_.refusal.empty() || is_stale_ || stores_.is_stale()) return;
      Decide(*node);
    }
  }

  void Decide(Node& node) {
    NodeUse use;
    std::vector<Share> inputs;
    std::vector<PartialShape> shapes;
    bool depends = false;
    for (const Endpoint& input : node.inputs()) {
      if (input.node->LowersTo(InstructionKind::kNextIteration)) break;  // assumed
      const Share& share = analysis_.uses.at(input.node).outputs[input.port];
      depends = depends || !share.is_whole() || share.late;
      inputs.push_back(share);
      shapes.push_back(shapes_->Of(input));
    }
    const int loop = loops_.LoopOf(node);
    if (loop != 0 && depends && !loops_.IsSplit(loop)) {
      // What was decided of it so far does not hold.
      loops_.Split(loop);
      is_stale_ = true;
      return;
    }
    if (loop != 0 && loops_.IsSplit(loop)) {
      use.in_loop = true;
      DecideInLoop(node, inputs, shapes, &use);
    } else if (node.LowersTo(InstructionKind::kArgument)) {
      use.outputs = {ArgumentShare(node)};
    } else if (Stores::IsStore(node) && (depends || stores_.IsSplit(node))) {
      use.is_split = true;
      use.outputs.assign(node.num_outputs(), {.kind = Share::Kind::kEqual, .is_list = true});
    } else if (IsMark(node) && WaitsForWorkers(node)) {
      use.is_split = true;
    } else if (Loops::IsVariable(node)) {
      use.outputs.resize(node.num_outputs());
      use.outputs[0].is_list = inputs[0].is_list;
    } else if (!depends) {
      use.outputs = WholeOutputs(node, inputs, shapes);
    } else if (!Split(node, inputs, shapes, &use)) {
      Keep(node, inputs, &use);
    }
    const int sizes = SizesInput(node.op());
    if (sizes >= 0 && sizes < static_cast<int>(inputs.size())) KnowShape(node, inputs[sizes]);
    if (node.op() == "ReadVariableOp") KnowVariable(node, &use.outputs);
    KnowShapes(node, &use.outputs);
    analysis_.uses[&node] = std::move(use);
  }

  bool WaitsForWorkers(const Node& node) const {
    return std::any_of(node.control_inputs().begin(), node.control_inputs().end(),
                       [&](const Node* control) {
                         const auto found = analysis_.uses.find(control);
                         return found != analysis_.uses.end() && found->second.is_split;
                       });
  }

  // Of a loop over the batch each worker computes all, of what comes in. Nothing is put together
  // before it ends.
  void DecideInLoop(Node& node, const std::vector<Share>& inputs,
                    const std::vector<PartialShape>& shapes, NodeUse* use) {
    use->is_split = true;
    if (Loops::IsVariable(node)) return BeginVariable(node, inputs[0], shapes[0], use);
    if (IsUpdate(node))
      return Stop(absl::StrCat(Quoted(node), " changes a variable in a loop over the batch"));
    if (node.traits().source == ValueSource::kConstant) {
      use->outputs = WholeOutputs(node, inputs, shapes);
      use->outputs[0].kind = Share::Kind::kEqual;
      return;
    }
    if (IsMark(node)) return;
    if (node.LowersTo(InstructionKind::kEnter)) NoteLate(node, inputs);
    if (node.LowersTo(InstructionKind::kLoopCondition) && inputs[0].UniformPower() != 0)
      return Stop(
          absl::StrCat(Quoted(node), " asks the rows of the batch how often its loop runs"));
    if (node.LowersTo(InstructionKind::kNextIteration)) {
      if (loops_.ComeRound(node, {inputs[0], shapes[0]})) return PassOn(node, inputs, shapes, use);
      return Stop(absl::StrCat("what comes round a loop by ", Quoted(node), ", ",
                               inputs[0].ToString(), ", is not what its variable begins with, ",
                               loops_.WhatItIs(node)));
    }
    if (node.LowersTo(InstructionKind::kEnter) || node.LowersTo(InstructionKind::kExit) ||
        node.LowersTo(InstructionKind::kLoopCondition)) {
      return PassOn(node, inputs, shapes, use);
    }
    if (Split(node, inputs, shapes, use)) return;
    if (!SameOnWorkers(node, inputs)) return Stop(WhyNotInLoop(node, inputs));
    use->is_split = true;
    use->outputs.assign(node.num_outputs(), Share::Equal());
  }

  void PassOn(const Node& node, const std::vector<Share>& inputs,
              const std::vector<PartialShape>& shapes, NodeUse* use) {
    use->outputs = {inputs[0].OnWorkers()};
    shapes_->Set(node, {shapes[0]});
  }

  void BeginVariable(const Node& node, const Share& first, const PartialShape& shape,
                     NodeUse* use) {
    const auto variable = loops_.Begin(node, {first, shape});
    if (!variable) {
      return Stop(absl::StrCat("the variable ", Quoted(node), " of a loop begins with ",
                               first.ToString(), ", and something else comes round"));
    }
    use->outputs = {variable->share, Share::Equal()};
    shapes_->Set(node, {variable->shape, PartialShape(Shape())});
  }

  // Of equal inputs equal outputs come, whatever the op does.
  static bool SameOnWorkers(const Node& node, const std::vector<Share>& inputs) {
    const bool only_reads = node.op() == "ReadVariableOp" || node.op() == "VarHandleOp";
    if (!node.LowersTo(InstructionKind::kKernel) || (node.schema().is_stateful && !only_reads))
      return false;
    return std::all_of(inputs.begin(), inputs.end(),
                       [](const Share& share) { return share.UniformPower() == 0; });
  }

  std::string WhyNotInLoop(const Node& node, const std::vector<Share>& inputs) const {
    if (IsRandom(node) || node.schema().is_stateful) {
      return absl::StrCat(Quoted(node), " draws numbers or has an effect in a loop over the batch");
    }
    const bool counts_rows = std::any_of(inputs.begin(), inputs.end(), [](const Share& share) {
      return share.is_equal() && share.elements &&
             std::any_of(share.elements->begin(), share.elements->end(),
                         [](const Element& element) { return element.power < 0; });
    });
    if (counts_rows) {
      return absl::StrCat(Quoted(node),
                          " counts the rows of the batch: its loop runs once for each of them, as "
                          "that of tf.map_fn does, and each worker has only some");
    }
    return absl::StrCat("in a loop over the batch, ", WhyNotSplit(node, inputs));
  }

  void NoteLate(const Node& node, const std::vector<Share>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].late) continue;
      analysis_.mid_step_sums.push_back(absl::StrCat(
          "'", node.input(static_cast<int>(i)).node->name(), "' for '", node.name(), "'"));
    }
  }

  // Loops carry handles, of whose variables shape inference sees nothing.
  static void KnowVariable(const Node& node, std::vector<Share>* outputs) {
    const Node* const variable = VariableOf(node.input(0));
    if (variable == nullptr || outputs->empty()) return;
    StatusOr<PartialShape> shape = variable->Attr<PartialShape>("shape");
    if (shape.ok()) outputs->front().shape = *std::move(shape);
  }

  // What rules found of shapes; lists keep it for their tensors.
  void KnowShapes(const Node& node, std::vector<Share>* outputs) {
    std::vector<PartialShape> shapes;
    bool knows_more = false;
    for (size_t i = 0; i < outputs->size(); ++i) {
      Share& share = (*outputs)[i];
      if (share.is_list || !share.shape) continue;
      if (shapes.empty()) shapes = OutputShapes(node);
      const StatusOr<PartialShape> both = shapes[i].MergeWith(*share.shape);
      share.shape.reset();
      if (!both.ok() || *both == shapes[i]) continue;
      shapes[i] = *both;
      knows_more = true;
    }
    if (knows_more) shapes_->Set(node, std::move(shapes));
  }

  // What shape inference cannot see: sizes that were computed of sizes.
  void KnowShape(const Node& node, const Share& sizes) {
    if (!sizes.elements) return;
    PartialShape told = PartialShape::UnknownOfRank(static_cast<int>(sizes.elements->size()));
    for (int d = 0; d < told.rank(); ++d) {
      const Element& size = (*sizes.elements)[d];
      if (size.IsKnown() && size.value >= 0) told.SetDim(d, size.value);
    }
    const StatusOr<PartialShape> both = told.MergeWith(shapes_->Of({const_cast<Node*>(&node), 0}));
    if (both.ok()) shapes_->Set(node, {*both});
  }

  Share ArgumentShare(const Node& node) {
    const int64_t index = FindAttrOr<int64_t>(node.attrs(), "index", -1);
    if (index < 0 || index >= static_cast<int64_t>(feeds_.size())) return Share::Whole();
    shapes_->Set(node, {analysis_.feeds[index].shape});
    if (!analysis_.feeds[index].is_split) return Share::Whole();
    Share share = Share::Slice(0);
    share.cut = true;
    return share;
  }

  std::vector<PartialShape> OutputShapes(const Node& node) {
    std::vector<PartialShape> shapes;
    for (int i = 0; i < node.num_outputs(); ++i)
      shapes.push_back(shapes_->Of({const_cast<Node*>(&node), i}));
    return shapes;
  }

  // Of a node that does not depend on the batch: sizes may be known all the same.
  std::vector<Share> WholeOutputs(const Node& node, const std::vector<Share>& inputs,
                                  const std::vector<PartialShape>& shapes) {
    std::vector<Share> outputs(node.num_outputs());
    if (node.traits().source == ValueSource::kConstant) {
      const StatusOr<Tensor> value = node.Attr<Tensor>("value");
      if (value.ok()) outputs[0].elements = ElementsOf(*value);
      outputs[0].zero = value.ok() && IsZero(*value);
      return outputs;
    }
    const OpRule* const rule = FindRule(node.op());
    if (rule == nullptr || rule->is_heavy || node.num_outputs() == 0) return outputs;
    const DType dtype = node.output_type(0).dtype;
    const bool is_size = dtype == DType::kInt32 || dtype == DType::kInt64;
    if (!is_size && !IsFloating(dtype) && dtype != DType::kVariant) return outputs;
    const std::vector<PartialShape> output_shapes = OutputShapes(node);
    const auto found = rule->rule({node, inputs, shapes, output_shapes});
    for (size_t i = 0; found && i < outputs.size() && i < found->size(); ++i) {
      if (is_size) outputs[i].elements = (*found)[i].elements;
      outputs[i].zero = (*found)[i].zero;
      outputs[i].is_list = (*found)[i].is_list;
      outputs[i].shape = (*found)[i].shape;
    }
    return outputs;
  }

  std::optional<Shares> SplitOutputs(const Node& node, const std::vector<Share>& inputs,
                                     const std::vector<PartialShape>& shapes) {
    std::optional<Shares> outputs;
    if (Stores::IsAccess(node)) {
      outputs = stores_.Apply(node, inputs, shapes);
    } else if (const OpRule* const rule = FindRule(node.op()); rule != nullptr) {
      const std::vector<PartialShape> output_shapes = OutputShapes(node);
      outputs = ApplyRule(*rule, {node, inputs, shapes, output_shapes});
    }
    if (outputs && outputs->size() != static_cast<size_t>(node.num_outputs())) outputs.reset();
    return outputs;
  }

  // Whether workers can compute the node of what they have; if not, of sums of the batch beside
  // their rows, and if need be of rows that they bring to the scale of the whole batch's.
  bool Split(const Node& node, std::vector<Share> inputs, const std::vector<PartialShape>& shapes,
             NodeUse* use) {
    const auto any = [&](auto is) { return std::any_of(inputs.begin(), inputs.end(), is); };
    const bool has_slice = any([](const Share& share) { return share.is_slice(); });
    std::optional<Shares> outputs = SplitOutputs(node, inputs, shapes);
    use->sums.assign(inputs.size(), false);
    if (!outputs && !use->in_loop) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].is_part() || !CanBePutTogether(inputs[i], node, static_cast<int>(i)))
          continue;
        use->sums[i] = true;
        inputs[i] = Share{.late = true};
      }
      outputs = SplitOutputs(node, inputs, shapes);
    }
    if (!outputs && has_slice) {
      use->unscale.assign(inputs.size(), 0);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].is_slice() || inputs[i].is_list ||
            !IsFloating(node.input_type(static_cast<int>(i)).dtype))
          continue;
        std::swap(use->unscale[i], inputs[i].scale);
      }
      outputs = SplitOutputs(node, inputs, shapes);
      if (!outputs) use->unscale.clear();
    }
    if (!outputs) return false;
    // What is computed of sums alone runs where they are, unless rows or optionals are made
    // of it.
    const bool is_late = any([](const Share& share) { return share.late; });
    if (is_late && !has_slice && !use->in_loop &&
        std::none_of(outputs->begin(), outputs->end(),
                     [](const Share& share) { return share.is_slice() || share.is_list; })) {
      return false;
    }
    if (!use->in_loop) NoteLate(node, inputs);
    use->is_split = true;
    use->outputs = *std::move(outputs);
    return true;
  }

  // The node runs once, on what the workers give, put together.
  void Keep(const Node& node, const std::vector<Share>& inputs, NodeUse* use) {
    use->sums.clear();
    use->unscale.clear();
    if (!IsLight(node)) return Stop(WhyNotSplit(node, inputs));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!CanBePutTogether(inputs[i], node, static_cast<int>(i))) {
        return Stop(absl::StrCat(
            Quoted(node), " needs '", node.input(static_cast<int>(i)).node->name(),
            "' of the whole batch, which cannot be put together of ", inputs[i].ToString(),
            " of the workers; its inputs are ", ToString(inputs)));
      }
    }
    use->cause = CauseOf(node, inputs);
    use->outputs.assign(node.num_outputs(), Share{.late = true});
    if (IsSampler(node) && inputs[0].is_slice() && inputs[0].dim == 0) {
      analysis_.random_nodes.push_back(node.name());
      use->outputs[1] = Share::Slice(0);
      use->outputs[1].cut = true;
    }
    const int sizes = IsRandom(node) ? 0 : SizesInput(node.op());
    if (sizes < 0 || !inputs[sizes].elements) return;
    if (IsRandom(node)) analysis_.random_nodes.push_back(node.name());
    // Where one of its sizes is the batch's, workers get their rows of it.
    std::optional<int> dim;
    for (size_t d = 0; d < inputs[sizes].elements->size(); ++d) {
      if ((*inputs[sizes].elements)[d].power != -1) continue;
      if (dim) return;
      dim = static_cast<int>(d);
    }
    if (!dim) return;
    use->outputs[0] = Share::Slice(*dim);
    use->outputs[0].cut = true;
    use->outputs[0].late = !IsRandom(node);
    KnowShape(node, inputs[sizes]);
  }

  static std::string ToString(const std::vector<Share>& shares) {
    return absl::StrJoin(shares, ", ", [](std::string* out, const Share& share) {
      absl::StrAppend(out, share.ToString());
    });
  }

  const Node* CauseOf(const Node& node, const std::vector<Share>& inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto source = analysis_.uses.find(node.input(static_cast<int>(i)).node);
      if (inputs[i].late && source != analysis_.uses.end() && source->second.cause != nullptr)
        return source->second.cause;
    }
    return &node;
  }

  std::string WhyNotSplit(const Node& node, const std::vector<Share>& inputs) const {
    if (absl::StartsWith(node.op(), "FusedBatchNorm")) {
      return absl::StrCat(Quoted(node), " takes statistics of the whole batch");
    }
    if (!node.LowersTo(InstructionKind::kKernel)) {
      return absl::StrCat(Quoted(node),
                          " is control flow or a call over the batch, which is not split");
    }
    if (node.schema().is_stateful) {
      return absl::StrCat(Quoted(node), " has state or an effect, which happens once a step");
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].late && !inputs[i].is_part()) continue;
      return absl::StrCat(Quoted(node), " would have to run on the whole batch, as '",
                          node.input(static_cast<int>(i)).node->name(), "' is ",
                          inputs[i].ToString(), ", because of ", Quoted(*CauseOf(node, inputs)));
    }
    if (FindRule(node.op()) == nullptr) {
      return absl::StrCat("nothing is known of how ", Quoted(node), " treats rows of a batch");
    }
    std::vector<std::string> rows;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_slice())
        rows.push_back(absl::StrCat("'", node.input(static_cast<int>(i)).node->name(), "'"));
    }
    if (rows.size() > 1) {
      return absl::StrCat(
          Quoted(node), " brings each row of the batch together with all of its rows (",
          absl::StrJoin(rows, " with "),
          "), as a softmax over the batch and contrastive losses do: a worker has only its own");
    }
    return absl::StrCat("the rows of ", Quoted(node), " do not stay apart: its inputs are ",
                        ToString(inputs));
  }

  void CheckOutcome() {
    int split = 0;
    bool trains = false;
    for (const Node* node : analysis_.order) {
      split += analysis_.uses.at(node).is_split ? 1 : 0;
      if (!IsUpdate(*node)) continue;
      for (const Endpoint& input : node->inputs()) {
        const Share& share = analysis_.uses.at(input.node).outputs[input.port];
        trains = trains || !share.is_whole() || share.late;
      }
    }
    if (split == 0 || !trains) Stop("no variable is changed by what depends on the batch");
  }

  const Graph& step_;
  const std::vector<FedTensor>& feeds_;
  const int workers_;
  std::optional<KnownShapes> shapes_;  // of the way over the step under way
  Loops loops_;
  Stores stores_;
  bool is_stale_ = false;  // a loop was found to be over the batch on this way
  Analysis analysis_;
};

}  // namespace

StatusOr<Analysis> AnalyseStep(const Graph& step, const std::vector<FedTensor>& feeds,
                               int workers) {
  return Analyser(step, feeds, workers).Run();
}

}  // namespace weft::replicate
