// SPDX-License-Identifier: Apache-2.0
#include "weft/train/layers.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weft::train {
namespace {

// Size `dim` (from the end if negative) of a tensor of `rank`, or 1 and an error at the builder.
int64_t KnownSize(GraphBuilder& b, const std::string& layer, Endpoint x, int rank, int dim) {
  if (!b.ok()) return 1;
  const PartialShape shape = b.ShapeOf(x);
  if (shape.rank() == rank && shape.dim(dim) >= 0) return shape.dim(dim);
  b.Fail(InvalidArgument("Layer '", layer, "' needs an input of rank ", rank, " whose size ", dim,
                         " is known when the graph is built, but '", x.node->name(), "' has shape ",
                         shape.ToString()));
  return 1;
}

Endpoint Finish(Program& program, const std::string& name, Endpoint x, int64_t units, bool use_bias,
                const Activation& activation) {
  GraphBuilder& b = program.builder();
  if (use_bias) {
    const Variable bias =
        program.AddVariable(absl::StrCat(name, "/bias"), DType::kFloat, {units}, Zeros());
    x = b.Op("BiasAdd", {x, bias.value});
  }
  return activation ? activation(b, x) : x;
}

Endpoint Pool(GraphBuilder& b, const char* op, Endpoint images, int64_t size) {
  const AttrValue::IntList window = {1, size, size, 1};
  return b.Op(op, {images}, {{"ksize", window}, {"strides", window}, {"padding", "VALID"}});
}

}  // namespace

Endpoint Relu(GraphBuilder& builder, Endpoint x) { return builder.Op("Relu", {x}); }
Endpoint Sigmoid(GraphBuilder& builder, Endpoint x) { return builder.Op("Sigmoid", {x}); }
Endpoint Tanh(GraphBuilder& builder, Endpoint x) { return builder.Op("Tanh", {x}); }

Endpoint Dense(Program& program, const std::string& name, Endpoint x, int64_t units,
               const DenseOptions& options) {
  GraphBuilder& b = program.builder();
  const int64_t inputs = KnownSize(b, name, x, 2, 1);
  const Variable kernel =
      program.AddVariable(absl::StrCat(name, "/kernel"), DType::kFloat, {inputs, units},
                          GlorotUniform(options.seed, options.seed));
  return Finish(program, name, b.Op("MatMul", {x, kernel.value}), units, options.use_bias,
                options.activation);
}

Endpoint Conv2D(Program& program, const std::string& name, Endpoint images, int64_t filters,
                int64_t size, const Conv2DOptions& options) {
  GraphBuilder& b = program.builder();
  const int64_t channels = KnownSize(b, name, images, 4, 3);
  const Variable kernel = program.AddVariable(absl::StrCat(name, "/kernel"), DType::kFloat,
                                              {size, size, channels, filters},
                                              GlorotUniform(options.seed, options.seed));
  const AttrValue::IntList strides = {1, options.stride, options.stride, 1};
  const Endpoint out =
      b.Op("Conv2D", {images, kernel.value}, {{"strides", strides}, {"padding", options.padding}});
  return Finish(program, name, out, filters, options.use_bias, options.activation);
}

Endpoint MaxPool(GraphBuilder& builder, Endpoint images, int64_t size) {
  return Pool(builder, "MaxPool", images, size);
}
Endpoint AveragePool(GraphBuilder& builder, Endpoint images, int64_t size) {
  return Pool(builder, "AvgPool", images, size);
}

Endpoint Flatten(GraphBuilder& builder, Endpoint x) {
  if (!builder.ok()) return {};
  const PartialShape shape = builder.ShapeOf(x);
  int64_t rest = 1;
  for (int i = 1; i < shape.rank(); ++i)
    rest = shape.dim(i) < 0 || rest < 0 ? -1 : rest * shape.dim(i);
  if (shape.rank() < 1 || rest < 0) {
    builder.Fail(
        InvalidArgument("Flatten needs sizes that are known when the graph is built, but '",
                        x.node->name(), "' has shape ", shape.ToString()));
    return {};
  }
  const Endpoint sizes =
      builder.Constant(Tensor::Vector<int32_t>({-1, static_cast<int32_t>(rest)}));
  return builder.Op("Reshape", {x, sizes});
}

Endpoint Dropout(GraphBuilder& builder, Endpoint x, double rate, Endpoint training, int64_t seed) {
  if (!builder.ok()) return {};
  if (!(rate >= 0 && rate < 1)) {
    builder.Fail(InvalidArgument("Dropout needs a rate of at least 0 and below 1, got ", rate));
    return {};
  }
  builder.PushName("dropout");
  const DType dtype = x.node->output_type(x.port).dtype;
  const auto scalar = [&](double value) {
    return builder.Op("Cast", {builder.Scalar<double>(value)}, {{"DstT", dtype}});
  };
  const Endpoint random = builder.Op("RandomUniform", {builder.Op("Shape", {x})},
                                     {{"dtype", dtype}, {"seed", seed}, {"seed2", seed}});
  const Endpoint keep =
      builder.Op("Cast", {builder.Op("GreaterEqual", {random, scalar(rate)})}, {{"DstT", dtype}});
  const Endpoint dropped =
      builder.Op("Mul", {builder.Op("Mul", {x, scalar(1 / (1 - rate))}), keep});
  const Endpoint out = builder.Op("SelectV2", {training, dropped, x});
  builder.PopName();
  return out;
}

}  // namespace weft::train
