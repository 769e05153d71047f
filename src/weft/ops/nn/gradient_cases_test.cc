// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/gradient_cases_test.h"

#include "weft/ops/testing/graph_runner.h"
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using Cases = std::vector<GradientCase>;

// Output 0 of a pool.
Tensor Pooled(const char* op, const Tensor& in, const AttrMap& attrs) {
  GraphRunner runner;
  const Endpoint x = runner.Input(in.dtype());
  const Endpoint y{runner.builder().AddNode(op, {x}, attrs), 0};
  const StatusOr<std::vector<Tensor>> results = runner.Evaluate({{x, in}}, {y});
  return results.ok() ? (*results)[0] : Tensor();
}

// Values that lie further apart than the steps of differences.
Tensor Spaced(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.1f * static_cast<float>(i * 7919 % values.size());
  }
  return Tensor::FromSpan<float>(shape, values);
}

void AddActivations(Cases& cases) {
  for (const char* op : {"Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"}) {
    cases.push_back({op, {Between({2, 3}, 0.2, 2)}, {}, 1, "positive"});
    cases.push_back({op, {Between({2, 3}, -2, -0.2)}, {}, 1, "negative"});
  }
  for (const char* op : {"ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad"}) {
    cases.push_back({op, {Between({2, 3}), Between({2, 3}, 0.2, 2, 2)}, {}, 2});
  }
  // Their second input is an output: linear above 0, as the op is.
  for (const char* op : {"EluGrad", "SeluGrad"}) {
    cases.push_back({op, {Between({2, 3}), Between({2, 3}, 0.2, 0.8, 2)}, {}, 2, "positive"});
    cases.push_back({op, {Between({2, 3}), Between({2, 3}, -0.8, -0.2, 2)}, {}, 2, "negative"});
  }
  for (const char* op : {"Softmax", "LogSoftmax"}) cases.push_back({op, {Between({3, 4}, -2, 2)}});
}

void AddLosses(Cases& cases) {
  cases.push_back({"BiasAdd", {Between({2, 3, 4}), Between({4})}, {}, 2});
  cases.push_back({"BiasAdd",
                   {Between({2, 3, 2, 2}), Between({3})},
                   {{"data_format", "NCHW"}},
                   2,
                   "channels first"});
  cases.push_back({"BiasAddV1", {Between({2, 3}), Between({3})}, {}, 2});
  cases.push_back({"BiasAddGrad", {Between({2, 3, 4})}});
  const Tensor labels = Make<double>({2, 3}, {0.2, 0.3, 0.5, 1, 0, 0});
  cases.push_back(
      {"SparseSoftmaxCrossEntropyWithLogits", {Between({2, 3}), Tensor::Vector<int32_t>({2, 0})}});
  cases.push_back({"SoftmaxCrossEntropyWithLogits", {Between({2, 3}), labels}, {}, 2, "loss", 1});
  cases.push_back(
      {"SoftmaxCrossEntropyWithLogits", {Between({2, 3}), labels}, {}, 1, "both", -1, {1}});
}

void AddConvolutions(Cases& cases) {
  const AttrValue::IntList two = {1, 2, 2, 1};
  const AttrMap attrs = {{"strides", two}, {"padding", "SAME"}};
  cases.push_back({"Conv2D", {Between({2, 5, 4, 2}), Between({3, 2, 2, 3}, -1, 1, 2)}, attrs, 2});
  const Tensor input_sizes = Tensor::Vector<int32_t>({2, 5, 4, 2});
  const Tensor filter_sizes = Tensor::Vector<int32_t>({3, 2, 2, 3});
  const Tensor out = Between({2, 3, 2, 3}, -1, 1, 3);
  cases.push_back({"Conv2DBackpropInput", {input_sizes, Between({3, 2, 2, 3}), out}, attrs, 2});
  cases.push_back({"Conv2DBackpropFilter", {Between({2, 5, 4, 2}), filter_sizes, out}, attrs, 2});
  AttrMap pool = attrs;
  pool.emplace("ksize", AttrValue::IntList{1, 3, 2, 1});
  cases.push_back({"MaxPool", {Between({2, 5, 4, 2})}, pool});
  const Tensor pooled = Pooled("MaxPool", Between({2, 5, 4, 2}), pool);
  cases.push_back({"MaxPoolGrad", {Between({2, 5, 4, 2}), pooled, Between({2, 3, 2, 2})}, pool});
  cases.push_back(
      {"MaxPoolGradGrad", {Between({2, 5, 4, 2}), pooled, Between({2, 5, 4, 2}, -1, 1, 5)}, pool});
  const Tensor size = Tensor::Vector<int32_t>({1, 3, 2, 1});
  const Tensor steps = Tensor::Vector<int32_t>({1, 2, 2, 1});
  cases.push_back({"MaxPoolGradV2",
                   {Between({2, 5, 4, 2}), pooled, Between({2, 3, 2, 2}), size, steps},
                   {{"padding", "SAME"}}});
  cases.push_back({"MaxPoolGradGradV2",
                   {Between({2, 5, 4, 2}), pooled, Between({2, 5, 4, 2}), size, steps},
                   {{"padding", "SAME"}}});
  cases.push_back({"AvgPool", {Between({2, 5, 4, 2})}, pool});
  cases.push_back({"AvgPoolGrad", {input_sizes, Between({2, 3, 2, 2})}, pool});
  cases.push_back({"MaxPoolV2",
                   {Between({1, 4, 4, 2}), Tensor::Vector<int32_t>({1, 2, 2, 1}),
                    Tensor::Vector<int32_t>({1, 2, 1, 1})},
                   {{"padding", "VALID"}}});
}

