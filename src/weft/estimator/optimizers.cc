// SPDX-License-Identifier: Apache-2.0
// The update of each optimizer: in one op where the catalogue has it.
#include <functional>
#include <memory>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/optimizer.h"

namespace weft::estimator {
namespace {

// base ^ steps.
Endpoint PowerOf(const WeightUpdate& u, double base) { return u.Op("Pow", u.n(base), u.steps); }

Endpoint OneMinus(const WeightUpdate& u, Endpoint x) { return u.Op("Sub", u.n(1), x); }

class SgdOptimizer final : public Optimizer {
 public:
  SgdOptimizer(const Schedule& rate, const SgdOptions& o) : Optimizer("SGD", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    if (o_.momentum == 0) {
      u.nodes.push_back(
          u.b.AddNode("ResourceApplyGradientDescent", {u.variable.handle, u.rate, u.gradient}));
      return;
    }
    const train::Variable slot = u.Slot("momentum");
    const Endpoint step = u.Op("Mul", u.gradient, u.rate);
    const Endpoint moved = u.Op("Sub", u.Op("Mul", slot.value, u.n(o_.momentum)), step);
    u.Assign(slot, moved);
    u.Subtract(o_.nesterov ? u.Op("Sub", step, u.Op("Mul", moved, u.n(o_.momentum)))
                           : u.b.Op("Neg", {moved}));
  }
  Node* UpdateRows(WeightUpdate& u, const TensorGradient::Slices& rows) override {
    if (o_.momentum != 0) return nullptr;
    const Endpoint step = u.b.Op("Neg", {u.Op("Mul", rows.values, u.rate)});
    return u.b.AddNode("ResourceScatterAdd", {u.variable.handle, rows.indices, step},
                       {{"dtype", u.variable.dtype}});
  }

 private:
  const SgdOptions o_;
};

class RmsPropOptimizer final : public Optimizer {
 public:
  RmsPropOptimizer(const Schedule& rate, const RmsPropOptions& o)
      : Optimizer("RMSprop", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable velocity = u.Slot("velocity");
    const train::Variable momentum = u.Slot("momentum");
    if (!o_.centered) {
      u.nodes.push_back(u.b.AddNode("ResourceApplyRMSProp",
                                    {u.variable.handle, velocity.handle, momentum.handle, u.rate,
                                     u.n(o_.rho), u.n(o_.momentum), u.n(o_.epsilon), u.gradient}));
      return;
    }
    const train::Variable average = u.Slot("average_gradient");
    const Endpoint squares = u.Blend(velocity.value, u.b.Op("Square", {u.gradient}), o_.rho);
    const Endpoint mean = u.Blend(average.value, u.gradient, o_.rho);
    const Endpoint spread =
        u.Op("AddV2", u.Op("Sub", squares, u.b.Op("Square", {mean})), u.n(o_.epsilon));
    Endpoint step = u.Op("Mul", u.Op("Mul", u.gradient, u.rate), u.b.Op("Rsqrt", {spread}));
    if (o_.momentum > 0) {
      step = u.Op("AddV2", u.Op("Mul", momentum.value, u.n(o_.momentum)), step);
      u.Assign(momentum, step);
    }
    u.Assign(velocity, squares);
    u.Assign(average, mean);
    u.Subtract(step);
  }

 private:
  const RmsPropOptions o_;
};

class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(const char* name, const Schedule& rate, const AdamOptions& o)
      : Optimizer(name, rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable m = u.Slot("momentum"), v = u.Slot("velocity");
    const Endpoint power1 = PowerOf(u, o_.beta_1), power2 = PowerOf(u, o_.beta_2);
    if (!o_.amsgrad) {
      u.nodes.push_back(u.b.AddNode("ResourceApplyAdam",
                                    {u.variable.handle, m.handle, v.handle, power1, power2, u.rate,
                                     u.n(o_.beta_1), u.n(o_.beta_2), u.n(o_.epsilon), u.gradient}));
      return;
    }
    const train::Variable most = u.Slot("velocity_hat");
    const Endpoint mean = u.Blend(m.value, u.gradient, o_.beta_1);
    const Endpoint squares = u.Blend(v.value, u.b.Op("Square", {u.gradient}), o_.beta_2);
    const Endpoint greatest = u.Op("Maximum", most.value, squares);
    const Endpoint rate = u.Op(
        "RealDiv", u.Op("Mul", u.rate, u.b.Op("Sqrt", {OneMinus(u, power2)})), OneMinus(u, power1));
    u.Assign(m, mean);
    u.Assign(v, squares);
    u.Assign(most, greatest);
    u.Subtract(u.Op("RealDiv", u.Op("Mul", mean, rate),
                    u.Op("AddV2", u.b.Op("Sqrt", {greatest}), u.n(o_.epsilon))));
  }

