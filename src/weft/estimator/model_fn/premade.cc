// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/premade.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

constexpr double kDnnRate = 0.05, kDnnRateBesideLinear = 0.001;
constexpr double kLinearRate = 0.2, kLinearRateBesideDnn = 0.005;
constexpr double kNormMomentum = 0.999, kNormEpsilon = 1e-3;

OptimizerMaker DnnOptimizer(const DnnOptions& dnn, double usual_rate) {
  if (dnn.optimizer) return dnn.optimizer;
  return [usual_rate] { return train::Adagrad(usual_rate); };
}

OptimizerMaker LinearOptimizer(const LinearOptions& linear, double usual_rate) {
  if (linear.optimizer) return linear.optimizer;
  return [usual_rate] { return train::Ftrl(usual_rate); };
}

// Summaries of a layer, as TensorFlow's Estimator has them.
void Summarize(const ModelCall& call, const std::string& layer, Endpoint x) {
  GraphBuilder& b = call.b();
  if (call.mode != Mode::kTrain || !b.ok()) return;
  const Endpoint zeros = CastTo(b, b.Op("Equal", {x, b.Op("ZerosLike", {x})}), DType::kFloat);
  const Endpoint fraction = Reduce(b, "Mean", ReshapeTo(b, zeros, {-1}), {0});
  call.program.AddSummary(b.Op(
      "ScalarSummary",
      {b.Scalar<std::string>(absl::StrCat("dnn/", layer, "/fraction_of_zero_values")), fraction}));
  call.program.AddSummary(b.Op(
      "HistogramSummary", {b.Scalar<std::string>(absl::StrCat("dnn/", layer, "/activation")), x}));
}

// tf.compat.v1.layers' batch normalization of [batch, units].
Endpoint Normalized(const ModelCall& call, const std::string& name, Endpoint x, int64_t units,
                    std::vector<Node*>* updates) {
  GraphBuilder& b = call.b();
  const auto variable = [&](const char* what, const train::Initializer& initial, bool trainable) {
    return call.program.AddVariable(absl::StrCat(name, "/", what), DType::kFloat, Shape{units},
                                    initial, {.trainable = trainable});
  };
  const train::Variable gamma = variable("gamma", train::Ones(), true);
  const train::Variable beta = variable("beta", train::Zeros(), true);
  const train::Variable mean = variable("moving_mean", train::Zeros(), false);
  const train::Variable variance = variable("moving_variance", train::Ones(), false);
  Endpoint middle = mean.value, spread = variance.value;
  if (call.mode == Mode::kTrain && b.ok()) {
    middle = Reduce(b, "Mean", x, {0});
    spread = Reduce(b, "Mean", b.Op("SquaredDifference", {x, b.Op("StopGradient", {middle})}), {0});
    const auto move = [&](const train::Variable& v, Endpoint now) {
      const Endpoint step = b.Op("Mul", {b.Op("Sub", {v.value, now}),
                                         b.Scalar<float>(static_cast<float>(1 - kNormMomentum))});
      updates->push_back(b.AddNode("AssignSubVariableOp", {v.handle, step}, {{"dtype", v.dtype}}));
    };
    move(mean, middle);
    move(variance, spread);
  }
  if (!b.ok()) return {};
  const Endpoint scale = b.Op(
      "Mul",
      {b.Op("Rsqrt", {b.Op("AddV2", {spread, NumberLike(b, spread, kNormEpsilon)})}), gamma.value});
  const Endpoint shift = b.Op("Sub", {beta.value, b.Op("Mul", {middle, scale})});
  return b.Op("AddV2", {b.Op("Mul", {x, scale}), shift});
}

