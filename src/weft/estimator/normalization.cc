// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/normalization.h"

#include <algorithm>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

// Fields that the three have in common.
template <typename Options>
void ScaleFields(ConfigFields& f, Options& o) {
  f.Field("epsilon", o.epsilon);
  f.Field("center", o.center);
  f.Field("scale", o.scale);
  f.Field("beta_initializer", o.beta_initializer);
  f.Field("gamma_initializer", o.gamma_initializer);
  f.Field("beta_regularizer", o.beta_regularizer);
  f.Field("gamma_regularizer", o.gamma_regularizer);
  f.Field("beta_constraint", o.beta_constraint);
  f.Field("gamma_constraint", o.gamma_constraint);
}

struct ScaleAndCenter {
  Endpoint gamma, beta;  // empty where there is none
};

template <typename Options>
ScaleAndCenter WeightsFor(LayerCall& call, const Options& o, const Shape& shape) {
  ScaleAndCenter weights;
  if (o.scale) {
    weights.gamma = call.WeightOf("gamma", shape,
                                  {o.gamma_initializer, o.gamma_regularizer, o.gamma_constraint});
  }
  if (o.center) {
    weights.beta =
        call.WeightOf("beta", shape, {o.beta_initializer, o.beta_regularizer, o.beta_constraint});
  }
  return weights;
}

struct Moments {
  Endpoint mean, variance;
};

Moments MomentsOf(GraphBuilder& b, Endpoint x, const Axes& axes) {
  const Endpoint mean = Reduce(b, "Mean", x, axes, true);
  const Endpoint off = b.Op("SquaredDifference", {x, mean});
  return {mean, Reduce(b, "Mean", off, axes, true)};
}

// (x - mean) / sqrt(variance + epsilon) * gamma + beta; all of them broadcast.
Endpoint Normalize(GraphBuilder& b, Endpoint x, const Moments& m, double epsilon,
                   const ScaleAndCenter& weights) {
  Endpoint factor =
      b.Op("Rsqrt", {b.Op("AddV2", {m.variance, NumberLike(b, m.variance, epsilon)})});
  if (weights.gamma) factor = b.Op("Mul", {factor, weights.gamma});
  Endpoint y = b.Op("Mul", {b.Op("Sub", {x, m.mean}), factor});
  return weights.beta ? b.Op("AddV2", {y, weights.beta}) : y;
}

// `axis` counted from the front; fails and gives -1 if there is no such one.
int FrontAxis(LayerCall& call, int64_t axis, int rank) {
  const int64_t front = axis < 0 ? axis + rank : axis;
  if (front >= 1 && front < rank) return static_cast<int>(front);
  call.Fail(InvalidArgument("axis ", axis, " of an input of rank ", rank));
  return -1;
}

class BatchNormalizationLayer final : public Layer {
 public:
  explicit BatchNormalizationLayer(BatchNormalizationOptions options = {})
      : o_(std::move(options)) {}
  const char* class_name() const override { return "BatchNormalization"; }
  bool KeepsMask() const override { return true; }
  void Fields(ConfigFields& f) override {
    Sizes axis = o_.axis;  // Keras 2 writes a list
    f.Field("axis", axis);
    if (axis.values().size() == 1) o_.axis = axis.values()[0];
    f.Field("momentum", o_.momentum);
    ScaleFields(f, o_);
    f.Field("moving_mean_initializer", o_.moving_mean_initializer);
    f.Field("moving_variance_initializer", o_.moving_variance_initializer);
  }
  Json Config(int keras) override {
    Json config = Layer::Config(keras);
    config.Set("axis", o_.axis);
    return config;
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const PartialShape shape = b.ShapeOf(x);
    if (shape.rank() < 2) {
      call.Fail(InvalidArgument("expected an input of rank 2 or more, got ", shape.ToString()));
      return {};
    }
    const int axis = FrontAxis(call, o_.axis, shape.rank());
    if (axis < 0) return {};
    if (shape.dim(axis) < 0) {
      call.Fail(
          InvalidArgument("size ", axis, " of the input must be known, got ", shape.ToString()));
      return {};
    }
    const Shape channels{shape.dim(axis)};
    const ScaleAndCenter weights = WeightsFor(call, o_, channels);
    const train::Variable* mean = call.VariableOf(
        "moving_mean", channels, {.initializer = o_.moving_mean_initializer, .trainable = false});
    if (mean == nullptr) return {};
    const train::Variable moving_mean = *mean;
    const train::Variable* variance =
        call.VariableOf("moving_variance", channels,
                        {.initializer = o_.moving_variance_initializer, .trainable = false});
    if (variance == nullptr) return {};
    const train::Variable moving_variance = *variance;
    const bool by_batch = call.training() && call.trainable();
    if (shape.rank() == 4 && axis == 3) {
      return {{Fused(call, x, weights, moving_mean, moving_variance, by_batch), {}}};
    }
    return {{Plain(call, x, axis, weights, moving_mean, moving_variance, by_batch), {}}};
  }