 private:
  const AdamOptions o_;
};

class AdamaxOptimizer final : public Optimizer {
 public:
  AdamaxOptimizer(const Schedule& rate, const AdamOptions& o)
      : Optimizer("Adamax", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable m = u.Slot("momentum"), v = u.Slot("norm");
    const Endpoint mean = u.Blend(m.value, u.gradient, o_.beta_1);
    const Endpoint norm =
        u.Op("Maximum", u.Op("Mul", v.value, u.n(o_.beta_2)), u.b.Op("Abs", {u.gradient}));
    const Endpoint rate = u.Op("RealDiv", u.rate, OneMinus(u, PowerOf(u, o_.beta_1)));
    u.Assign(m, mean);
    u.Assign(v, norm);
    u.Subtract(u.Op("RealDiv", u.Op("Mul", mean, rate), u.Op("AddV2", norm, u.n(o_.epsilon))));
  }

 private:
  const AdamOptions o_;
};

// Adam with Nesterov's momentum (Dozat 2016).
class NadamOptimizer final : public Optimizer {
 public:
  NadamOptimizer(const Schedule& rate, const AdamOptions& o)
      : Optimizer("Nadam", rate, o.all), o_(o) {}

 protected:
  void Prepare(train::Program& program, Endpoint steps) override {
    GraphBuilder& b = program.builder();
    product_ = program.AddVariable("u_product", DType::kFloat, Shape(), train::Ones(),
                                   {.trainable = false});
    const auto n = [&](double value) { return Number(b, DType::kFloat, value); };
    const auto warmed = [&](Endpoint at) {
      const Endpoint decay = b.Op("Mul", {b.Op("Pow", {n(0.96), at}), n(0.5)});
      return b.Op("Mul", {b.Op("Sub", {n(1), decay}), n(o_.beta_1)});
    };
    now_ = warmed(steps);
    next_ = warmed(b.Op("AddV2", {steps, n(1)}));
    product_now_ = b.Op("Mul", {product_.value, now_});
    product_next_ = b.Op("Mul", {product_now_, next_});
  }
  void Update(WeightUpdate& u) override {
    const train::Variable m = u.Slot("momentum"), v = u.Slot("velocity");
    const Endpoint mean = u.Blend(m.value, u.gradient, o_.beta_1);
    const Endpoint squares = u.Blend(v.value, u.b.Op("Square", {u.gradient}), o_.beta_2);
    const Endpoint ahead = u.Op("Mul", mean, u.Op("RealDiv", next_, OneMinus(u, product_next_)));
    const Endpoint here =
        u.Op("Mul", u.gradient, u.Op("RealDiv", OneMinus(u, now_), OneMinus(u, product_now_)));
    const Endpoint spread = u.Op("RealDiv", squares, OneMinus(u, PowerOf(u, o_.beta_2)));
    u.Assign(m, mean);
    u.Assign(v, squares);
    u.Subtract(u.Op("RealDiv", u.Op("Mul", u.Op("AddV2", ahead, here), u.rate),
                    u.Op("AddV2", u.b.Op("Sqrt", {spread}), u.n(o_.epsilon))));
  }
  std::vector<Node*> Finish(train::Program& program) override {
    return {program.builder().AddNode("AssignVariableOp", {product_.handle, product_now_},
                                      {{"dtype", DType::kFloat}})};
  }

