// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/activation.h"

#include <cmath>
#include <map>
#include <utility>

#include "weft/estimator/activity.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras3_activations.h"
#include "weft/estimator/layer_classes.h"

namespace weft::estimator {
namespace {

Endpoint SoftmaxAlong(GraphBuilder& b, Endpoint x, int64_t axis) {
  const int rank = b.ShapeOf(x).rank();
  if (rank < 1) {
    b.Fail(InvalidArgument("softmax needs an input of known rank"));
    return {};
  }
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) {
    b.Fail(InvalidArgument("softmax along axis ", axis, " of an input of rank ", rank));
    return {};
  }
  if (axis == rank - 1) return b.Op("Softmax", {x});
  std::vector<int64_t> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[axis], order[rank - 1]);
  return TransposeTo(b, b.Op("Softmax", {TransposeTo(b, x, order)}), order);
}

Endpoint Gelu(GraphBuilder& b, Endpoint x) {
  const Endpoint half = b.Op("Mul", {x, NumberLike(b, x, 0.5)});
  const Endpoint erf = b.Op("Erf", {b.Op("Mul", {x, NumberLike(b, x, std::sqrt(0.5))})});
  return b.Op("Mul", {half, b.Op("AddV2", {erf, NumberLike(b, x, 1)})});
}

Endpoint HardSigmoid(GraphBuilder& b, Endpoint x) {
  const Endpoint line =
      b.Op("AddV2", {b.Op("Mul", {x, NumberLike(b, x, 1.0 / 6)}), NumberLike(b, x, 0.5)});
  return b.Op("Maximum", {b.Op("Minimum", {line, NumberLike(b, x, 1)}), NumberLike(b, x, 0)});
}

// Those that are one op.
const std::map<std::string, const char*>& OneOp() {
  static const auto* const ops = new std::map<std::string, const char*>{
      {"relu", "Relu"},         {"relu6", "Relu6"},
      {"elu", "Elu"},           {"selu", "Selu"},
      {"sigmoid", "Sigmoid"},   {"tanh", "Tanh"},
      {"softplus", "Softplus"}, {"softsign", "Softsign"},
      {"exponential", "Exp"},   {"log_softmax", "LogSoftmax"}};
  return *ops;
}

class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(ActivationName activation = {}) : activation_(std::move(activation)) {}
  const char* class_name() const override { return "Activation"; }
  void Fields(ConfigFields& f) override { f.Activation("activation", activation_); }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    return {{Activate(call.b(), activation_, in[0].tensor), {}}};
  }

 private:
  ActivationName activation_;
};

class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(ReluOptions options = {}) : o_(std::move(options)) {}
  const char* class_name() const override { return "ReLU"; }
  void Fields(ConfigFields& f) override {
    Json most = o_.max_value < 0 ? Json() : Json(o_.max_value);
    f.Raw("max_value", most);
    if (most.is_number()) o_.max_value = most.AsDouble().value_or(-1);
    f.Field("negative_slope", o_.negative_slope);
    f.Field("threshold", o_.threshold);
  }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    Endpoint up =
        o_.threshold == 0
            ? b.Op("Relu", {x})
            : b.Op("Mul",
                   {x, CastTo(b, b.Op("Greater", {x, NumberLike(b, x, o_.threshold)}), TypeOf(x))});
    if (o_.max_value >= 0) up = b.Op("Minimum", {up, NumberLike(b, x, o_.max_value)});
    if (o_.negative_slope != 0) {
      const Endpoint below = b.Op("Relu", {b.Op("Sub", {NumberLike(b, x, o_.threshold), x})});
      up = b.Op("Sub", {up, b.Op("Mul", {below, NumberLike(b, x, o_.negative_slope)})});
    }
    return {{up, {}}};
  }

 private:
  ReluOptions o_;
};

class ThresholdedReluLayer final : public Layer {
 public:
  explicit ThresholdedReluLayer(double theta = 1) : theta_(theta) {}
  const char* class_name() const override { return "ThresholdedReLU"; }
  void Fields(ConfigFields& f) override { f.Field("theta", theta_); }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const Endpoint above = b.Op("Greater", {x, NumberLike(b, x, theta_)});
    return {{b.Op("Mul", {x, CastTo(b, above, TypeOf(x))}), {}}};
  }

 private:
  double theta_;
};

class IdentityLayer final : public Layer {
 public:
  const char* class_name() const override { return "Identity"; }
  void Fields(ConfigFields&) override {}
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    return {{call.b().Op("Identity", {in[0].tensor}), {}}};
  }
};

class ActivityRegularizationLayer final : public Layer {
 public:
  explicit ActivityRegularizationLayer(std::pair<double, double> factors = {})
      : l1_(factors.first), l2_(factors.second) {}
  const char* class_name() const override { return "ActivityRegularization"; }
  void Fields(ConfigFields& f) override {
    f.Field("l1", l1_);
    f.Field("l2", l2_);
  }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    AddActivityLoss(call, Regularizer::L1L2(l1_, l2_), in[0].tensor, in[0].tensor);
    return {{in[0].tensor, {}}};
  }

 private:
  double l1_, l2_;
};

class LeakyReluLayer final : public Layer {
 public:
  explicit LeakyReluLayer(double slope = 0.3) : slope_(slope) {}
  const char* class_name() const override { return "LeakyReLU"; }
  // Keras 2 calls it alpha; both read that.
  void Fields(ConfigFields& f) override {
    f.Field("negative_slope", slope_);
    f.Field("alpha", slope_);
  }
  Json Config(int keras) override {
    Json config = Layer::Config(keras);
    config.Erase("negative_slope");
    return config;
  }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    return {
        {call.b().Op("LeakyRelu", {in[0].tensor}, {{"alpha", static_cast<float>(slope_)}}), {}}};
  }

 private:
  double slope_;
};

