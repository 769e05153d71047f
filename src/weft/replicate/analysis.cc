// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/analysis.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

constexpr int64_t kMostElements = 64;
// Larger constants are not looked at, whether they are zeros.
constexpr size_t kMostBytesOfZeros = 4096;

std::string Quoted(const Node& node) {
  return absl::StrCat("'", node.name(), "' (", node.op(), ")");
}

// The integers of a small constant scalar or vector.
std::optional<Elements> ElementsOf(const Tensor& tensor) {
  if (tensor.shape().rank() > 1 || tensor.num_elements() > kMostElements) return std::nullopt;
  Elements elements;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.dtype() == DType::kInt32) {
      elements.push_back({.value = tensor.data<int32_t>()[i]});
    } else if (tensor.dtype() == DType::kInt64) {
      elements.push_back({.value = tensor.data<int64_t>()[i]});
    } else {
      return std::nullopt;
    }
  }
  return elements;
}

bool IsZero(const Tensor& tensor) {
  if (!IsPlain(tensor.dtype()) || tensor.size_bytes() > kMostBytesOfZeros) return false;
  const std::byte* const bytes = tensor.bytes();
  return std::all_of(bytes, bytes + tensor.size_bytes(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

bool IsUpdate(const Node& node) {
  if (node.traits().changes_variable) return true;
  if (node.traits().passes_reference) return false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i).is_ref) return true;
  }
  return false;
}