 private:
  const AdamOptions o_;
  train::Variable product_;
  Endpoint now_, next_, product_now_, product_next_;
};

// Steps of one length, by the sign of an average of gradients (Chen et al. 2023).
class LionOptimizer final : public Optimizer {
 public:
  LionOptimizer(const Schedule& rate, const LionOptions& o)
      : Optimizer("Lion", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable m = u.Slot("momentum");
    u.Subtract(u.Op("Mul", u.b.Op("Sign", {u.Blend(m.value, u.gradient, o_.beta_1)}), u.rate));
    u.Assign(m, u.Blend(m.value, u.gradient, o_.beta_2));
  }

 private:
  const LionOptions o_;
};

// Adam's step, as long as the weight itself times the rate (You et al. 2019).
class LambOptimizer final : public Optimizer {
 public:
  LambOptimizer(const Schedule& rate, const AdamOptions& o)
      : Optimizer("Lamb", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable m = u.Slot("momentum"), v = u.Slot("velocity");
    const Endpoint mean = u.Blend(m.value, u.gradient, o_.beta_1);
    const Endpoint squares = u.Blend(v.value, u.b.Op("Square", {u.gradient}), o_.beta_2);
    const Endpoint spread = u.Op("RealDiv", squares, OneMinus(u, PowerOf(u, o_.beta_2)));
    const Endpoint step = u.Op("RealDiv", u.Op("RealDiv", mean, OneMinus(u, PowerOf(u, o_.beta_1))),
                               u.Op("AddV2", u.b.Op("Sqrt", {spread}), u.n(o_.epsilon)));
    const auto length = [&](Endpoint x) {
      return u.b.Op("Sqrt", {u.Op("Mul", u.b.Op("L2Loss", {x}), u.n(2))});
    };
    const Endpoint of_weight = length(u.Weight()), of_step = length(step);
    // 1 where either is 0.
    const Endpoint both = u.Op("Greater", u.Op("Minimum", of_weight, of_step), u.n(0));
    const Endpoint ratio =
        u.b.Op("SelectV2", {both, u.b.Op("DivNoNan", {of_weight, of_step}), u.n(1)});
    u.Assign(m, mean);
    u.Assign(v, squares);
    u.Subtract(u.Op("Mul", step, u.Op("Mul", ratio, u.rate)));
  }

 private:
  const AdamOptions o_;
};

class AdagradOptimizer final : public Optimizer {
 public:
  AdagradOptimizer(const Schedule& rate, const AdagradOptions& o)
      : Optimizer("Adagrad", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable sum = u.Slot("accumulator", o_.initial_accumulator_value);
    const Endpoint total = u.Op("AddV2", sum.value, u.b.Op("Square", {u.gradient}));
    u.Assign(sum, total);
    u.Subtract(u.Op("RealDiv", u.Op("Mul", u.gradient, u.rate),
                    u.b.Op("Sqrt", {u.Op("AddV2", total, u.n(o_.epsilon))})));
  }

 private:
  const AdagradOptions o_;
};

class AdadeltaOptimizer final : public Optimizer {
 public:
  AdadeltaOptimizer(const Schedule& rate, const AdadeltaOptions& o)
      : Optimizer("Adadelta", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable gradients = u.Slot("accumulated_grad");
    const train::Variable steps = u.Slot("accumulated_delta_var");
    const auto root = [&](Endpoint x) {
      return u.b.Op("Sqrt", {u.Op("AddV2", x, u.n(o_.epsilon))});
    };
    const Endpoint squares = u.Blend(gradients.value, u.b.Op("Square", {u.gradient}), o_.rho);
    const Endpoint step =
        u.Op("RealDiv", u.Op("Mul", root(steps.value), u.gradient), root(squares));
    u.Assign(gradients, squares);
    u.Assign(steps, u.Blend(steps.value, u.b.Op("Square", {step}), o_.rho));
    u.Subtract(u.Op("Mul", step, u.rate));
  }

 private:
  const AdadeltaOptions o_;
};

class FtrlOptimizer final : public Optimizer {
 public:
  FtrlOptimizer(const Schedule& rate, const FtrlOptions& o)
      : Optimizer("Ftrl", rate, o.all), o_(o) {}

