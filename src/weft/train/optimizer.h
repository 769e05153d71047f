// SPDX-License-Identifier: Apache-2.0
// Optimizers: from a loss to a node that changes the variables.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/graph/gradient.h"
#include "weft/train/program.h"

namespace weft::train {

struct GradientAndVariable {
  TensorGradient gradient;
  Variable variable;
};

// How far an optimizer goes: a number, a line from one to another, or a tensor.
class LearningRate {
 public:
  LearningRate(double rate) : start_(rate), end_(rate) {}  // NOLINT: a number is a rate
  // A floating point scalar of the program's graph, fed or computed anew by each step.
  LearningRate(Endpoint rate) : tensor_(rate) {}  // NOLINT: so is a tensor
  // `start` at global step 0, `end` from `last_step` on, a straight line between.
  static LearningRate Line(double start, double end, int64_t last_step);

  // As a scalar of `dtype`, computed on the builder's device. A tensor that is no floating point
  // scalar is InvalidArgument in the builder's status.
  Endpoint Value(Program& program, DType dtype, double factor = 1) const;

 private:
  Endpoint ValueOfTensor(GraphBuilder& builder, DType dtype, double factor) const;

  Endpoint tensor_;  // empty: a number or a line
  double start_ = 0, end_ = 0;
  int64_t last_step_ = 0;
};

// One optimizer. Slot variables are named as TensorFlow names them ("w/Adam", "w/Adam_1"), so that
// its checkpoints can be read. Use one for one program.
class Optimizer {
 public:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}
  virtual ~Optimizer() = default;

  // d(loss)/d(variable) for each variable (all trainable ones if `variables` is empty). Variables
  // the loss does not depend on are left out; InvalidArgument if that leaves none.
  StatusOr<std::vector<GradientAndVariable>> ComputeGradients(Program& program, Endpoint loss,
                                                              std::vector<Variable> variables = {});
  // A node that applies the gradients, then adds one to `global_step` if it is not null.
  StatusOr<Node*> ApplyGradients(Program& program,
                                 const std::vector<GradientAndVariable>& gradients,
                                 const Variable* global_step = nullptr);
  // Both at once, with the program's global step.
  StatusOr<Node*> Minimize(Program& program, Endpoint loss);

  const std::string& name() const { return name_; }
  // Stands before the names of slots, "w/<prefix>Adagrad": "t_0/" in TensorFlow's DNNClassifier.
  void set_slot_prefix(std::string prefix) { slot_prefix_ = std::move(prefix); }

 protected:
  // Called once an ApplyGradients, before any apply.
  virtual void Prepare(Program&, const std::vector<GradientAndVariable>&) {}
  virtual Node* ApplyDense(Program& program, const Variable& variable, Endpoint gradient) = 0;
  // Rows are unique. `indices` int32 or int64.
  virtual Node* ApplySparse(Program& program, const Variable& variable, Endpoint values,
                            Endpoint indices) = 0;
  // Nodes that run after all applies.
  virtual std::vector<Node*> Finish(Program&, const std::vector<Node*>&) { return {}; }

  // The slot of `variable`, made on first use beside it.
  Variable Slot(Program& program, const Variable& variable, const std::string& slot_name,
                const Initializer& initial);
  // `value` as a scalar of `dtype`.
  static Endpoint Scalar(Program& program, DType dtype, double value);

 private:
  const std::string name_;
  std::string slot_prefix_;
  std::map<std::pair<std::string, std::string>, Variable> slots_;
};

// var -= rate * grad
std::unique_ptr<Optimizer> GradientDescent(LearningRate learning_rate);
// accum = momentum * accum + grad; var -= rate * accum (Nesterov: Sutskever et al. 2013)
std::unique_ptr<Optimizer> Momentum(LearningRate learning_rate, double momentum,
                                    bool use_nesterov = false);
// Kingma and Ba 2015, without the amsgrad form
std::unique_ptr<Optimizer> Adam(LearningRate learning_rate = 0.001, double beta1 = 0.9,
                                double beta2 = 0.999, double epsilon = 1e-8);
// Duchi et al. 2011
std::unique_ptr<Optimizer> Adagrad(LearningRate learning_rate, double initial_accumulator = 0.1);
// Tieleman and Hinton 2012
std::unique_ptr<Optimizer> RmsProp(LearningRate learning_rate, double decay = 0.9,
                                   double momentum = 0.0, double epsilon = 1e-10);
// McMahan et al. 2013
std::unique_ptr<Optimizer> Ftrl(LearningRate learning_rate, double learning_rate_power = -0.5,
                                double initial_accumulator = 0.1, double l1 = 0, double l2 = 0);
// Zeiler 2012
std::unique_ptr<Optimizer> Adadelta(LearningRate learning_rate = 0.001, double rho = 0.95,
                                    double epsilon = 1e-8);

}  // namespace weft::train