 private:
  // The one op that images have.
  Endpoint Fused(LayerCall& call, Endpoint x, const ScaleAndCenter& weights,
                 const train::Variable& mean, const train::Variable& variance, bool by_batch) {
    GraphBuilder& b = call.b();
    const auto filled = [&](double value) {
      return b.Op("Fill", {ShapeVector(b, mean.shape), Number(b, DType::kFloat, value)});
    };
    const Endpoint gamma = weights.gamma ? weights.gamma : filled(1);
    const Endpoint beta = weights.beta ? weights.beta : filled(0);
    const Endpoint nothing = b.Constant(Tensor::FromSpan<float>(Shape{0}, {}));
    Node* fused = b.AddNode(
        "FusedBatchNormV3",
        {x, gamma, beta, by_batch ? nothing : mean.value, by_batch ? nothing : variance.value},
        {{"epsilon", static_cast<float>(o_.epsilon)}, {"is_training", by_batch}});
    if (by_batch && fused != nullptr) {
      // The op's variance is scaled by n / (n - 1).
      Endpoint count = b.Op("Mul", {SizeOf(b, x, 0), SizeOf(b, x, 1)});
      count = CastTo(b, b.Op("Mul", {count, SizeOf(b, x, 2)}), DType::kFloat);
      const Endpoint one = Number(b, DType::kFloat, 1);
      const Endpoint share =
          b.Op("RealDiv", {b.Op("Maximum", {b.Op("Sub", {count, one}), one}), count});
      Move(call, mean, {fused, 1});
      Move(call, variance, b.Op("Mul", {Endpoint{fused, 2}, share}));
    }
    return {fused, 0};
  }

  Endpoint Plain(LayerCall& call, Endpoint x, int axis, ScaleAndCenter weights,
                 const train::Variable& mean, const train::Variable& variance, bool by_batch) {
    GraphBuilder& b = call.b();
    const int rank = b.ShapeOf(x).rank();
    Axes others;
    std::vector<int64_t> wide(rank, 1);
    for (int i = 0; i < rank; ++i) {
      if (i != axis) others.push_back(i);
    }
    wide[axis] = mean.shape.dim(0);
    const auto widen = [&](Endpoint e) {
      return axis == rank - 1 || !e ? e : ReshapeTo(b, e, wide);
    };
    weights = {widen(weights.gamma), widen(weights.beta)};
    if (!by_batch) {
      return Normalize(b, x, {widen(mean.value), widen(variance.value)}, o_.epsilon, weights);
    }
    const Moments moments = MomentsOf(b, x, others);
    Move(call, mean, ReshapeTo(b, moments.mean, {-1}));
    Move(call, variance, ReshapeTo(b, moments.variance, {-1}));
    return Normalize(b, x, moments, o_.epsilon, weights);
  }

