// SPDX-License-Identifier: Apache-2.0
#include "weft/train/variable.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"

namespace weft::train {
namespace {

Endpoint ShapeConstant(GraphBuilder& builder, const Shape& shape) {
  std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
  return builder.Constant(Tensor::FromSpan<int32_t>(Shape{shape.rank()}, dims), "shape");
}

Endpoint ScalarOf(GraphBuilder& builder, DType dtype, double value) {
  Endpoint scalar = builder.Scalar<double>(value);
  return dtype == DType::kDouble ? scalar : builder.Op("Cast", {scalar}, {{"DstT", dtype}});
}

Endpoint Filled(GraphBuilder& builder, DType dtype, const Shape& shape, double value) {
  return builder.Op("Fill", {ShapeConstant(builder, shape), ScalarOf(builder, dtype, value)});
}

// random * scale + shift
Initializer Random(const char* op, double scale, double shift, int64_t seed, int64_t seed2) {
  return [=](GraphBuilder& builder, DType dtype, const Shape& shape) {
    Endpoint random = builder.Op(op, {ShapeConstant(builder, shape)},
                                 {{"dtype", dtype}, {"seed", seed}, {"seed2", seed2}});
    Endpoint scaled = builder.Op("Mul", {random, ScalarOf(builder, dtype, scale)});
    return builder.Op("AddV2", {scaled, ScalarOf(builder, dtype, shift)});
  };
}

class TaskChooser final : public VariablePlacement {
 public:
  TaskChooser(int num_tasks, std::string job, bool greedy)
      : loads_(std::max(1, num_tasks), 0), job_(std::move(job)), greedy_(greedy) {}

  std::string Place(int64_t size_bytes) override {
    const auto lightest = std::min_element(loads_.begin(), loads_.end());
    const size_t task = greedy_ ? static_cast<size_t>(lightest - loads_.begin()) : next_;
    next_ = (next_ + 1) % loads_.size();
    loads_[task] += std::max<int64_t>(size_bytes, 1);
    return absl::StrCat("/job:", job_, "/task:", task);
  }

 private:
  std::vector<int64_t> loads_;
  const std::string job_;
  const bool greedy_;
  size_t next_ = 0;
};

}  // namespace

std::string Variable::SliceText() const {
  if (!IsPart()) return "";
  std::string text = absl::StrJoin(whole_shape.dims(), " ");
  absl::StrAppend(&text, " ", first_row, ",", shape.dim(0));
  for (int i = 1; i < shape.rank(); ++i) absl::StrAppend(&text, ":0,", shape.dim(i));
  return text;
}

Initializer Zeros() { return Constant(0); }
Initializer Ones() { return Constant(1); }
Initializer Constant(double value) {
  return [value](GraphBuilder& builder, DType dtype, const Shape& shape) {
    return Filled(builder, dtype, shape, value);
  };
}
Initializer RandomUniform(float low, float high, int64_t seed, int64_t seed2) {
  return Random("RandomUniform", high - low, low, seed, seed2);
}
Initializer RandomNormal(float mean, float stddev, int64_t seed, int64_t seed2) {
  return Random("RandomStandardNormal", stddev, mean, seed, seed2);
}
Initializer TruncatedNormal(float mean, float stddev, int64_t seed, int64_t seed2) {
  return Random("TruncatedNormal", stddev, mean, seed, seed2);
}
Initializer GlorotUniform(int64_t seed, int64_t seed2) {
  return [=](GraphBuilder& builder, DType dtype, const Shape& shape) {
    double field = 1;
    for (int i = 0; i + 2 < shape.rank(); ++i) field *= static_cast<double>(shape.dim(i));
    const double fan_out = shape.rank() > 0 ? field * static_cast<double>(shape.dim(shape.rank() - 1)) : 1;
    const double fan_in = shape.rank() > 1 ? field * static_cast<double>(shape.dim(shape.rank() - 2)) : fan_out;
    const auto limit = static_cast<float>(std::sqrt(6.0 / std::max(1.0, fan_in + fan_out)));
    return RandomUniform(-limit, limit, seed, seed2)(builder, dtype, shape);
  };
}

std::unique_ptr<VariablePlacement> RoundRobinPlacement(int num_tasks, const std::string& job) {
  return std::make_unique<TaskChooser>(num_tasks, job, false);
}
std::unique_ptr<VariablePlacement> GreedyPlacement(int num_tasks, const std::string& job) {
  return std::make_unique<TaskChooser>(num_tasks, job, true);
}

}  // namespace weft::train
