// SPDX-License-Identifier: Apache-2.0
// A convolution and what follows it in one call: what the compiler makes of them.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/fused_part.h"
#include "weft/ops/nn/channel_kernel.h"
#include "weft/ops/nn/conv_kernel.h"
#include "weft/ops/nn/given_norm.h"
#include "weft/ops/nn/row_kernel.h"
#include "weft/ops/work_sharer.h"

namespace weft::ops::nn::fused_conv {
namespace {

// What follows a convolution, in this order; each part may be missing.
struct Follows {
  std::optional<GivenNorm> norm;
  const float* bias = nullptr;
  const float* addend = nullptr;  // as large as the output
  decltype(TileBody::run) add = nullptr;
  decltype(TileBody::run) activation = nullptr;

  // Rows of `columns` channels at `part` of an output [pixels, channels].
  void Finish(float* output, int64_t channels, float* part, int64_t rows, int64_t columns) const {
    if (columns < channels) {  // rows do not lie side by side
      for (int64_t r = 0; r < rows; ++r)
        FinishRun(output, channels, part + r * channels, 1, columns);
    } else {
      FinishRun(output, channels, part, rows, columns);
    }
  }

 private:
  void FinishRun(float* output, int64_t channels, float* part, int64_t rows,
                 int64_t columns) const {
    const int64_t channel = (part - output) % channels;
    if (norm.has_value()) {
      GetChannelFunctions().normalize(part, norm->mean.data() + channel,
                                      norm->factor.data() + channel, norm->shift.data() + channel,
                                      rows, columns, part);
    }
    if (bias != nullptr) Rows<float>().add_bias(part, bias + channel, rows, columns, part);
    auto* bytes = reinterpret_cast<std::byte*>(part);
    if (addend != nullptr) {
      add(bytes, 1, reinterpret_cast<const std::byte*>(addend + (part - output)), 1, bytes,
          rows * columns);
    }
    if (activation != nullptr) activation(bytes, 1, nullptr, 0, bytes, rows * columns);
  }
};

class FusedConvKernel final : public OpKernel {
 public:
  FusedConvKernel(KernelConstruction& k, ConvOptions options, const TileBody& add,
                  const TileBody* activation)
      : options_(std::move(options)),
        has_norm_(!k.AttrOr<std::string>("norm_op", "").empty()),
        has_bias_(k.AttrOr<bool>("has_bias", false)),
        has_sum_(k.AttrOr<bool>("has_sum", false)),
        sum_is_left_(k.AttrOr<bool>("sum_is_left", false)),
        epsilon_(static_cast<double>(k.AttrOr<float>("epsilon", 0))),
        names_(k.AttrOr<AttrValue::StringList>("names", {})),
        add_(add.run),
        activation_(activation == nullptr ? nullptr : activation->run) {
    names_.resize(4);
  }

  Status Compute(KernelContext& c) override {
    StatusOr<ConvShape> s = ConvShapeOf(options_, c.input(0).shape(), c.input(1).shape());
    if (!s.ok()) return ErrorOfPart(names_[0], s.status());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ConvOutputShape(*s));
    Follows follows{.add = add_, .activation = activation_};
    int next = 2;
    if (has_norm_) {
      auto norm = GivenNormOf(c, next, s->out_channels, epsilon_);
      if (!norm.ok()) return ErrorOfPart(names_[1], norm.status());
      follows.norm = *std::move(norm);
      next += 4;
    }
    if (has_bias_) {
      const Tensor& bias = c.input(next++);
      if (bias.rank() != 1) {
        return ErrorOfPart(names_[2],
                           InvalidArgument("Biases must be 1D: ", bias.shape().ToString()));
      }
      if (bias.dim(0) != s->out_channels) {
        return ErrorOfPart(
            names_[2],
            InvalidArgument(
                "Must provide as many biases as the last dimension of the input tensor: ",
                bias.shape().ToString(), " vs. ", shape.ToString()));
      }
      follows.bias = bias.data<float>();
    }
    if (!has_sum_) return Convolve(c, *s, shape, follows, nullptr);
    const Tensor& other = c.input(next);
    if (other.shape() == shape) {
      follows.addend = other.data<float>();
      return Convolve(c, *s, shape, follows, nullptr);
    }
    if (other.rank() == 1 && other.dim(0) == s->out_channels && follows.bias == nullptr) {
      follows.bias = other.data<float>();
      return Convolve(c, *s, shape, follows, nullptr);
    }
    // What is neither a row nor as large: the parts one after the other.
    follows.activation = nullptr;
    WEFT_ASSIGN_OR_RETURN(Tensor made, c.AllocateTemporary(DType::kFloat, shape));
    WEFT_RETURN_IF_ERROR(Convolve(c, *s, shape, follows, &made));
    return AddBroadcast<float>(c, {names_[3], sum_is_left_, add_, activation_}, made, other);
  }