 protected:
  void Update(WeightUpdate& u) override {
    const train::Variable sum = u.Slot("accumulator", o_.initial_accumulator_value);
    const train::Variable linear = u.Slot("linear");
    const Endpoint weight = u.Weight();
    const auto power = [&](Endpoint x) { return u.Op("Pow", x, u.n(-o_.learning_rate_power)); };
    Endpoint gradient = u.gradient;
    if (o_.l2_shrinkage_regularization_strength != 0) {
      gradient = u.Op("AddV2", gradient,
                      u.Op("Mul", weight, u.n(2 * o_.l2_shrinkage_regularization_strength)));
    }
    const Endpoint total = u.Op("AddV2", sum.value, u.b.Op("Square", {u.gradient}));
    const Endpoint grown = u.Op("RealDiv", u.Op("Sub", power(total), power(sum.value)), u.rate);
    const Endpoint now =
        u.Op("Sub", u.Op("AddV2", linear.value, gradient), u.Op("Mul", grown, weight));
    // beta / (2 rate) counts as more of l2.
    const Endpoint twice_l2 = u.Op("AddV2", u.n(2 * o_.l2_regularization_strength),
                                   u.Op("RealDiv", u.n(o_.beta), u.rate));
    const Endpoint quadratic = u.Op("AddV2", u.Op("RealDiv", power(total), u.rate), twice_l2);
    const double l1 = o_.l1_regularization_strength;
    const Endpoint clipped = u.Op("Maximum", u.Op("Minimum", now, u.n(l1)), u.n(-l1));
    u.Assign(sum, total);
    u.Assign(linear, now);
    u.Assign(u.variable, u.Op("RealDiv", u.Op("Sub", clipped, now), quadratic));
  }

 private:
  const FtrlOptions o_;
};

}  // namespace

std::unique_ptr<Optimizer> Sgd(const Schedule& rate, const SgdOptions& options) {
  return std::make_unique<SgdOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> RmsProp(const Schedule& rate, const RmsPropOptions& options) {
  return std::make_unique<RmsPropOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> Adam(const Schedule& rate, const AdamOptions& options) {
  return std::make_unique<AdamOptimizer>("Adam", rate, options);
}
std::unique_ptr<Optimizer> AdamW(const Schedule& rate, const AdamOptions& options) {
  AdamOptions decayed = options;
  if (decayed.all.weight_decay == 0) decayed.all.weight_decay = 0.004;
  return std::make_unique<AdamOptimizer>("AdamW", rate, decayed);
}
std::unique_ptr<Optimizer> Adamax(const Schedule& rate, const AdamOptions& options) {
  return std::make_unique<AdamaxOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> Nadam(const Schedule& rate, const AdamOptions& options) {
  return std::make_unique<NadamOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> Adagrad(const Schedule& rate, const AdagradOptions& options) {
  return std::make_unique<AdagradOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> Adadelta(const Schedule& rate, const AdadeltaOptions& options) {
  return std::make_unique<AdadeltaOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> Lion(const Schedule& rate, const LionOptions& options) {
  return std::make_unique<LionOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> Lamb(const Schedule& rate, const AdamOptions& options) {
  return std::make_unique<LambOptimizer>(rate, options);
}
std::unique_ptr<Optimizer> Ftrl(const Schedule& rate, const FtrlOptions& options) {
  return std::make_unique<FtrlOptimizer>(rate, options);
}

StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const std::string& name) {
  using Maker = std::function<std::unique_ptr<Optimizer>()>;
  static const auto* const makers = new std::map<std::string, Maker>{
      {"sgd", [] { return Sgd(); }},         {"rmsprop", [] { return RmsProp(); }},
      {"adam", [] { return Adam(); }},       {"adamw", [] { return AdamW(); }},
      {"adamax", [] { return Adamax(); }},   {"nadam", [] { return Nadam(); }},
      {"adagrad", [] { return Adagrad(); }}, {"adadelta", [] { return Adadelta(); }},
      {"ftrl", [] { return Ftrl(); }},       {"lion", [] { return Lion(); }},
      {"lamb", [] { return Lamb(); }}};
  const auto found = makers->find(name);
  if (found == makers->end()) return NotFound("There is no optimizer '", name, "'");
  return found->second();
}

}  // namespace weft::estimator