class EluLayer final : public Layer {
 public:
  explicit EluLayer(double alpha = 1) : alpha_(alpha) {}
  const char* class_name() const override { return "ELU"; }
  void Fields(ConfigFields& f) override { f.Field("alpha", alpha_); }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    const Endpoint elu = b.Op("Elu", {x});
    if (alpha_ == 1) return {{elu, {}}};
    const Endpoint above = b.Op("Greater", {x, NumberLike(b, x, 0)});
    return {{b.Op("SelectV2", {above, elu, b.Op("Mul", {elu, NumberLike(b, x, alpha_)})}), {}}};
  }

 private:
  double alpha_;
};

class SoftmaxLayer final : public Layer {
 public:
  explicit SoftmaxLayer(int64_t axis = -1) : axis_(axis) {}
  const char* class_name() const override { return "Softmax"; }
  void Fields(ConfigFields& f) override { f.Field("axis", axis_); }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    return {{SoftmaxAlong(call.b(), in[0].tensor, axis_), {}}};
  }

 private:
  int64_t axis_;
};

class PReluLayer final : public Layer {
 public:
  explicit PReluLayer(PReluOptions options = {}) : o_(std::move(options)) {}
  const char* class_name() const override { return "PReLU"; }
  void Fields(ConfigFields& f) override {
    f.Field("alpha_initializer", o_.alpha_initializer);
    f.Field("alpha_regularizer", o_.alpha_regularizer);
    f.Field("alpha_constraint", o_.alpha_constraint);
    Sizes axes(o_.shared_axes);
    f.Field("shared_axes", axes);
    o_.shared_axes = axes.values();
  }
  bool KeepsMask() const override { return true; }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    if (!call.CheckKnown(x, "PReLU")) return {};
    const PartialShape known = b.ShapeOf(x);
    Shape shape;
    for (int i = 1; i < known.rank(); ++i) shape.AddDim(known.dim(i));
    for (const int64_t axis : o_.shared_axes) {
      if (axis < 1 || axis > shape.rank()) {
        call.Fail(InvalidArgument("shared_axes holds ", axis, ", expected 1 to ", shape.rank()));
        return {};
      }
      shape.SetDim(static_cast<int>(axis - 1), 1);
    }
    const Endpoint alpha = call.WeightOf(
        "alpha", shape, {o_.alpha_initializer, o_.alpha_regularizer, o_.alpha_constraint});
    const Endpoint below = b.Op("Relu", {b.Op("Neg", {x})});
    return {{b.Op("Sub", {b.Op("Relu", {x}), b.Op("Mul", {alpha, below})}), {}}};
  }

 private:
  PReluOptions o_;
};

}  // namespace

Endpoint Activate(GraphBuilder& b, const ActivationName& name, Endpoint x) {
  if (!b.ok() || name.empty() || name == "linear") return x;
  const auto one = OneOp().find(name);
  if (one != OneOp().end()) return b.Op(one->second, {x});
  if (name == "softmax") return SoftmaxAlong(b, x, -1);
  if (name == "gelu") return Gelu(b, x);
  if (name == "swish" || name == "silu") return b.Op("Mul", {x, b.Op("Sigmoid", {x})});
  if (name == "hard_sigmoid") return HardSigmoid(b, x);
  if (name == "mish") return b.Op("Mul", {x, b.Op("Tanh", {b.Op("Softplus", {x})})});
  if (name == "leaky_relu") return b.Op("LeakyRelu", {x}, {{"alpha", 0.2f}});
  if (const Endpoint newer = ActivateAsKeras3(b, name, x)) return newer;
  if (b.ok()) b.Fail(InvalidArgument("There is no activation '", name, "'"));
  return {};
}

LayerRef Activation(const ActivationName& activation, const std::string& name) {
  return MakeLayer<ActivationLayer>(activation, name);
}
LayerRef ReLU(const ReluOptions& options) { return MakeLayer<ReluLayer>(options, options.name); }
LayerRef LeakyReLU(double negative_slope, const std::string& name) {
  return MakeLayer<LeakyReluLayer>(negative_slope, name);
}
LayerRef ELU(double alpha, const std::string& name) { return MakeLayer<EluLayer>(alpha, name); }
LayerRef Softmax(int64_t axis, const std::string& name) {
  return MakeLayer<SoftmaxLayer>(axis, name);
}
LayerRef PReLU(const PReluOptions& options) { return MakeLayer<PReluLayer>(options, options.name); }
LayerRef ThresholdedReLU(double theta, const std::string& name) {
  return MakeLayer<ThresholdedReluLayer>(theta, name);
}
LayerRef Identity(const std::string& name) {
  LayerRef layer(std::make_shared<IdentityLayer>());
  layer->set_name(name);
  return layer;
}
LayerRef ActivityRegularization(double l1, double l2, const std::string& name) {
  return MakeLayer<ActivityRegularizationLayer>(std::pair(l1, l2), name);
}

void AddActivationLayers(LayerClasses& classes) {
  classes.Add<ActivationLayer>();
  classes.Add<ReluLayer>();
  classes.Add<LeakyReluLayer>();
  classes.Add<EluLayer>();
  classes.Add<SoftmaxLayer>();
  classes.Add<PReluLayer>();
  classes.Add<ThresholdedReluLayer>();
  classes.Add<IdentityLayer>();
  classes.Add<ActivityRegularizationLayer>();
}

}  // namespace weft::estimator