// The logits with what else runs with each training step.
Endpoint DnnLogitsWith(const ModelCall& call, const DnnOptions& options, int64_t units,
                       std::vector<Node*>* updates) {
  GraphBuilder& b = call.b();
  b.PushName("dnn");
  b.PushName("input_from_feature_columns");
  b.PushName("input_layer");
  ColumnCall columns = call.Columns();
  Endpoint net = DenseFeatures(columns, options.feature_columns);
  b.PopName();
  b.PopName();
  const bool training = call.mode == Mode::kTrain;
  int64_t seed = call.config.seed;
  const auto next_seed = [&] { return call.config.seed == 0 ? 0 : ++seed; };
  for (size_t i = 0; i < options.hidden_units.size() && b.ok(); ++i) {
    const std::string layer = absl::StrCat("hiddenlayer_", i);
    if (options.hidden_units[i] < 1) {
      b.Fail(InvalidArgument("hidden_units[", i, "] is ", options.hidden_units[i]));
      break;
    }
    net = train::Dense(call.program, layer, net, options.hidden_units[i],
                       {.activation = options.activation, .seed = next_seed()});
    if (options.dropout > 0 && training) {
      net = train::Dropout(b, net, options.dropout, b.Scalar<bool>(true), next_seed());
    }
    if (options.batch_norm) {
      net = Normalized(call, absl::StrCat(layer, "/batchnorm_", i), net, options.hidden_units[i],
                       updates);
    }
    Summarize(call, layer, net);
  }
  Endpoint logits;
  if (b.ok()) {
    logits = train::Dense(call.program, "logits", net, units, {.seed = next_seed()});
    Summarize(call, "logits", logits);
  }
  b.PopName();
  return logits;
}

// Variables of the optimizer lie where TensorFlow has them: slots under "t_0" or "part_0" of their
// variables, others in "<model>/head".
TrainOpFn MinimizeModel(const OptimizerMaker& maker, const char* model, const char* slot_prefix) {
  return [maker, model, slot_prefix](train::Program& program, Endpoint loss) {
    const std::unique_ptr<train::Optimizer> optimizer = maker();
    optimizer->set_slot_prefix(slot_prefix);
    program.builder().PushName(model);
    program.builder().PushName("head");
    StatusOr<Node*> step = optimizer->Minimize(program, loss);
    program.builder().PopName();
    program.builder().PopName();
    return step;
  };
}

// Runs `updates` with each step that `train` makes.
TrainOpFn WithUpdates(TrainOpFn train, std::shared_ptr<std::vector<Node*>> updates) {
  return [train = std::move(train), updates = std::move(updates)](
             train::Program& program, Endpoint loss) -> StatusOr<Node*> {
    WEFT_ASSIGN_OR_RETURN(Node * step, train(program, loss));
    if (updates->empty()) return step;
    std::vector<Node*> all = *updates;
    all.push_back(step);
    return program.Group(all, "train");
  };
}

// Each model's variables by its own optimizer.
TrainOpFn MinimizeBoth(const OptimizerMaker& linear, const OptimizerMaker& dnn) {
  return [linear, dnn](train::Program& program, Endpoint loss) -> StatusOr<Node*> {
    std::vector<Node*> steps;
    GraphBuilder& b = program.builder();
    b.PushName("head");
    for (const auto& [prefix, maker] : {std::pair("dnn/", dnn), std::pair("linear/", linear)}) {
      std::vector<train::Variable> own;
      for (const train::Variable& variable : program.TrainableVariables()) {
        if (absl::StartsWith(variable.name, prefix)) own.push_back(variable);
      }
      const std::unique_ptr<train::Optimizer> optimizer = maker();
      WEFT_ASSIGN_OR_RETURN(const auto gradients, optimizer->ComputeGradients(program, loss, own));
      WEFT_ASSIGN_OR_RETURN(Node * step, optimizer->ApplyGradients(program, gradients));
      steps.push_back(step);
    }
    b.PopName();
    const train::Variable count = program.GlobalStep();
    const std::vector<Node*> outer = b.control_inputs();
    const std::string device = b.device();
    b.set_control_inputs(steps);
    if (!count.device.empty()) b.set_device(count.device);
    Node* all = b.AddNode("AssignAddVariableOp", {count.handle, b.Scalar<int64_t>(1)},
                          {{"dtype", DType::kInt64}}, "train");
    b.set_device(device);
    b.set_control_inputs(outer);
    WEFT_RETURN_IF_ERROR(b.status());
    return all;
  };
}