void AddWaysToConvolve(Cases& cases) {
  const AttrValue::IntList one = {1, 1, 1, 1};
  const Tensor filter = Between({3, 2, 2, 3}, -1, 1, 2);
  cases.push_back({"Conv2D",
                   {Between({1, 5, 4, 2}), filter},
                   {{"strides", one}, {"padding", "VALID"}},
                   2,
                   "valid"});
  cases.push_back(
      {"Conv2D",
       {Between({1, 6, 5, 2}), filter},
       {{"strides", one}, {"padding", "SAME"}, {"dilations", AttrValue::IntList{1, 2, 2, 1}}},
       2,
       "dilated"});
  cases.push_back({"Conv2D",
                   {Between({1, 4, 4, 2}), filter},
                   {{"strides", one},
                    {"padding", "EXPLICIT"},
                    {"explicit_paddings", AttrValue::IntList{0, 0, 2, 1, 0, 1, 0, 0}}},
                   2,
                   "padded by hand"});
}

void AddChannelwise(Cases& cases) {
  const AttrMap attrs = {{"strides", AttrValue::IntList{1, 2, 2, 1}}, {"padding", "SAME"}};
  const Tensor images = Between({1, 5, 4, 2});
  const Tensor filter = Between({3, 2, 2, 2}, -1, 1, 2);
  const Tensor out = Between({1, 3, 2, 4}, -1, 1, 3);
  const Tensor image_sizes = Tensor::Vector<int32_t>({1, 5, 4, 2});
  const Tensor filter_sizes = Tensor::Vector<int32_t>({3, 2, 2, 2});
  cases.push_back({"DepthwiseConv2dNative", {images, filter}, attrs, 2});
  cases.push_back({"DepthwiseConv2dNative",
                   {Between({1, 6, 5, 2}), filter},
                   {{"strides", AttrValue::IntList{1, 1, 1, 1}},
                    {"padding", "VALID"},
                    {"dilations", AttrValue::IntList{1, 2, 2, 1}}},
                   2,
                   "dilated"});
  cases.push_back({"DepthwiseConv2dNativeBackpropInput", {image_sizes, filter, out}, attrs, 2});
  cases.push_back({"DepthwiseConv2dNativeBackpropFilter", {images, filter_sizes, out}, attrs, 2});
}

void AddNormalizations(Cases& cases) {
  const auto f = [](const Shape& shape, double low, double high, uint64_t seed) {
    return Fill<float>(shape, low, high, seed);
  };
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    for (const bool training : {true, false}) {
      const std::vector<TestInput> inputs = {f({2, 2, 2, 3}, -2, 2, 1), f({3}, 0.5, 2, 2),
                                             f({3}, -1, 1, 3), f({3}, -1, 1, 4), f({3}, 0.5, 2, 5)};
      // Running statistics are inputs without a gradient; outputs beyond the first carry none.
      std::vector<TestInput> given = inputs;
      if (training) given[3] = given[4] = f({0}, 0, 1, 1);
      cases.push_back({op,
                       given,
                       {{"is_training", training}, {"epsilon", 0.01f}},
                       3,
                       training ? "training" : "serving",
                       1,
                       {3, 4}});
    }
  }
  cases.push_back(
      {"LRN", {f({1, 2, 2, 5}, -2, 2, 1)}, {{"depth_radius", 2}, {"bias", 2.0f}, {"alpha", 0.5f}}});
}