  // average = average * momentum + value * (1 - momentum).
  void Move(LayerCall& call, const train::Variable& average, Endpoint value) {
    GraphBuilder& b = call.b();
    const Endpoint step = b.Op(
        "Mul", {b.Op("Sub", {average.value, value}), Number(b, average.dtype, 1 - o_.momentum)});
    call.AddUpdate(
        b.AddNode("AssignSubVariableOp", {average.handle, step}, {{"dtype", average.dtype}}));
  }

  BatchNormalizationOptions o_;
};

class LayerNormalizationLayer final : public Layer {
 public:
  explicit LayerNormalizationLayer(LayerNormalizationOptions options = {})
      : o_(std::move(options)) {}
  const char* class_name() const override { return "LayerNormalization"; }
  bool KeepsMask() const override { return true; }
  void Fields(ConfigFields& f) override {
    Sizes axis(o_.axis);
    f.Field("axis", axis);
    o_.axis = axis.values();
    ScaleFields(f, o_);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const PartialShape shape = b.ShapeOf(x);
    Axes axes;
    std::vector<int64_t> wide(std::max(shape.rank(), 0), 1);
    for (const int64_t asked : o_.axis) {
      const int axis = FrontAxis(call, asked, shape.rank());
      if (axis < 0) return {};
      axes.push_back(axis);
    }
    std::sort(axes.begin(), axes.end());
    Shape sizes;
    for (const int64_t axis : axes) {
      if (shape.dim(static_cast<int>(axis)) < 0) {
        call.Fail(
            InvalidArgument("size ", axis, " of the input must be known, got ", shape.ToString()));
        return {};
      }
      sizes.AddDim(shape.dim(static_cast<int>(axis)));
      wide[axis] = shape.dim(static_cast<int>(axis));
    }
    ScaleAndCenter weights = WeightsFor(call, o_, sizes);
    if (axes.size() != 1 || axes[0] != shape.rank() - 1) {
      if (weights.gamma) weights.gamma = ReshapeTo(b, weights.gamma, wide);
      if (weights.beta) weights.beta = ReshapeTo(b, weights.beta, wide);
    }
    return {{Normalize(b, x, MomentsOf(b, x, axes), o_.epsilon, weights), {}}};
  }

 private:
  LayerNormalizationOptions o_;
};

class GroupNormalizationLayer final : public Layer {
 public:
  explicit GroupNormalizationLayer(GroupNormalizationOptions options = {})
      : o_(std::move(options)) {}
  const char* class_name() const override { return "GroupNormalization"; }
  void Fields(ConfigFields& f) override {
    f.Field("groups", o_.groups);
    f.Fixed("axis", -1);
    ScaleFields(f, o_);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    if (!call.CheckKnown(x, "GroupNormalization")) return {};
    const PartialShape shape = b.ShapeOf(x);
    const int rank = shape.rank();
    if (rank < 2) {
      call.Fail(InvalidArgument("expected an input of rank 2 or more, got ", shape.ToString()));
      return {};
    }
    const int64_t channels = shape.dim(rank - 1);
    const int64_t groups = o_.groups == -1 ? channels : o_.groups;
    if (groups < 1 || channels % groups != 0) {
      call.Fail(InvalidArgument("groups ", groups, " must divide channels ", channels));
      return {};
    }
    // [batch, sizes..., groups, channels of one]: all but the batch and the groups are averaged.
    std::vector<int64_t> split = {-1}, whole = {-1}, wide(rank + 1, 1);
    Axes axes;
    for (int i = 1; i + 1 < rank; ++i) {
      split.push_back(shape.dim(i));
      whole.push_back(shape.dim(i));
      axes.push_back(i);
    }
    split.push_back(groups);
    split.push_back(channels / groups);
    whole.push_back(channels);
    axes.push_back(rank);
    wide[rank - 1] = groups;
    wide[rank] = channels / groups;
    ScaleAndCenter weights = WeightsFor(call, o_, Shape{channels});
    if (weights.gamma) weights.gamma = ReshapeTo(b, weights.gamma, wide);
    if (weights.beta) weights.beta = ReshapeTo(b, weights.beta, wide);
    const Endpoint parts = ReshapeTo(b, x, split);
    const Endpoint y = Normalize(b, parts, MomentsOf(b, parts, axes), o_.epsilon, weights);
    return {{ReshapeTo(b, y, whole), {}}};
  }