ModelFn DnnModel(const DnnOptions& dnn, std::shared_ptr<const Head> head) {
  return [dnn, head = std::move(head)](const ModelCall& call) {
    const auto updates = std::make_shared<std::vector<Node*>>();
    const Endpoint logits = DnnLogitsWith(call, dnn, head->logits_dimension(), updates.get());
    return head->Spec(
        call, logits,
        WithUpdates(MinimizeModel(DnnOptimizer(dnn, kDnnRate), "dnn", "t_0/"), updates));
  };
}

ModelFn LinearModelFn(const LinearOptions& linear, std::shared_ptr<const Head> head) {
  return [linear, head = std::move(head)](const ModelCall& call) {
    const Endpoint logits = LinearLogits(call, linear, head->logits_dimension());
    return head->Spec(call, logits,
                      MinimizeModel(LinearOptimizer(linear, kLinearRate), "linear", "part_0/"));
  };
}

ModelFn CombinedModel(const LinearOptions& linear, const DnnOptions& dnn,
                      std::shared_ptr<const Head> head) {
  return [linear, dnn, head = std::move(head)](const ModelCall& call) -> StatusOr<EstimatorSpec> {
    const auto updates = std::make_shared<std::vector<Node*>>();
    const Endpoint deep = DnnLogitsWith(call, dnn, head->logits_dimension(), updates.get());
    const Endpoint wide = LinearLogits(call, linear, head->logits_dimension());
    WEFT_RETURN_IF_ERROR(call.b().status());
    const double columns = std::max<double>(1, static_cast<double>(linear.feature_columns.size()));
    const double rate = std::min(kLinearRateBesideDnn, 1 / std::sqrt(columns));
    const TrainOpFn train =
        MinimizeBoth(LinearOptimizer(linear, rate), DnnOptimizer(dnn, kDnnRateBesideLinear));
    return head->Spec(call, call.b().Op("AddV2", {deep, wide}), WithUpdates(train, updates));
  };
}

std::shared_ptr<const Head> HeadOf(const ClassifierOptions& options) {
  return ClassHead(options.n_classes, options.head);
}
std::shared_ptr<const Head> HeadOf(const RegressorOptions& options) {
  return RegressionHead(options.label_dimension, options.head);
}

template <typename Options>
Estimator Made(ModelFn model_fn, const Options& options) {
  return Estimator(std::move(model_fn), options.config, options.warm_start);
}

}  // namespace

Endpoint DnnLogits(const ModelCall& call, const DnnOptions& options, int64_t units) {
  if (options.batch_norm && call.mode == Mode::kTrain) {
    call.b().Fail(
        InvalidArgument("DnnLogits has no batch_norm, which DNNClassifier and the other "
                        "premade estimators have"));
    return {};
  }
  std::vector<Node*> none;
  return DnnLogitsWith(call, options, units, &none);
}

Endpoint LinearLogits(const ModelCall& call, const LinearOptions& options, int64_t units) {
  GraphBuilder& b = call.b();
  b.PushName("linear");
  b.PushName("linear_model");
  ColumnCall columns = call.Columns();
  const Endpoint logits = LinearModel(columns, options.feature_columns,
                                      {.units = units, .sparse_combiner = options.sparse_combiner});
  b.PopName();
  b.PopName();
  return logits;
}

Estimator DNNClassifier(const DnnOptions& dnn, const ClassifierOptions& options) {
  return Made(DnnModel(dnn, HeadOf(options)), options);
}
Estimator DNNRegressor(const DnnOptions& dnn, const RegressorOptions& options) {
  return Made(DnnModel(dnn, HeadOf(options)), options);
}
Estimator LinearClassifier(const LinearOptions& linear, const ClassifierOptions& options) {
  return Made(LinearModelFn(linear, HeadOf(options)), options);
}
Estimator LinearRegressor(const LinearOptions& linear, const RegressorOptions& options) {
  return Made(LinearModelFn(linear, HeadOf(options)), options);
}
Estimator DNNLinearCombinedClassifier(const LinearOptions& linear, const DnnOptions& dnn,
                                      const ClassifierOptions& options) {
  return Made(CombinedModel(linear, dnn, HeadOf(options)), options);
}
Estimator DNNLinearCombinedRegressor(const LinearOptions& linear, const DnnOptions& dnn,
                                     const RegressorOptions& options) {
  return Made(CombinedModel(linear, dnn, HeadOf(options)), options);
}

}  // namespace weft::estimator