void AddVolumes(Cases& cases) {
  const AttrMap attrs = {{"strides", AttrValue::IntList{1, 2, 1, 2, 1}}, {"padding", "SAME"}};
  const Tensor volume = Between({1, 3, 4, 3, 2}), filter = Between({2, 2, 2, 2, 2}, -1, 1, 2);
  const Tensor volume_sizes = Tensor::Vector<int32_t>({1, 3, 4, 3, 2});
  const Tensor filter_sizes = Tensor::Vector<int32_t>({2, 2, 2, 2, 2});
  const Tensor out = Between({1, 2, 4, 2, 2}, -1, 1, 3);
  cases.push_back({"Conv3D", {volume, filter}, attrs, 2});
  cases.push_back({"Conv3DBackpropInputV2", {volume_sizes, filter, out}, attrs, 2});
  cases.push_back({"Conv3DBackpropFilterV2", {volume, filter_sizes, out}, attrs, 2});
  AttrMap pool = attrs;
  pool.emplace("ksize", AttrValue::IntList{1, 2, 2, 1, 1});
  const Tensor floats = Spaced({1, 3, 4, 3, 2});
  const Tensor pooled = Pooled("MaxPool3D", floats, pool);
  cases.push_back({"MaxPool3D", {floats}, pool});
  cases.push_back(
      {"MaxPool3DGrad", {floats, pooled, Fill<float>({1, 2, 4, 2, 2}, -1, 1, 3)}, pool});
  cases.push_back(
      {"MaxPool3DGradGrad", {floats, pooled, Fill<float>({1, 3, 4, 3, 2}, -1, 1, 3)}, pool});
  cases.push_back({"AvgPool3D", {volume}, pool});
  cases.push_back({"AvgPool3DGrad", {volume_sizes, out}, pool});
}

void AddOtherPools(Cases& cases) {
  const AttrMap attrs = {{"strides", AttrValue::IntList{1, 2, 2, 1}}, {"padding", "SAME"}};
  AttrMap pool = attrs;
  pool.emplace("ksize", AttrValue::IntList{1, 3, 2, 1});
  cases.push_back({"MaxPoolWithArgmax", {Between({2, 5, 4, 2})}, pool, 1, "", 1});
  AttrMap dilation = attrs;
  dilation.emplace("rates", AttrValue::IntList{1, 1, 2, 1});
  cases.push_back(
      {"Dilation2D", {Between({1, 5, 4, 2}), Between({2, 2, 2}, -1, 1, 2)}, dilation, 2});
  for (const char* op : {"FractionalMaxPool", "FractionalAvgPool"}) {
    cases.push_back({op,
                     {Between({1, 6, 7, 2})},
                     {{"pooling_ratio", AttrValue::FloatList{1, 1.5f, 1.7f, 1}},
                      {"deterministic", true},
                      {"seed", 3}},
                     1,
                     "",
                     1});
  }
}

void AddRecurrent(Cases& cases) {
  const auto f = [](const Shape& shape, uint64_t seed) { return Fill<float>(shape, -1, 1, seed); };
  for (const char* op : {"BlockLSTM", "BlockLSTMV2"}) {
    for (const bool has_peepholes : {false, true}) {
      cases.push_back({op,
                       {Tensor::Scalar<int64_t>(3), f({3, 2, 2}, 1), f({2, 3}, 2), f({2, 3}, 3),
                        f({5, 12}, 4), f({3}, 5), f({3}, 6), f({3}, 7), f({12}, 8)},
                       {{"use_peephole", has_peepholes}},
                       8,
                       has_peepholes ? "peepholes" : "",
                       -1,
                       {},
                       {1, 6}});
    }
  }
}

void AddCtc(Cases& cases) {
  cases.push_back({"CTCLoss",
                   {Between({5, 2, 4}), Make<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0}),
                    Tensor::Vector<int32_t>({0, 2, 1}), Tensor::Vector<int32_t>({5, 4})},
                   {},
                   1,
                   "",
                   1});
}

}  // namespace

std::vector<GradientCase> NetworkGradientCases() {
  Cases cases;
  AddActivations(cases);
  AddLosses(cases);
  AddConvolutions(cases);
  AddWaysToConvolve(cases);
  AddChannelwise(cases);
  AddNormalizations(cases);
  AddVolumes(cases);
  AddOtherPools(cases);
  AddRecurrent(cases);
  AddCtc(cases);
  return cases;
}

}  // namespace weft::ops::testing
