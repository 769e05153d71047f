// SPDX-License-Identifier: Apache-2.0
// The optimizers, each an apply op with its slots.
#include <memory>

#include "weft/train/optimizer.h"

namespace weft::train {
namespace {

class GradientDescentOptimizer final : public Optimizer {
 public:
  explicit GradientDescentOptimizer(LearningRate rate)
      : Optimizer("GradientDescent"), rate_(rate) {}

 private:
  Node* ApplyDense(Program& p, const Variable& v, Endpoint gradient) override {
    return p.builder().AddNode("ResourceApplyGradientDescent",
                               {v.handle, rate_.Value(p, v.dtype), gradient});
  }
  Node* ApplySparse(Program& p, const Variable& v, Endpoint values, Endpoint indices) override {
    const Endpoint step = p.builder().Op("Mul", {values, rate_.Value(p, v.dtype, -1)});
    return p.builder().AddNode("ResourceScatterAdd", {v.handle, indices, step},
                               {{"dtype", v.dtype}});
  }
  const LearningRate rate_;
};

class MomentumOptimizer final : public Optimizer {
 public:
  MomentumOptimizer(LearningRate rate, double momentum, bool nesterov)
      : Optimizer("Momentum"), rate_(rate), momentum_(momentum), nesterov_(nesterov) {}

 private:
  Node* ApplyDense(Program& p, const Variable& v, Endpoint gradient) override {
    const Variable slot = Slot(p, v, name(), Zeros());
    return p.builder().AddNode(
        "ResourceApplyMomentum",
        {v.handle, slot.handle, rate_.Value(p, v.dtype), gradient, Scalar(p, v.dtype, momentum_)},
        {{"use_nesterov", nesterov_}});
  }
  Node* ApplySparse(Program& p, const Variable& v, Endpoint values, Endpoint indices) override {
    const Variable slot = Slot(p, v, name(), Zeros());
    return p.builder().AddNode("ResourceSparseApplyMomentum",
                               {v.handle, slot.handle, rate_.Value(p, v.dtype), values, indices,
                                Scalar(p, v.dtype, momentum_)},
                               {{"use_nesterov", nesterov_}});
  }
  const LearningRate rate_;
  const double momentum_;
  const bool nesterov_;
};

class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(LearningRate rate, double beta1, double beta2, double epsilon)
      : Optimizer("Adam"), rate_(rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}

 private:
  void Prepare(Program& p, const std::vector<GradientAndVariable>& gradients) override {
    if (gradients.empty() || power1_.handle) return;
    // Beside the first variable by name, as the powers are read with every update.
    const Variable* first = &gradients[0].variable;
    for (const auto& [gradient, variable] : gradients) {
      if (variable.name < first->name) first = &variable;
    }
    const VariableOptions options{.trainable = false, .device = first->device};
    power1_ = p.AddVariable("beta1_power", first->dtype, Shape(), Constant(beta1_), options);
    power2_ = p.AddVariable("beta2_power", first->dtype, Shape(), Constant(beta2_), options);
  }

  Endpoint As(Program& p, const Variable& power, DType dtype) {
    return power.dtype == dtype ? power.value
                                : p.builder().Op("Cast", {power.value}, {{"DstT", dtype}});
  }

  Node* ApplyDense(Program& p, const Variable& v, Endpoint gradient) override {
    const Variable m = Slot(p, v, name(), Zeros());
    const Variable n = Slot(p, v, name() + "_1", Zeros());
    return p.builder().AddNode(
        "ResourceApplyAdam",
        {v.handle, m.handle, n.handle, As(p, power1_, v.dtype), As(p, power2_, v.dtype),
         rate_.Value(p, v.dtype), Scalar(p, v.dtype, beta1_), Scalar(p, v.dtype, beta2_),
         Scalar(p, v.dtype, epsilon_), gradient});
  }

