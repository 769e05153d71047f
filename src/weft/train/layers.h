// SPDX-License-Identifier: Apache-2.0
// Layers of neural networks: variables and ops in one call. Errors stick to the program's builder.
#pragma once

#include <functional>
#include <string>

#include "weft/train/program.h"

namespace weft::train {

// What a layer's outputs go through: train::Relu, a lambda, or none.
using Activation = std::function<Endpoint(GraphBuilder&, Endpoint)>;
Endpoint Relu(GraphBuilder& builder, Endpoint x);
Endpoint Sigmoid(GraphBuilder& builder, Endpoint x);
Endpoint Tanh(GraphBuilder& builder, Endpoint x);

// activation(x * <name>/kernel + <name>/bias) for x [batch, inputs]; gives [batch, units]. `inputs`
// must be known when the graph is built. Seeds make the first values the same each time.
struct DenseOptions {
  Activation activation = nullptr;
  bool use_bias = true;
  int64_t seed = 0;
};
Endpoint Dense(Program& program, const std::string& name, Endpoint x, int64_t units,
               const DenseOptions& options = {});

// The same with a convolution of images [batch, height, width, channels] by size x size windows.
struct Conv2DOptions {
  int64_t stride = 1;
  std::string padding = "SAME";
  Activation activation = nullptr;
  bool use_bias = true;
  int64_t seed = 0;
};
Endpoint Conv2D(Program& program, const std::string& name, Endpoint images, int64_t filters,
                int64_t size, const Conv2DOptions& options = {});

// The largest, or the mean, of each size x size window of images, with steps of `size`.
Endpoint MaxPool(GraphBuilder& builder, Endpoint images, int64_t size);
Endpoint AveragePool(GraphBuilder& builder, Endpoint images, int64_t size);

// [batch, ...] as [batch, the product of the rest], which must be known when the graph is built.
Endpoint Flatten(GraphBuilder& builder, Endpoint x);

// Each element 0 with probability `rate`, the others scaled by 1 / (1 - rate), where `training` (a
// bool scalar, perhaps fed) is true; x itself where it is false. 0 <= rate < 1.
Endpoint Dropout(GraphBuilder& builder, Endpoint x, double rate, Endpoint training,
                 int64_t seed = 0);

}  // namespace weft::train
