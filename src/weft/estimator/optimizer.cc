// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/optimizer.h"

#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/train/gradients.h"

namespace weft::estimator {
namespace {

// Later nodes stand on the variable's device, and wait for `nodes`.
class Placed {
 public:
  Placed(GraphBuilder& b, const train::Variable& variable, std::vector<Node*> nodes)
      : b_(b), device_(b.device()), controls_(b.control_inputs()) {
    if (!variable.device.empty()) b_.set_device(variable.device);
    b_.set_control_inputs(std::move(nodes));
  }
  ~Placed() {
    b_.set_device(device_);
    b_.set_control_inputs(controls_);
  }

 private:
  GraphBuilder& b_;
  const std::string device_;
  const std::vector<Node*> controls_;
};

Endpoint ReadNow(GraphBuilder& b, const train::Variable& variable) {
  return b.Op("ReadVariableOp", {variable.handle}, {{"dtype", variable.dtype}});
}

Node* AssignTo(GraphBuilder& b, const train::Variable& variable, Endpoint value) {
  return b.AddNode("AssignVariableOp", {variable.handle, value}, {{"dtype", variable.dtype}});
}

Endpoint SquaredLength(GraphBuilder& b, Endpoint x) {
  return b.Op("Mul", {b.Op("L2Loss", {x}), NumberLike(b, x, 2)});
}

}  // namespace

train::Variable WeightUpdate::Slot(const std::string& name, double initial) {
  return program.AddSlot(variable, name, train::Constant(initial));
}

Endpoint WeightUpdate::n(double value) const { return Number(b, variable.dtype, value); }

Endpoint WeightUpdate::Blend(Endpoint old, Endpoint fresh, double decay) const {
  return Op("AddV2", Op("Mul", old, n(decay)), Op("Mul", fresh, n(1 - decay)));
}

Endpoint WeightUpdate::Weight() {
  std::vector<Node*> before = b.control_inputs();
  before.push_back(gradient.node);
  const Placed after(b, variable, std::move(before));
  return ReadNow(b, variable);
}

void WeightUpdate::Assign(const train::Variable& to, Endpoint value) {
  nodes.push_back(AssignTo(b, to, value));
}

void WeightUpdate::Subtract(Endpoint step) {
  nodes.push_back(
      b.AddNode("AssignSubVariableOp", {variable.handle, step}, {{"dtype", variable.dtype}}));
}

void Optimizer::Clip(GraphBuilder& b, std::vector<One>* all) const {
  if (options_.clipnorm <= 0 && options_.global_clipnorm <= 0 && options_.clipvalue <= 0) return;
  std::vector<Endpoint> lengths;
  for (One& one : *all) {
    Endpoint g = train::Densify(b, one.gradient);
    one.gradient.slices.reset();
    if (options_.clipvalue > 0) {
      g = b.Op("Maximum", {b.Op("Minimum", {g, NumberLike(b, g, options_.clipvalue)}),
                           NumberLike(b, g, -options_.clipvalue)});
    } else if (options_.clipnorm > 0) {
      const Endpoint most = NumberLike(b, g, options_.clipnorm);
      const Endpoint length = b.Op("Sqrt", {SquaredLength(b, g)});
      g = b.Op("Mul", {g, b.Op("RealDiv", {most, b.Op("Maximum", {length, most})})});
    } else {
      lengths.push_back(SquaredLength(b, g));
    }
    one.gradient.dense = g;
  }
  if (lengths.empty()) return;
  const Endpoint length = b.Op("Sqrt", {b.Op("AddN", {lengths})});
  const Endpoint most = NumberLike(b, length, options_.global_clipnorm);
  const Endpoint factor = b.Op("RealDiv", {most, b.Op("Maximum", {length, most})});
  for (One& one : *all) one.gradient.dense = b.Op("Mul", {one.gradient.dense, factor});
}

Node* Optimizer::UpdateOne(train::Program& program, const One& one, Nodes* nodes, Endpoint steps) {
  GraphBuilder& b = program.builder();
  const train::Variable& variable = one.weight->variable;
  const Placed placed(b, variable, {});
  const Endpoint of_gradient =
      one.gradient.slices ? one.gradient.slices->values : one.gradient.dense;
  std::vector<Node*> before;
  if (options_.weight_decay > 0) {
    // After the gradient, which the weight before the decay has made.
    const Placed after(b, variable, {of_gradient.node});
    const Endpoint share =
        b.Op("Mul", {nodes->rate, Number(b, variable.dtype, options_.weight_decay)});
    before.push_back(b.AddNode("AssignSubVariableOp",
                               {variable.handle, b.Op("Mul", {ReadNow(b, variable), share})},
                               {{"dtype", variable.dtype}}));
  }
  std::vector<Node*> done;
  {
    const Placed after(b, variable, before);
    WeightUpdate update{program, b, variable, one.gradient.dense, nodes->rate, steps};
    Node* rows = nullptr;
    if (one.gradient.slices) {
      rows = UpdateRows(update, *one.gradient.slices);
      if (rows == nullptr) update.gradient = train::Densify(b, one.gradient);
    }
    if (rows == nullptr) Update(update);
    done = rows != nullptr ? std::vector<Node*>{rows} : update.nodes;
    done.insert(done.end(), before.begin(), before.end());
  }
  if (!b.ok()) return nullptr;
  if (!one.weight->constraint.empty()) {
    const Placed after(b, variable, done);
    done = {AssignTo(b, variable, one.weight->constraint.Apply(b, ReadNow(b, variable)))};
  }
  if (options_.use_ema) {
    const Placed after(b, variable, done);
    done = {Average(program, variable, steps)};
  }
  return program.Group(done, "update");
}

Node* Optimizer::Average(train::Program& program, const train::Variable& variable, Endpoint steps) {
  GraphBuilder& b = program.builder();
  const train::Variable average = program.AddSlot(variable, "average", train::Zeros());
  averages_.emplace_back(variable, average);
  // The first average is the weight itself.
  const Endpoint is_first =
      CastTo(b, b.Op("LessEqual", {steps, Number(b, DType::kFloat, 1.5)}), variable.dtype);
  const Endpoint fresh =
      b.Op("AddV2", {b.Op("Mul", {is_first, Number(b, variable.dtype, options_.ema_momentum)}),
                     Number(b, variable.dtype, 1 - options_.ema_momentum)});
  const Endpoint step = b.Op("Mul", {b.Op("Sub", {average.value, ReadNow(b, variable)}), fresh});
  return b.AddNode("AssignSubVariableOp", {average.handle, step}, {{"dtype", variable.dtype}});
}

Node* Optimizer::OverwriteByAverages(train::Program& program, Endpoint steps, Node* after) {
  GraphBuilder& b = program.builder();
  const Endpoint every =
      Number(b, DType::kFloat, static_cast<double>(options_.ema_overwrite_frequency));
  const Endpoint now =
      b.Op("Equal", {b.Op("FloorMod", {steps, every}), Number(b, DType::kFloat, 0)});
  std::vector<Node*> nodes;
  for (const auto& [variable, average] : averages_) {
    const Placed placed(b, variable, {after});
    const Endpoint value = b.Op("SelectV2", {now, ReadNow(b, average), ReadNow(b, variable)});
    nodes.push_back(AssignTo(b, variable, value));
  }
  return program.Group(nodes, "overwrite");
}

StatusOr<Optimizer::Nodes> Optimizer::Minimize(train::Program& program, Endpoint loss,
                                               const std::vector<Weight>& weights,
                                               const std::vector<Node*>& updates) {
  GraphBuilder& b = program.builder();
  WEFT_RETURN_IF_ERROR(b.status());
  if ((options_.clipnorm > 0) + (options_.global_clipnorm > 0) + (options_.clipvalue > 0) > 1) {
    return InvalidArgument("An optimizer takes one of clipnorm, global_clipnorm and clipvalue");
  }
  std::vector<const Weight*> trained;
  std::vector<Endpoint> handles;
  for (const Weight& weight : weights) {
    if (!weight.variable.trainable) continue;
    trained.push_back(&weight);
    handles.push_back(weight.variable.handle);
  }
  if (trained.empty()) return InvalidArgument("The model has no weights to train");
  WEFT_ASSIGN_OR_RETURN(const std::vector<TensorGradient> gradients,
                        train::AddGradients(b, {loss}, handles));
  std::vector<One> all;
  for (size_t i = 0; i < trained.size(); ++i) {
    if (!gradients[i].empty()) all.push_back({gradients[i], trained[i]});
  }
  if (all.empty()) return InvalidArgument("The loss depends on none of the model's weights");
  b.PushName(name_);
  Nodes nodes;
  const train::Variable count = program.GlobalStep();
  const Endpoint before = CastTo(b, count.value, DType::kFloat);
  const Endpoint steps = b.Op("AddV2", {before, Number(b, DType::kFloat, 1)});
  if (rate_.IsNumber()) {
    const train::Variable rate =
        program.AddVariable("learning_rate", DType::kFloat, Shape(), train::Constant(rate_.rate()),
                            {.trainable = false});
    nodes.rate = rate.value;
    nodes.new_rate =
        b.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", Shape()}}, "new_rate");
    const Placed placed(b, rate, {});
    nodes.set_rate = AssignTo(b, rate, nodes.new_rate);
  } else {
    nodes.rate = rate_.At(b, before);
  }
  Clip(b, &all);
  Prepare(program, steps);
  std::vector<Node*> done;
  for (const One& one : all) {
    WEFT_RETURN_IF_ERROR(b.status());
    done.push_back(UpdateOne(program, one, &nodes, steps));
  }
  for (Node* node : Finish(program)) done.push_back(node);
  for (Node* node : updates) done.push_back(node);
  WEFT_RETURN_IF_ERROR(b.status());
  if (options_.use_ema) {
    if (options_.ema_overwrite_frequency > 0) {
      done.push_back(OverwriteByAverages(program, steps, program.Group(done, "updates")));
    } else {
      std::vector<Node*> copies;
      for (const auto& [variable, average] : averages_) {
        const Placed placed(b, variable, {});
        copies.push_back(AssignTo(b, variable, ReadNow(b, average)));
      }
      nodes.use_averages = program.Group(copies, "use_averages");
    }
  }
  {
    const Placed placed(b, count, done);
    done = {b.AddNode("AssignAddVariableOp", {count.handle, b.Scalar<int64_t>(1)})};
  }
  nodes.train = program.Group(done, "train");
  b.PopName();
  WEFT_RETURN_IF_ERROR(b.status());
  return nodes;
}

}  // namespace weft::estimator