 private:
  GroupNormalizationOptions o_;
};

class UnitNormalizationLayer final : public Layer {
 public:
  explicit UnitNormalizationLayer(Axes axes = {-1}) : axes_(std::move(axes)) {}
  const char* class_name() const override { return "UnitNormalization"; }
  bool KeepsMask() const override { return true; }
  void Fields(ConfigFields& f) override {
    Sizes axis(axes_);
    f.Field("axis", axis);
    axes_ = axis.values();
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const Endpoint squares = Reduce(b, "Sum", b.Op("Square", {x}), axes_, true);
    const Endpoint least = b.Op("Maximum", {squares, NumberLike(b, x, 1e-12)});
    return {{b.Op("Mul", {x, b.Op("Rsqrt", {least})}), {}}};
  }

 private:
  Axes axes_;
};

class RmsNormalizationLayer final : public Layer {
 public:
  explicit RmsNormalizationLayer(RmsNormalizationOptions options = {}) : o_(std::move(options)) {}
  const char* class_name() const override { return "RMSNormalization"; }
  bool KeepsMask() const override { return true; }
  void Fields(ConfigFields& f) override {
    Sizes axis(o_.axis);
    f.Field("axis", axis);
    o_.axis = axis.values();
    f.Field("epsilon", o_.epsilon);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const PartialShape shape = b.ShapeOf(x);
    std::vector<int64_t> axes, wide(std::max(shape.rank(), 1), 1);
    for (const int64_t axis : o_.axis) {
      axes.push_back(FrontAxis(call, axis, shape.rank()));
      if (axes.back() < 0) return {};
    }
    std::sort(axes.begin(), axes.end());
    Shape sizes;
    for (const int64_t axis : axes) {
      const int64_t size = shape.dim(static_cast<int>(axis));
      if (size < 0) {
        call.Fail(
            InvalidArgument("size ", axis, " of the input must be known, got ", shape.ToString()));
        return {};
      }
      sizes.AddDim(size);
      wide[axis] = size;
    }
    const Endpoint scale = call.WeightOf("scale", sizes, {.initializer = "ones"});
    const Endpoint mean = Reduce(b, "Mean", b.Op("Square", {x}), axes, true);
    const Endpoint factor = b.Op("Rsqrt", {b.Op("AddV2", {mean, NumberLike(b, x, o_.epsilon)})});
    const Endpoint y = b.Op("Mul", {x, factor});
    return {{b.Op("Mul", {y, ReshapeTo(b, scale, wide)}), {}}};
  }

 private:
  RmsNormalizationOptions o_;
};

}  // namespace

LayerRef BatchNormalization(const BatchNormalizationOptions& options) {
  return MakeLayer<BatchNormalizationLayer>(options, options.name);
}
LayerRef LayerNormalization(const LayerNormalizationOptions& options) {
  return MakeLayer<LayerNormalizationLayer>(options, options.name);
}
LayerRef GroupNormalization(const GroupNormalizationOptions& options) {
  return MakeLayer<GroupNormalizationLayer>(options, options.name);
}
LayerRef UnitNormalization(const Axes& axis, const std::string& name) {
  return MakeLayer<UnitNormalizationLayer>(axis, name);
}
LayerRef RMSNormalization(const RmsNormalizationOptions& options) {
  return MakeLayer<RmsNormalizationLayer>(options, options.name);
}

void AddNormalizationLayers(LayerClasses& classes) {
  classes.Add<BatchNormalizationLayer>();
  classes.Add<LayerNormalizationLayer>();
  classes.Add<GroupNormalizationLayer>();
  classes.Add<UnitNormalizationLayer>();
  classes.Add<RmsNormalizationLayer>();
}

}  // namespace weft::estimator