  // There is no sparse op: decay all of both moments, add the rows, then step all of the variable.
  Node* ApplySparse(Program& p, const Variable& v, Endpoint values, Endpoint indices) override {
    GraphBuilder& b = p.builder();
    const Variable m = Slot(p, v, name(), Zeros());
    const Variable n = Slot(p, v, name() + "_1", Zeros());
    const auto number = [&](double value) { return Scalar(p, v.dtype, value); };
    const Endpoint one = number(1);
    const Endpoint rate =
        b.Op("RealDiv", {b.Op("Mul", {rate_.Value(p, v.dtype),
                                      b.Op("Sqrt", {b.Op("Sub", {one, As(p, power2_, v.dtype)})})}),
                         b.Op("Sub", {one, As(p, power1_, v.dtype)})});
    const Endpoint m_now =
        Moment(b, m, number(beta1_), b.Op("Mul", {values, number(1 - beta1_)}), indices);
    const Endpoint squares = b.Op("Mul", {values, values});
    const Endpoint n_now =
        Moment(b, n, number(beta2_), b.Op("Mul", {squares, number(1 - beta2_)}), indices);
    const Endpoint step = b.Op(
        "RealDiv",
        {b.Op("Mul", {rate, m_now}), b.Op("AddV2", {b.Op("Sqrt", {n_now}), number(epsilon_)})});
    return b.AddNode("AssignSubVariableOp", {v.handle, step}, {{"dtype", v.dtype}});
  }

  // slot = slot * decay, then rows added; gives the value after both.
  static Endpoint Moment(GraphBuilder& b, const Variable& slot, Endpoint decay, Endpoint rows,
                         Endpoint indices) {
    const std::vector<Node*> outer = b.control_inputs();
    Node* decayed = b.AddNode("AssignVariableOp", {slot.handle, b.Op("Mul", {slot.value, decay})},
                              {{"dtype", slot.dtype}});
    b.set_control_inputs({decayed});
    Node* added =
        b.AddNode("ResourceScatterAdd", {slot.handle, indices, rows}, {{"dtype", slot.dtype}});
    b.set_control_inputs({added});
    const Endpoint value = b.Op("ReadVariableOp", {slot.handle}, {{"dtype", slot.dtype}});
    b.set_control_inputs(outer);
    return value;
  }

  std::vector<Node*> Finish(Program& p, const std::vector<Node*>& applied) override {
    GraphBuilder& b = p.builder();
    const std::vector<Node*> outer = b.control_inputs();
    const std::string outer_device = b.device();
    b.set_device(power1_.device);
    b.set_control_inputs(applied);
    std::vector<Node*> nodes;
    for (const auto& [power, beta] : {std::pair(power1_, beta1_), std::pair(power2_, beta2_)}) {
      const Endpoint next = b.Op("Mul", {power.value, Scalar(p, power.dtype, beta)});
      nodes.push_back(
          b.AddNode("AssignVariableOp", {power.handle, next}, {{"dtype", power.dtype}}));
    }
    b.set_device(outer_device);
    b.set_control_inputs(outer);
    return nodes;
  }

  const LearningRate rate_;
  const double beta1_, beta2_, epsilon_;
  Variable power1_, power2_;
};

class AdagradOptimizer final : public Optimizer {
 public:
  AdagradOptimizer(LearningRate rate, double initial)
      : Optimizer("Adagrad"), rate_(rate), initial_(initial) {}

 private:
  Node* ApplyDense(Program& p, const Variable& v, Endpoint gradient) override {
    const Variable slot = Slot(p, v, name(), Constant(initial_));
    return p.builder().AddNode("ResourceApplyAdagrad",
                               {v.handle, slot.handle, rate_.Value(p, v.dtype), gradient});
  }
  Node* ApplySparse(Program& p, const Variable& v, Endpoint values, Endpoint indices) override {
    const Variable slot = Slot(p, v, name(), Constant(initial_));
    return p.builder().AddNode("ResourceSparseApplyAdagrad",
                               {v.handle, slot.handle, rate_.Value(p, v.dtype), values, indices});
  }
  const LearningRate rate_;
  const double initial_;
};

class RmsPropOptimizer final : public Optimizer {
 public:
  RmsPropOptimizer(LearningRate rate, double decay, double momentum, double epsilon)
      : Optimizer("RMSProp"), rate_(rate), decay_(decay), momentum_(momentum), epsilon_(epsilon) {}

 private:
  std::vector<Argument> Arguments(Program& p, const Variable& v, Endpoint gradient) {
    const Variable square = Slot(p, v, name(), Ones());
    const Variable momentum = Slot(p, v, name() + "_1", Zeros());
    return {v.handle,
            square.handle,
            momentum.handle,
            rate_.Value(p, v.dtype),
            Scalar(p, v.dtype, decay_),
            Scalar(p, v.dtype, momentum_),
            Scalar(p, v.dtype, epsilon_),
            gradient};
  }
  Node* ApplyDense(Program& p, const Variable& v, Endpoint gradient) override {
    return p.builder().AddNode("ResourceApplyRMSProp", Arguments(p, v, gradient));
  }
  Node* ApplySparse(Program& p, const Variable& v, Endpoint values, Endpoint indices) override {
    std::vector<Argument> arguments = Arguments(p, v, values);
    arguments.push_back(indices);
    return p.builder().AddNode("ResourceSparseApplyRMSProp", arguments);
  }
  const LearningRate rate_;
  const double decay_, momentum_, epsilon_;
};

class FtrlOptimizer final : public Optimizer {
 public:
  FtrlOptimizer(LearningRate rate, double power, double initial, double l1, double l2)
      : Optimizer("Ftrl"), rate_(rate), power_(power), initial_(initial), l1_(l1), l2_(l2) {}

