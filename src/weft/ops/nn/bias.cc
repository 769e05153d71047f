// SPDX-License-Identifier: Apache-2.0
// Adding a bias to the channels of a tensor, and its gradient.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/nn/channel_kernel.h"
#include "weft/ops/nn/row_kernel.h"

namespace weft::ops::nn::bias {
namespace {

constexpr int64_t kParallelElements = 32 << 10;

// A tensor seen as [outer, channels, inner]: inner is 1 where the channels come last.
struct Layout {
  int64_t outer = 1;
  int64_t channels = 0;
  int64_t inner = 1;
};

Layout LayoutOf(const Shape& shape, bool channels_first) {
  const int axis = channels_first ? 1 : shape.rank() - 1;
  Layout layout;
  for (int i = 0; i < axis; ++i) layout.outer *= shape.dim(i);
  layout.channels = shape.dim(axis);
  for (int i = axis + 1; i < shape.rank(); ++i) layout.inner *= shape.dim(i);
  return layout;
}

StatusOr<bool> IsChannelsFirst(KernelConstruction& c) {
  if (c.op() == "BiasAddV1") return false;
  WEFT_ASSIGN_OR_RETURN(const std::string format, c.Attr<std::string>("data_format"));
  return format == "NCHW";
}

template <typename T>
void AddBias(const KernelContext& c, const Layout& at, const T* x, const T* bias, T* y) {
  if (at.inner == 1) {
    const int64_t block =
        std::max<int64_t>(1, kParallelElements / std::max<int64_t>(1, at.channels));
    c.ParallelFor(at.outer, block, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * at.channels;
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        Rows<T>().add_bias(x + first, bias, end - begin, at.channels, y + first);
      } else {
        for (int64_t i = 0; i < (end - begin) * at.channels; ++i) {
          y[first + i] = static_cast<T>(x[first + i] + bias[i % at.channels]);
        }
      }
    });
    return;
  }
  c.ParallelFor(at.outer * at.channels, std::max<int64_t>(1, kParallelElements / at.inner),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const T b = bias[row % at.channels];
                    for (int64_t i = row * at.inner; i < (row + 1) * at.inner; ++i) {
                      y[i] = static_cast<T>(x[i] + b);
                    }
                  }
                });
}

class BiasAddKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const bool channels_first, IsChannelsFirst(c));
    return std::make_unique<BiasAddKernel>(channels_first);
  }
  explicit BiasAddKernel(bool channels_first) : channels_first_(channels_first) {}

  Status Compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    const Tensor& bias = c.input(1);
    const Shape shape = x.shape();
    if (shape.rank() < 2) {
      return InvalidArgument("Input tensor must be at least 2D: ", shape.ToString());
    }
    if (!bias.shape().IsVector())
      return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
    const Layout at = LayoutOf(shape, channels_first_);
    if (at.channels != bias.dim(0)) return WrongCount(bias.shape(), shape);
    WEFT_ASSIGN_OR_RETURN(Tensor * y, c.ForwardOrAllocateOutput(0, 0, shape));
    if (y->num_elements() == 0) return absl::OkStatus();
    const bool known = VisitDType(y->dtype(), Numbers(), [&]<typename T>() {
      AddBias<T>(c, at, x.data<T>(), bias.data<T>(), y->data<T>());
    });
    return known ? absl::OkStatus() : Unimplemented("BiasAdd of ", DTypeName(y->dtype()));
  }

 private:
  static Status WrongCount(const Shape& bias, const Shape& input) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ", bias.ToString(),
        " vs. ", input.ToString());
  }
  const bool channels_first_;
};

// Sums in double's width for the narrow types, as their own is too coarse.
template <typename T>
using Accumulator =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>, float, T>;

template <typename T>
void SumToChannels(const Layout& at, const T* x, T* sums) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (at.inner == 1) {
      std::fill_n(sums, at.channels, T(0));
      Rows<T>().add_to_sums(x, at.outer, at.channels, sums);
      return;
    }
  }
  using A = Accumulator<T>;
  for (int64_t channel = 0; channel < at.channels; ++channel) {
    A total = A(0);
    for (int64_t o = 0; o < at.outer; ++o) {
      const T* from = x + (o * at.channels + channel) * at.inner;
      A row = A(0);
      for (int64_t i = 0; i < at.inner; ++i) row = static_cast<A>(row + static_cast<A>(from[i]));
      total = static_cast<A>(total + row);
    }
    sums[channel] = static_cast<T>(total);
  }
}

