// SPDX-License-Identifier: Apache-2.0
// Trainable state of a program, and where it lives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/graph/builder.h"
#include "weft/tensor/shape.h"

namespace weft::train {

// One resource variable of a graph. Copies name the same variable.
struct Variable {
  std::string name;
  DType dtype = DType::kFloat;
  Shape shape;
  bool trainable = true;
  bool local = false;  // not saved, one for each worker
  std::string device;  // as requested; empty: wherever the default is
  Endpoint handle;
  Endpoint value;  // a read made for the whole graph
  Endpoint is_initialized;
  Endpoint initial_value;  // what the initializer assigns
  Node* initializer = nullptr;
  // A part of a partitioned variable: the whole's name and shape, and where along which axis it
  // begins.
  std::string whole_name;
  Shape whole_shape;
  int part_axis = 0;
  int64_t part_begin = 0;

  bool IsPart() const { return !whole_name.empty(); }
  // How the Saver writes it: "" for a whole variable, "10 4 0,5:0,4" for a part.
  std::string SliceText() const;
};

// Adds nodes that compute a variable's first value.
using Initializer = std::function<Endpoint(GraphBuilder&, DType, const Shape&)>;
Initializer Zeros();
Initializer Ones();
Initializer Constant(double value);
// Seeds as TensorFlow's ops take them; both zero gives another value at each start. Parts of one
// variable
// ("w/part_0", "w/part_1") draw different numbers from the same seeds.
Initializer RandomUniform(float low, float high, int64_t seed = 0, int64_t seed2 = 0);
Initializer RandomNormal(float mean, float stddev, int64_t seed = 0, int64_t seed2 = 0);
Initializer TruncatedNormal(float mean, float stddev, int64_t seed = 0, int64_t seed2 = 0);
// Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010); fans of the last two sizes
// times the receptive field.
Initializer GlorotUniform(int64_t seed = 0, int64_t seed2 = 0);

// Chooses the parameter server of each new variable.
class VariablePlacement {
 public:
  virtual ~VariablePlacement() = default;
  // The device for a variable of `size_bytes`; empty leaves it to the session.
  virtual std::string Place(int64_t size_bytes) = 0;
};
// /job:<job>/task:0, 1, ... in turn.
std::unique_ptr<VariablePlacement> RoundRobinPlacement(int num_tasks,
                                                       const std::string& job = "ps");
// The task with the least load so far, first of equals. The load of a variable is its bytes, or
// what `load` makes of them.
std::unique_ptr<VariablePlacement> GreedyPlacement(
    int num_tasks, const std::string& job = "ps",
    std::function<int64_t(int64_t size_bytes)> load = nullptr);
// The value of a partitioned variable: its parts, joined along their axis.
Endpoint JoinParts(GraphBuilder& builder, const std::vector<Variable>& parts);

}  // namespace weft::train