 private:
  std::vector<Argument> Slots(Program& p, const Variable& v) {
    return {v.handle, Slot(p, v, name(), Constant(initial_)).handle,
            Slot(p, v, name() + "_1", Zeros()).handle};
  }
  void AddRates(Program& p, const Variable& v, std::vector<Argument>* arguments) const {
    arguments->push_back(rate_.Value(p, v.dtype));
    for (double value : {l1_, l2_, power_}) arguments->push_back(Scalar(p, v.dtype, value));
  }
  Node* ApplyDense(Program& p, const Variable& v, Endpoint gradient) override {
    std::vector<Argument> arguments = Slots(p, v);
    arguments.push_back(gradient);
    AddRates(p, v, &arguments);
    return p.builder().AddNode("ResourceApplyFtrl", arguments);
  }
  Node* ApplySparse(Program& p, const Variable& v, Endpoint values, Endpoint indices) override {
    std::vector<Argument> arguments = Slots(p, v);
    arguments.push_back(values);
    arguments.push_back(indices);
    AddRates(p, v, &arguments);
    return p.builder().AddNode("ResourceSparseApplyFtrl", arguments);
  }
  const LearningRate rate_;
  const double power_, initial_, l1_, l2_;
};

class AdadeltaOptimizer final : public Optimizer {
 public:
  AdadeltaOptimizer(LearningRate rate, double rho, double epsilon)
      : Optimizer("Adadelta"), rate_(rate), rho_(rho), epsilon_(epsilon) {}

 private:
  std::vector<Argument> Arguments(Program& p, const Variable& v, Endpoint gradient) {
    return {v.handle,
            Slot(p, v, name(), Zeros()).handle,
            Slot(p, v, name() + "_1", Zeros()).handle,
            rate_.Value(p, v.dtype),
            Scalar(p, v.dtype, rho_),
            Scalar(p, v.dtype, epsilon_),
            gradient};
  }
  Node* ApplyDense(Program& p, const Variable& v, Endpoint gradient) override {
    return p.builder().AddNode("ResourceApplyAdadelta", Arguments(p, v, gradient));
  }
  Node* ApplySparse(Program& p, const Variable& v, Endpoint values, Endpoint indices) override {
    std::vector<Argument> arguments = Arguments(p, v, values);
    arguments.push_back(indices);
    return p.builder().AddNode("ResourceSparseApplyAdadelta", arguments);
  }
  const LearningRate rate_;
  const double rho_, epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> GradientDescent(LearningRate learning_rate) {
  return std::make_unique<GradientDescentOptimizer>(learning_rate);
}
std::unique_ptr<Optimizer> Momentum(LearningRate learning_rate, double momentum,
                                    bool use_nesterov) {
  return std::make_unique<MomentumOptimizer>(learning_rate, momentum, use_nesterov);
}
std::unique_ptr<Optimizer> Adam(LearningRate learning_rate, double beta1, double beta2,
                                double epsilon) {
  return std::make_unique<AdamOptimizer>(learning_rate, beta1, beta2, epsilon);
}
std::unique_ptr<Optimizer> Adagrad(LearningRate learning_rate, double initial_accumulator) {
  return std::make_unique<AdagradOptimizer>(learning_rate, initial_accumulator);
}
std::unique_ptr<Optimizer> RmsProp(LearningRate learning_rate, double decay, double momentum,
                                   double epsilon) {
  return std::make_unique<RmsPropOptimizer>(learning_rate, decay, momentum, epsilon);
}
std::unique_ptr<Optimizer> Ftrl(LearningRate learning_rate, double learning_rate_power,
                                double initial_accumulator, double l1, double l2) {
  return std::make_unique<FtrlOptimizer>(learning_rate, learning_rate_power, initial_accumulator,
                                         l1, l2);
}
std::unique_ptr<Optimizer> Adadelta(LearningRate learning_rate, double rho, double epsilon) {
  return std::make_unique<AdadeltaOptimizer>(learning_rate, rho, epsilon);
}

}  // namespace weft::train
