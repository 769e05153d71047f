// SPDX-License-Identifier: Apache-2.0
// Keras's optimizers: their names, defaults and numbers. (Those of train/ are TensorFlow 1's.)
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/estimator/layer_call.h"
#include "weft/estimator/schedule.h"
#include "weft/graph/gradient.h"
#include "weft/train/program.h"

namespace weft::estimator {

// What all of them know, `all` of their options. Of the three kinds of clipping at most one.
struct OptimizerOptions {
  double weight_decay = 0;     // of each step, times the learning rate
  double clipnorm = 0;         // 0: not; the length of each gradient
  double global_clipnorm = 0;  // of all gradients together
  double clipvalue = 0;        // each element
  // Keep averages of the weights, which become the weights every so many steps, or at the end of
  // Fit if 0.
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
};

// The parts of an update of one weight.
struct WeightUpdate {
  train::Program& program;
  GraphBuilder& b;
  const train::Variable& variable;
  Endpoint gradient;
  Endpoint rate;   // float scalars
  Endpoint steps;  // 1 in the first step
  std::vector<Node*> nodes = {};

  train::Variable Slot(const std::string& name, double initial = 0);
  Endpoint n(double value) const;
  Endpoint Op(const char* op, Endpoint x, Endpoint y) const { return b.Op(op, {x, y}); }
  // decay * old + (1 - decay) * new
  Endpoint Blend(Endpoint old, Endpoint fresh, double decay) const;
  // The weight, which a layer may have changed before the gradient.
  Endpoint Weight();
  void Assign(const train::Variable& to, Endpoint value);
  void Subtract(Endpoint step);
};

// Adds the nodes of a training step. One for one model; not thread-safe.
class Optimizer {
 public:
  Optimizer(std::string name, Schedule rate, OptimizerOptions options)
      : name_(std::move(name)), rate_(std::move(rate)), options_(options) {}
  virtual ~Optimizer() = default;

  struct Nodes {
    Node* train = nullptr;
    Node* use_averages = nullptr;  // makes the averages the weights; null without averages
    Endpoint rate;                 // the learning rate of the step
    Node* set_rate = nullptr;      // sets it to what is fed as `new_rate`; null with a schedule
    Endpoint new_rate;
  };
  // Updates the trainable ones of `weights` to make `loss` smaller, then what `updates` says.
  StatusOr<Nodes> Minimize(train::Program& program, Endpoint loss,
                           const std::vector<Weight>& weights, const std::vector<Node*>& updates);

  const std::string& name() const { return name_; }

 protected:
  // Once a step, before Update.
  virtual void Prepare(train::Program&, Endpoint /*steps*/) {}
  virtual void Update(WeightUpdate& update) = 0;
  // Rows of a table, for optimizers that change nothing where the gradient is 0.
  virtual Node* UpdateRows(WeightUpdate&, const TensorGradient::Slices&) { return nullptr; }
  // After all updates.
  virtual std::vector<Node*> Finish(train::Program&) { return {}; }

 private:
  struct One {
    TensorGradient gradient;
    const Weight* weight = nullptr;
  };
  void Clip(GraphBuilder& b, std::vector<One>* all) const;
  Node* UpdateOne(train::Program& program, const One& one, Nodes* nodes, Endpoint steps);
  Node* Average(train::Program& program, const train::Variable& variable, Endpoint steps);
  // Runs each as soon as `iterations` says so; else nothing.
  Node* OverwriteByAverages(train::Program& program, Endpoint steps, Node* after);

  const std::string name_;
  const Schedule rate_;
  const OptimizerOptions options_;
  std::vector<std::pair<train::Variable, train::Variable>> averages_;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  OptimizerOptions all = {};
};
std::unique_ptr<Optimizer> Sgd(const Schedule& rate = 0.01, const SgdOptions& options = {});
struct RmsPropOptions {
  double rho = 0.9, momentum = 0, epsilon = 1e-7;
  bool centered = false;
  OptimizerOptions all = {};
};
std::unique_ptr<Optimizer> RmsProp(const Schedule& rate = 0.001,
                                   const RmsPropOptions& options = {});
struct AdamOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool amsgrad = false;
  OptimizerOptions all = {};
};
// Kingma and Ba 2014.
std::unique_ptr<Optimizer> Adam(const Schedule& rate = 0.001, const AdamOptions& options = {});
// With a weight decay of 0.004 where `options` has none (Loshchilov and Hutter 2017).
std::unique_ptr<Optimizer> AdamW(const Schedule& rate = 0.001, const AdamOptions& options = {});
std::unique_ptr<Optimizer> Adamax(const Schedule& rate = 0.001, const AdamOptions& options = {});
std::unique_ptr<Optimizer> Nadam(const Schedule& rate = 0.001, const AdamOptions& options = {});
struct LionOptions {
  double beta_1 = 0.9, beta_2 = 0.99;
  OptimizerOptions all = {};
};
std::unique_ptr<Optimizer> Lion(const Schedule& rate = 0.001, const LionOptions& options = {});
std::unique_ptr<Optimizer> Lamb(const Schedule& rate = 0.001, const AdamOptions& options = {});
struct AdagradOptions {
  double initial_accumulator_value = 0.1, epsilon = 1e-7;
  OptimizerOptions all = {};
};
std::unique_ptr<Optimizer> Adagrad(const Schedule& rate = 0.001,
                                   const AdagradOptions& options = {});
struct AdadeltaOptions {
  double rho = 0.95, epsilon = 1e-7;
  OptimizerOptions all = {};
};
std::unique_ptr<Optimizer> Adadelta(const Schedule& rate = 0.001,
                                    const AdadeltaOptions& options = {});
struct FtrlOptions {
  double learning_rate_power = -0.5, initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0, l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0, beta = 0;
  OptimizerOptions all = {};
};
std::unique_ptr<Optimizer> Ftrl(const Schedule& rate = 0.001, const FtrlOptions& options = {});
// By Keras's name and its defaults: "sgd", "adam", ...; NotFound for another one.
StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const std::string& name);

}  // namespace weft::estimator
