// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/batch_norm.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"

#include "weft/graph/builder.h"

namespace weft::replicate {
namespace {

bool IsForward(const Node& node) {
  return node.op() == "FusedBatchNorm" || node.op() == "FusedBatchNormV2" ||
         node.op() == "FusedBatchNormV3";
}

bool IsGradient(const Node& node) { return absl::StartsWith(node.op(), "FusedBatchNormGrad"); }

bool IsTraining(const Node& node) { return FindAttrOr<bool>(node.attrs(), "is_training", true); }

// Inference has a rule of its own; its gradient has none.
bool IsToExpand(const Node& node) {
  if (!IsGradient(node) && !(IsForward(node) && IsTraining(node))) return false;
  return FindAttrOr<DType>(node.attrs(), "U", DType::kFloat) == DType::kFloat &&
         node.output_type(1).dtype == DType::kFloat;
}

Tensor Sizes(const std::vector<int32_t>& sizes) {
  return Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(sizes.size())}, sizes);
}

// Puts other nodes in the place of one.
class Expansion {
 public:
  Expansion(Graph* graph, Node* node) : graph_(graph), node_(node), b_(graph) {
    b_.PushName(node->name());
    b_.set_control_inputs(node->control_inputs());
    const auto format = FindAttrOr<std::string>(node->attrs(), "data_format", "NHWC");
    rank_ = static_cast<int>(format.size());
    channels_first_ = format == "NCHW" || format == "NCDHW";
    std::vector<int32_t> axes;
    for (int d = 0; d < rank_; ++d) {
      if (d != (channels_first_ ? 1 : rank_ - 1)) axes.push_back(d);
    }
    axes_ = b_.Constant(Sizes(axes), "axes");
    epsilon_ = b_.Scalar<float>(FindAttrOr<float>(node->attrs(), "epsilon", 1e-4f));
  }

  Status Run() {
    std::vector<Endpoint> outputs = IsForward(*node_) ? Forward() : Backward();
    WEFT_RETURN_IF_ERROR(b_.status());
    for (int i = 0; i < node_->num_outputs(); ++i)
      graph_->RedirectConsumers({node_, i}, outputs[i]);
    const std::vector<Consumer> consumers = node_->consumers();
    for (const Consumer& reader : consumers) {
      if (reader.input == kControlPort) graph_->AddControlEdge(outputs[0].node, reader.node);
    }
    graph_->RemoveNode(node_);
    return absl::OkStatus();
  }

 private:
  Endpoint Wide(const Endpoint& x) {
    const DType dtype = x.node->output_type(x.port).dtype;
    return dtype == DType::kFloat ? x : b_.Op("Cast", {x}, {{"DstT", DType::kFloat}});
  }
  Endpoint Narrow(const Endpoint& x) {
    const DType dtype = node_->output_type(0).dtype;
    return dtype == DType::kFloat ? x : b_.Op("Cast", {x}, {{"DstT", dtype}});
  }
  // A value of each channel, so that it goes with images.
  Endpoint OfChannels(const Endpoint& vector) {
    if (!channels_first_) return vector;
    std::vector<int32_t> sizes(rank_, 1);
    sizes[1] = -1;
    return b_.Op("Reshape", {vector, b_.Constant(Sizes(sizes), "sizes")});
  }
  Endpoint AsVector(const Endpoint& of_channels) {
    return b_.Op("Reshape", {of_channels, b_.Constant(Sizes({-1}), "flat")});
  }
  Endpoint MeanOf(const Endpoint& x, const char* name) {
    return b_.Op("Mean", {x, axes_}, {{"keep_dims", true}}, name);
  }
  Endpoint Inverse(const Endpoint& variance) {
    return b_.Op("Rsqrt", {b_.Op("AddV2", {variance, epsilon_})}, {}, "inverse");
  }

  // How many values a channel has in the batch.
  Endpoint Count(const Endpoint& x, const Endpoint& scale) {
    const auto size = [&](const Endpoint& of) {
      return b_.Op("Cast", {b_.Op("Size", {of})}, {{"DstT", DType::kFloat}});
    };
    return b_.Op("RealDiv", {size(x), size(scale)}, {}, "count");
  }

