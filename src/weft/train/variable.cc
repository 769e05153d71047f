// SPDX-License-Identifier: Apache-2.0
#include "weft/train/variable.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

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

// The number in a scope ".../part_3/...", else 0.
int64_t PartNumber(absl::string_view scope) {
  int64_t number = 0;
  for (const absl::string_view name : absl::StrSplit(scope, '/')) {
    int64_t found = 0;
    absl::string_view digits = name;
    if (absl::ConsumePrefix(&digits, "part_") && absl::SimpleAtoi(digits, &found)) number = found;
  }
  return number;
}

// random * scale + shift
Initializer Random(const char* op, double scale, double shift, int64_t seed, int64_t seed2) {
  return [=](GraphBuilder& builder, DType dtype, const Shape& shape) {
    const bool seeded = seed != 0 || seed2 != 0;
    const int64_t own_seed = seed2 + (seeded ? PartNumber(builder.name_prefix()) : 0);
    Endpoint random = builder.Op(op, {ShapeConstant(builder, shape)},
                                 {{"dtype", dtype}, {"seed", seed}, {"seed2", own_seed}});
    Endpoint scaled = builder.Op("Mul", {random, ScalarOf(builder, dtype, scale)});
    return builder.Op("AddV2", {scaled, ScalarOf(builder, dtype, shift)});
  };
}

class TaskChooser final : public VariablePlacement {
 public:
  using Load = std::function<int64_t(int64_t size_bytes)>;
  TaskChooser(int num_tasks, std::string job, bool greedy, Load load)
      : loads_(std::max(1, num_tasks), 0),
        job_(std::move(job)),
        greedy_(greedy),
        load_(std::move(load)) {}

  std::string Place(int64_t size_bytes) override {
    const auto lightest = std::min_element(loads_.begin(), loads_.end());
    const size_t task = greedy_ ? static_cast<size_t>(lightest - loads_.begin()) : next_;
    next_ = (next_ + 1) % loads_.size();
    // Even what weighs nothing takes its turn.
    loads_[task] += std::max<int64_t>(load_ ? load_(size_bytes) : size_bytes, 1);
    return absl::StrCat("/job:", job_, "/task:", task);
  }

 private:
  std::vector<int64_t> loads_;
  const std::string job_;
  const bool greedy_;
  const Load load_;
  size_t next_ = 0;
};

}  // namespace

std::string Variable::SliceText() const {
  if (!IsPart()) return "";
  std::vector<std::string> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    extents.push_back(absl::StrCat(axis == part_axis ? part_begin : 0, ",", shape.dim(axis)));
  }
  return absl::StrCat(absl::StrJoin(whole_shape.dims(), " "), " ", absl::StrJoin(extents, ":"));
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
    const double fan_out =
        shape.rank() > 0 ? field * static_cast<double>(shape.dim(shape.rank() - 1)) : 1;
    const double fan_in =
        shape.rank() > 1 ? field * static_cast<double>(shape.dim(shape.rank() - 2)) : fan_out;
    const auto limit = static_cast<float>(std::sqrt(6.0 / std::max(1.0, fan_in + fan_out)));
    return RandomUniform(-limit, limit, seed, seed2)(builder, dtype, shape);
  };
}

std::unique_ptr<VariablePlacement> RoundRobinPlacement(int num_tasks, const std::string& job) {
  return std::make_unique<TaskChooser>(num_tasks, job, false, nullptr);
}
std::unique_ptr<VariablePlacement> GreedyPlacement(int num_tasks, const std::string& job,
                                                   std::function<int64_t(int64_t)> load) {
  return std::make_unique<TaskChooser>(num_tasks, job, true, std::move(load));
}

Endpoint JoinParts(GraphBuilder& builder, const std::vector<Variable>& parts) {
  if (parts.empty()) {
    builder.Fail(InvalidArgument("There are no parts to join"));
    return {};
  }
  if (parts.size() == 1) return parts[0].value;
  std::vector<Endpoint> values;
  for (const Variable& part : parts) values.push_back(part.value);
  return builder.Op("ConcatV2", {values, builder.Scalar<int32_t>(parts[0].part_axis)});
}

}  // namespace weft::train