 private:
  // To output 0, or `made`.
  Status Convolve(KernelContext& c, const ConvShape& s, const Shape& shape, const Follows& follows,
                  Tensor* made) const {
    if (made == nullptr) {
      WEFT_ASSIGN_OR_RETURN(made, c.AllocateOutput(0, shape));
    }
    float* const out = made->data<float>();
    const auto finish_part = [&](void* part, int64_t rows, int64_t columns) {
      follows.Finish(out, s.out_channels, static_cast<float*>(part), rows, columns);
    };
    const PartFinisher finish = finish_part;
    if (ConvForward(s, c.input(0).data<float>(), c.input(1).data<float>(), out, SharerOf(c),
                    &finish)) {
      return absl::OkStatus();
    }
    return ResourceExhausted("Out of memory for a convolution");
  }

  const ConvOptions options_;
  const bool has_norm_;
  const bool has_bias_;
  const bool has_sum_;
  const bool sum_is_left_;  // the other summand is
  const double epsilon_;
  std::vector<std::string> names_;  // of convolution, norm, bias and sum in the user's graph
  decltype(TileBody::run) const add_;
  decltype(TileBody::run) const activation_;
};

KernelDef KernelWith(const KernelRegistry* kernels) {
  return {.factory = [kernels](KernelConstruction& k) -> StatusOr<std::unique_ptr<OpKernel>> {
    const TileBody* add = kernels->FindTile("AddV2", DType::kFloat);
    const auto activation = k.AttrOr<std::string>("activation", "");
    const TileBody* tile =
        activation.empty() ? nullptr : kernels->FindTile(activation, DType::kFloat);
    if (add == nullptr || (tile == nullptr && !activation.empty())) {
      return NotFound("No element-wise body of '", activation, "' for float");
    }
    ConvOptions options{.depthwise =
                            absl::StartsWith(k.AttrOr<std::string>("conv_op", ""), "Depthwise")};
    WEFT_ASSIGN_OR_RETURN(options.window, Window::FromAttrs(k.call().attrs()));
    return std::make_unique<FusedConvKernel>(k, std::move(options), *add, tile);
  }};
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("_FusedConv")
          .Doc("A convolution of float images, then of these what is there, in this order: batch "
               "normalization by given statistics, a bias, a sum, an activation. Made by the "
               "compiler; graphs of clients may not hold it.")
          .Input("input: float")
          .Input("filter: float")
          .Input("follows: N * float")
          .Output("output: float")
          .Attr("N: int >= 0")
          .Attr("strides: list(int)")
          .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
          .Attr("explicit_paddings: list(int) = []")
          .Attr("dilations: list(int) = [1, 1, 1, 1]")
          .Attr("conv_op: {'Conv2D', 'DepthwiseConv2dNative'}")
          .Attr("norm_op: {'', 'FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3'} = ''")
          .Attr("epsilon: float = 0.0")
          .Attr("has_bias: bool = false")
          .Attr("has_sum: bool = false")
          .Attr("sum_is_left: bool = false")
          .Attr("activation: string = ''")
          .Attr("names: list(string) = []")
          .Shape(shapes::Unknown)
          .NoGradient()
          .Kernel(KernelWith(&catalogue.kernels())));
}

}  // namespace weft::ops::nn::fused_conv