  // What runs along: the batch's value, or it and the old one by weight.
  Endpoint Running(const Endpoint& of_batch, const Endpoint& old) {
    const auto factor = FindAttrOr<float>(node_->attrs(), "exponential_avg_factor", 1.0f);
    if (factor == 1) return of_batch;
    return b_.Op("AddV2", {b_.Op("Mul", {of_batch, b_.Scalar<float>(factor)}),
                           b_.Op("Mul", {old, b_.Scalar<float>(1 - factor)})});
  }

  std::vector<Endpoint> Forward() {
    const Endpoint scale = node_->input(1), offset = node_->input(2);
    const Endpoint x = Wide(node_->input(0));
    const Endpoint mean = MeanOf(x, "mean");
    const Endpoint centred = b_.Op("Sub", {x, mean}, {}, "centred");
    const Endpoint variance = MeanOf(b_.Op("Square", {centred}), "variance");
    const Endpoint factor = b_.Op("Mul", {Inverse(variance), OfChannels(scale)});
    const Endpoint y =
        b_.Op("AddV2", {b_.Op("Mul", {centred, factor}), OfChannels(offset)}, {}, "normalized");
    const Endpoint count = Count(x, scale), one = b_.Scalar<float>(1);
    const Endpoint unbiased =
        b_.Op("RealDiv", {count, b_.Op("Maximum", {b_.Op("Sub", {count, one}), one})});
    const Endpoint means = AsVector(mean), variances = AsVector(variance);
    std::vector<Endpoint> outputs = {Narrow(y), Running(means, node_->input(3)),
                                     Running(b_.Op("Mul", {variances, unbiased}), node_->input(4)),
                                     means, variances};
    if (node_->num_outputs() > 5) outputs.push_back(b_.Scalar<float>(0));
    return outputs;
  }

  std::vector<Endpoint> Backward() {
    const Endpoint dy = Wide(node_->input(0)), x = Wide(node_->input(1));
    const Endpoint inverse = Inverse(OfChannels(node_->input(4)));
    const Endpoint centred = b_.Op("Sub", {x, OfChannels(node_->input(3))}, {}, "centred");
    const Endpoint normal = b_.Op("Mul", {centred, inverse}, {}, "normal");
    const Endpoint product = b_.Op("Mul", {dy, normal});
    Endpoint rest = dy;
    if (IsTraining(*node_)) {
      rest = b_.Op("Sub", {dy, MeanOf(dy, "mean_gradient")});
      rest = b_.Op("Sub", {rest, b_.Op("Mul", {normal, MeanOf(product, "mean_product")})});
    }
    const Endpoint factor = b_.Op("Mul", {inverse, OfChannels(node_->input(2))});
    const Endpoint dx = b_.Op("Mul", {rest, factor}, {}, "gradient");
    const Endpoint none = b_.Constant(Tensor::FromSpan<float>(Shape{0}, {}), "none");
    return {Narrow(dx), b_.Op("Sum", {product, axes_}, {}, "scale_gradient"),
            b_.Op("Sum", {dy, axes_}, {}, "offset_gradient"), none, none};
  }

  Graph* const graph_;
  Node* const node_;
  GraphBuilder b_;
  int rank_ = 4;
  bool channels_first_ = false;
  Endpoint axes_;
  Endpoint epsilon_;
};

}  // namespace

bool HasBatchNorm(const Graph& step) {
  const std::vector<Node*> nodes = step.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return IsToExpand(*node); });
}

Status ExpandBatchNorm(Graph* step) {
  for (Node* node : step->nodes()) {
    if (!IsToExpand(*node)) continue;
    const std::string device = node->assigned_device();
    const int first = step->max_id();
    WEFT_RETURN_IF_ERROR(Expansion(step, node).Run());
    for (Node* added : step->nodes()) {
      if (added->id() >= first) added->set_assigned_device(device);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft::replicate