bool IsStatefulSource(const Node& node) {
  return node.schema().is_stateful && node.traits().source == ValueSource::kNone &&
         !node.IsCallEnd() && node.num_outputs() > 0 && !IsRandom(node) &&
         (absl::StrContains(node.op(), "Iterator") || absl::StrContains(node.op(), "Queue") ||
          absl::StrContains(node.op(), "Reader") || absl::StrContains(node.op(), "Stage"));
}

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
    for (Node* node : analysis_.order) {
      Decide(*node);
      if (!analysis_.refusal.empty()) return std::move(analysis_);
    }
    CheckOutcome();
    return std::move(analysis_);
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

  void Decide(Node& node) {
    NodeUse use;
    std::vector<Share> inputs;
    std::vector<PartialShape> shapes;
    bool depends = false;
    for (const Endpoint& input : node.inputs()) {
      // What comes round a loop is as whole as what went in: rows do not get into loops.
      const auto source = analysis_.uses.find(input.node);
      const Share share =
          source == analysis_.uses.end() ? Share::Whole() : source->second.outputs[input.port];
      depends = depends || !share.is_whole() || share.late;
      inputs.push_back(share);
      shapes.push_back(shapes_.Of(input));
    }
    if (node.LowersTo(InstructionKind::kArgument)) {
      use.outputs = {ArgumentShare(node)};
    } else if (!depends) {
      use.outputs = WholeOutputs(node, inputs, shapes);
    } else if (!Split(node, inputs, shapes, &use)) {
      Keep(node, inputs, &use);
    }
    if (const int sizes = SizesInput(node.op()); sizes >= 0) KnowShape(node, inputs[sizes]);
    analysis_.uses[&node] = std::move(use);
  }

  // What shape inference cannot see: sizes that were computed of sizes.
  void KnowShape(const Node& node, const Share& sizes) {
    if (!sizes.elements || shapes_.Of({const_cast<Node*>(&node), 0}).known_rank()) return;
    PartialShape shape = PartialShape::UnknownOfRank(static_cast<int>(sizes.elements->size()));
    for (int d = 0; d < shape.rank(); ++d) {
      const Element& size = (*sizes.elements)[d];
      if (size.IsKnown() && size.value >= 0) shape.SetDim(d, size.value);
    }
    shapes_.Set(node, {std::move(shape)});
  }

  Share ArgumentShare(const Node& node) {
    const int64_t index = FindAttrOr<int64_t>(node.attrs(), "index", -1);
    if (index < 0 || index >= static_cast<int64_t>(feeds_.size())) return Share::Whole();
    shapes_.Set(node, {analysis_.feeds[index].shape});
    if (!analysis_.feeds[index].is_split) return Share::Whole();
    Share share = Share::Slice(0);
    share.cut = true;
    return share;
  }

  std::vector<PartialShape> OutputShapes(const Node& node) {
    std::vector<PartialShape> shapes;
    for (int i = 0; i < node.num_outputs(); ++i)
      shapes.push_back(shapes_.Of({const_cast<Node*>(&node), i}));
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
    if (!is_size && !IsFloating(dtype)) return outputs;
    const std::vector<PartialShape> output_shapes = OutputShapes(node);
    const auto found = rule->rule({node, inputs, shapes, output_shapes});
    for (size_t i = 0; found && i < outputs.size() && i < found->size(); ++i) {
      if (is_size) outputs[i].elements = (*found)[i].elements;
      outputs[i].zero = (*found)[i].zero;
    }
    return outputs;
  }

  // Whether workers can compute the node of what they have.
  bool Split(const Node& node, std::vector<Share> inputs, const std::vector<PartialShape>& shapes,
             NodeUse* use) {
    const OpRule* const rule = FindRule(node.op());
    if (rule == nullptr) return false;
    const bool has_slice =
        std::any_of(inputs.begin(), inputs.end(), [](const Share& s) { return s.is_slice(); });
    const bool is_late =
        std::any_of(inputs.begin(), inputs.end(), [](const Share& s) { return s.late; });
    // What is computed of sums alone runs where they are.
    if (is_late && !has_slice) return false;
    const std::vector<PartialShape> output_shapes = OutputShapes(node);
    std::optional<Shares> outputs = rule->rule({node, inputs, shapes, output_shapes});
    use->sums.assign(inputs.size(), false);
    if (!outputs && has_slice) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].is_part() || !CanBePutTogether(inputs[i], node, static_cast<int>(i)))
          continue;
        use->sums[i] = true;
        inputs[i] = Share{.late = true};
      }
      outputs = rule->rule({node, inputs, shapes, output_shapes});
    }
    if (!outputs || outputs->size() != static_cast<size_t>(node.num_outputs())) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].late) continue;
      analysis_.mid_step_sums.push_back(absl::StrCat(
          "'", node.input(static_cast<int>(i)).node->name(), "' for '", node.name(), "'"));
    }
    use->is_split = true;
    use->outputs = *std::move(outputs);
    return true;
  }

  // The node runs once, on what the workers give, put together.
  void Keep(const Node& node, const std::vector<Share>& inputs, NodeUse* use) {
    use->sums.clear();
    if (!IsLight(node)) return Stop(WhyNotSplit(node, inputs));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!CanBePutTogether(inputs[i], node, static_cast<int>(i))) {
        return Stop(absl::StrCat(Quoted(node), " needs '",
                                 node.input(static_cast<int>(i)).node->name(),
                                 "' of the whole batch, which cannot be put together of ",
                                 inputs[i].ToString(), " of the workers"));
      }
    }
    use->cause = CauseOf(node, inputs);
    use->outputs.assign(node.num_outputs(), Share{.late = true});
    if (!IsRandom(node) || !inputs[0].elements) return;
    analysis_.random_nodes.push_back(node.name());
    std::optional<int> dim;
    for (size_t d = 0; d < inputs[0].elements->size(); ++d) {
      if ((*inputs[0].elements)[d].power != -1) continue;
      if (dim) return;
      dim = static_cast<int>(d);
    }
    if (!dim) return;
    Share share = Share::Slice(*dim);
    share.cut = true;
    use->outputs = {share};
    KnowShape(node, inputs[0]);
  }

  const Node* CauseOf(const Node& node, const std::vector<Share>& inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto source = analysis_.uses.find(node.input(static_cast<int>(i)).node);
      if (inputs[i].late && source != analysis_.uses.end() && source->second.cause != nullptr)
        return source->second.cause;
    }
    return &node;
  }

  // Scaled parts are divided again, which integers cannot be.
  static bool CanBePutTogether(const Share& share, const Node& reader, int input) {
    if (share.is_whole() || share.cut) return true;
    const DType dtype = reader.input_type(input).dtype;
    if (share.is_equal()) {
      if (share.UniformPower() == 0) return true;
      if (IsFloating(dtype)) return share.UniformPower().has_value();
      if (!share.elements) return share.scale <= 0;
      return std::all_of(share.elements->begin(), share.elements->end(),
                         [](const Element& element) { return element.power <= 0; });
    }
    if (share.scale != 0 && !share.zero && !IsFloating(dtype)) return false;
    return share.is_slice() || IsFloating(dtype) || dtype == DType::kInt32 ||
           dtype == DType::kInt64;
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
    std::vector<std::string> given;
    for (const Share& share : inputs) given.push_back(share.ToString());
    return absl::StrCat("the rows of ", Quoted(node), " do not stay apart: its inputs are ",
                        absl::StrJoin(given, ", "));
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
  KnownShapes shapes_;
  Analysis analysis_;
};

}  // namespace

StatusOr<Analysis> AnalyseStep(const Graph& step, const std::vector<FedTensor>& feeds,
                               int workers) {
  return Analyser(step, feeds, workers).Run();
}

}  // namespace weft::replicate