// Rows of floats: chunks on all threads, added up in their order.
Status SumRowsToChannels(const KernelContext& c, const Layout& at, const float* x, float* sums) {
  const int64_t rows = RowsOfChunk(at.channels);
  const int64_t chunks = (at.outer + rows - 1) / rows;
  if (chunks == 1) {
    GetChannelFunctions().sum(x, at.outer, at.channels, sums);
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(Tensor parts,
                        c.AllocateTemporary(DType::kFloat, Shape{chunks, at.channels}));
  float* const made = parts.data<float>();
  c.ParallelFor(chunks, std::max<int64_t>(1, kParallelElements / (rows * at.channels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    GetChannelFunctions().sum(x + i * rows * at.channels,
                                              std::min(rows, at.outer - i * rows), at.channels,
                                              made + i * at.channels);
                  }
                });
  GetChannelFunctions().sum(made, chunks, at.channels, sums);
  return absl::OkStatus();
}

class BiasAddGradKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const bool channels_first, IsChannelsFirst(c));
    return std::make_unique<BiasAddGradKernel>(channels_first);
  }
  explicit BiasAddGradKernel(bool channels_first) : channels_first_(channels_first) {}

  Status Compute(KernelContext& c) override {
    const Tensor& gradient = c.input(0);
    if (gradient.rank() < 2) {
      return InvalidArgument("Input tensor must be at least 2D: ", gradient.shape().ToString());
    }
    const Layout at = LayoutOf(gradient.shape(), channels_first_);
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape{at.channels}));
    if (gradient.num_elements() == 0) {
      ClearElements(output, 0, output->num_elements());
      return absl::OkStatus();
    }
    if (output->dtype() == DType::kFloat && at.inner == 1) {
      return SumRowsToChannels(c, at, gradient.data<float>(), output->data<float>());
    }
    const bool known = VisitDType(output->dtype(), Numbers(), [&]<typename T>() {
      SumToChannels<T>(at, gradient.data<T>(), output->data<T>());
    });
    return known ? absl::OkStatus() : Unimplemented("BiasAddGrad of ", DTypeName(output->dtype()));
  }

 private:
  const bool channels_first_;
};

Status BiasAddShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape input, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  const StatusOr<std::string> format = c.Attr<std::string>("data_format");
  if (input.known_rank()) {
    const int axis = format.ok() && *format == "NCHW" ? 1 : input.rank() - 1;
    PartialShape channels{input.dim(axis)};
    WEFT_ASSIGN_OR_RETURN(channels, channels.MergeWith(bias));
    input.SetDim(axis, channels.dim(0));
  }
  c.set_output(0, std::move(input));
  return absl::OkStatus();
}

Status BiasAddGradShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape input, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(const std::string format, c.Attr<std::string>("data_format"));
  const int axis = format == "NCHW" ? 1 : input.rank() - 1;
  c.set_output(0, PartialShape{input.known_rank() ? input.dim(axis) : -1});
  return absl::OkStatus();
}

Status BiasAddGradient(GradientContext& c) {
  const auto format = FindAttrOr<std::string>(c.node().attrs(), "data_format", "NHWC");
  c.set_input(0, c.gradient());
  c.set_input(1, c.Op("BiasAddGrad", {c.gradient()}, {{"data_format", format}}));
  return absl::OkStatus();
}

// The gradient of a sum over all but the channels: the channels' gradient everywhere.
Status BiasAddGradGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string format, c.Attr<std::string>("data_format"));
  const Endpoint zeros = c.Op("ZerosLike", {c.input(0)});
  c.set_input(0, c.Op("BiasAdd", {zeros, c.gradient()}, {{"data_format", format}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("BiasAdd")
          .Doc("Adds `bias` [channels] to `value`, whose channels are its last dimension, or its "
               "second one for data_format NCHW.\n"
               "InvalidArgument if the numbers of channels differ.")
          .Input("value: T")
          .Input("bias: T")
          .Output("output: T")
          .Attr("T: numbertype")
          .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
          .Traits({.fuses_as = FusesAs::kBias})
          .Shape(BiasAddShape)
          .Gradient(BiasAddGradient)
          .Kernel({.types = {{"T", DTypesOf(Numbers())}}, .factory = MakeKernel<BiasAddKernel>()}));
  catalogue.Add(
      OpSpec("BiasAddV1")
          .Doc("Adds `bias` [channels] to `value`, whose channels are its last dimension.")
          .Input("value: T")
          .Input("bias: T")
          .Output("output: T")
          .Attr("T: numbertype")
          .Shape(BiasAddShape)
          .Gradient(BiasAddGradient)
          .Kernel({.types = {{"T", DTypesOf(Numbers())}}, .factory = MakeKernel<BiasAddKernel>()}));
  catalogue.Add(
      OpSpec("BiasAddGrad")
          .Doc("Sums over all dimensions but the channels: the gradient of BiasAdd's bias.")
          .Input("out_backprop: T")
          .Output("output: T")
          .Attr("T: numbertype")
          .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
          .Shape(BiasAddGradShape)
          .Gradient(BiasAddGradGradient)
          .Kernel(
              {.types = {{"T", DTypesOf(Numbers())}}, .factory = MakeKernel<BiasAddGradKernel>()}));
}

}  // namespace weft::ops::nn::bias
