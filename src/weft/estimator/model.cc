// SPDX-License-Identifier: Apache-2.0
// A model's graph: the layers' passes, losses, metrics, the training step.
#include "weft/estimator/model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/client/session.h"
#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

std::vector<Endpoint> Model::Pass::Fetches() const {
  std::vector<Endpoint> fetches = {loss};
  fetches.insert(fetches.end(), output_losses.begin(), output_losses.end());
  for (const auto& of_metric : sums) {
    fetches.insert(fetches.end(), of_metric.begin(), of_metric.end());
  }
  return fetches;
}

Model::~Model() = default;

StatusOr<std::unique_ptr<Model>> Model::Of(std::shared_ptr<Network> network,
                                           const ModelOptions& options) {
  std::unique_ptr<Model> model(new Model(std::move(network), options));
  WEFT_RETURN_IF_ERROR(model->Build());
  return model;
}

StatusOr<std::unique_ptr<Model>> Model::Make(const std::vector<Symbol>& inputs,
                                             const std::vector<Symbol>& outputs,
                                             const ModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Network> network,
                        Network::Make(inputs, outputs, options.name));
  return Of(std::move(network), options);
}

StatusOr<std::unique_ptr<Model>> Model::Sequential(const Symbol& input,
                                                   const std::vector<LayerRef>& layers,
                                                   const ModelOptions& options) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Network> network,
                        Network::MakeSequential(input, layers, options.name));
  return Of(std::move(network), options);
}

Status Model::Compile(const CompileOptions& options) {
  const size_t outputs = network_->outputs().size();
  if (options.loss.size() != 1 && options.loss.size() != outputs) {
    return InvalidArgument("There are ", options.loss.size(), " losses for ", outputs,
                           " outputs, expected one or one each");
  }
  if (!options.loss_weights.empty() && options.loss_weights.size() != outputs) {
    return InvalidArgument("There are ", options.loss_weights.size(), " loss_weights for ", outputs,
                           " outputs");
  }
  if (session_ != nullptr) {
    WEFT_ASSIGN_OR_RETURN(kept_, GetWeights());
  }
  compiled_ = std::make_unique<CompileOptions>(options);
  if (compiled_->optimizer == nullptr) compiled_->optimizer = RmsProp();
  compiled_->loss.resize(outputs, options.loss[0]);
  compiled_->loss_weights.resize(outputs, 1);
  const Status built = Build();
  if (!built.ok()) compiled_.reset();
  return built;
}

StatusOr<std::vector<Value>> Model::CallLayers(bool training) {
  std::vector<Value> inputs;
  for (const Endpoint& input : inputs_) inputs.push_back({input, {}});
  parts_.failed_layer.clear();
  parts_.losses.clear();
  parts_.state_updates.clear();
  parts_.changed.clear();
  LayerCall call(*program_, parts_, "", training);
  call.set_trainable(network_->trainable());
  std::vector<Value> outputs = network_->Call(call, inputs);
  if (program_->status().ok() && !outputs.empty()) return outputs;
  const std::string where =
      parts_.failed_layer.empty() ? "The model" : absl::StrCat("Layer ", parts_.failed_layer);
  return Annotate(program_->status(), where);
}

Status Model::Build() {
  session_.reset();
  program_ = std::make_unique<train::Program>();
  parts_ = ModelParts();
  parts_.seed = options_.seed;
  parts_.table_parts = std::max(options_.num_ps, 1);
  parts_.split_from = options_.split_from;
  inputs_.clear();
  predictions_.clear();
  GraphBuilder& b = program_->builder();
  b.set_device(options_.device);
  if (options_.num_ps > 0) program_->set_placement(train::GreedyPlacement(options_.num_ps));
  for (const int input : network_->inputs()) {
    const auto* layer = static_cast<const InputLayer*>(network_->calls()[input].layer.get());
    inputs_.push_back(b.Op("Placeholder", {},
                           {{"dtype", layer->dtype()}, {"shape", layer->shape()}}, layer->name()));
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<Value> outputs, CallLayers(false));
  for (const Value& output : outputs) predictions_.push_back(output.tensor);
  keep_states_ = parts_.state_updates;
  if (compiled_ != nullptr) {
    WEFT_RETURN_IF_ERROR(MakeTargets(outputs));
    WEFT_RETURN_IF_ERROR(MakeMetrics(outputs));
    WEFT_ASSIGN_OR_RETURN(test_, MakePass(outputs, false));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Value> trained, CallLayers(true));
    WEFT_ASSIGN_OR_RETURN(train_, MakePass(trained, true));
    const bool trains = std::any_of(parts_.weights.begin(), parts_.weights.end(),
                                    [](const Weight& w) { return w.variable.trainable; });
    optimizer_ = Optimizer::Nodes();
    if (trains) {
      std::vector<Node*> updates = parts_.updates;
      updates.insert(updates.end(), parts_.state_updates.begin(), parts_.state_updates.end());
      WEFT_ASSIGN_OR_RETURN(optimizer_, compiled_->optimizer->Minimize(*program_, train_.loss,
                                                                       parts_.weights, updates));
    }
  }
  return MakeAssignments();
}

Status Model::MakeTargets(const std::vector<Value>& outputs) {
  GraphBuilder& b = program_->builder();
  targets_.clear();
  target_shapes_.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    PartialShape shape = b.ShapeOf(outputs[i].tensor);
    const bool classes = compiled_->loss[i].TakesClasses();
    if (shape.rank() < (classes ? 2 : 1)) {
      return InvalidArgument("Output ", i, " has shape ", shape.ToString(),
                             ", for which there is no loss");
    }
    if (classes) {
      PartialShape fewer{shape.dim(0)};
      for (int axis = 1; axis + 1 < shape.rank(); ++axis) fewer.AddDim(shape.dim(axis));
      shape = fewer;
    }
    target_shapes_.push_back(shape);
    targets_.push_back(b.Op("Placeholder", {},
                            {{"dtype", classes ? DType::kInt64 : DType::kFloat}, {"shape", shape}},
                            absl::StrCat("target_", i)));
  }
  sample_weights_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape{-1}}},
                         "sample_weight");
  return b.status();
}

Status Model::MakeMetrics(const std::vector<Value>& outputs) {
  GraphBuilder& b = program_->builder();
  metrics_.clear();
  loss_names_ = {"loss"};
  const auto name_of = [&](size_t output) {
    return network_->calls()[network_->outputs()[output].call].layer->name();
  };
  const bool several = outputs.size() > 1;
  for (size_t i = 0; several && i < outputs.size(); ++i)
    loss_names_.push_back(name_of(i) + "_loss");
  for (const std::string& name : compiled_->metrics) {
    WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Metric> metric,
                          MakeMetric(name, compiled_->loss[0], b.ShapeOf(outputs[0].tensor)));
    if (several) metric->set_name(absl::StrCat(name_of(0), "_", metric->name()));
    metrics_.emplace_back(0, std::move(metric));
  }
  for (const auto& [output, metric] : compiled_->output_metrics) {
    if (output < 0 || output >= static_cast<int>(outputs.size()) || metric == nullptr) {
      return InvalidArgument("There is a metric of output ", output, "; the model has ",
                             outputs.size());
    }
    metrics_.emplace_back(output, metric);
  }
  return absl::OkStatus();
}

// The examples' weights where the output is, 0 elsewhere, so that what is there is averaged.
Endpoint Model::WeightsUnderMask(const Value& output) {
  GraphBuilder& b = program_->builder();
  if (!output.mask || b.ShapeOf(output.tensor).rank() < 3) return sample_weights_;
  const Endpoint there = CastTo(b, output.mask, DType::kFloat);
  const Endpoint all = CastTo(b, b.Op("Size", {there}), DType::kFloat);
  const Endpoint share = b.Op("DivNoNan", {all, Reduce(b, "Sum", there, {0, 1})});
  return b.Op("Mul", {ExpandDim(b, sample_weights_, 1), b.Op("Mul", {there, share})});
}

StatusOr<Model::Pass> Model::MakePass(const std::vector<Value>& outputs, bool training) {
  GraphBuilder& b = program_->builder();
  b.PushName(training ? "training" : "evaluation");
  Pass pass;
  Endpoint total;
  const auto add = [&](Endpoint term) { total = total ? b.Op("AddV2", {total, term}) : term; };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Endpoint each = WeightsUnderMask(outputs[i]);
    Endpoint loss = compiled_->loss[i].OfBatch(b, targets_[i], outputs[i].tensor, each);
    if (outputs.size() > 1) pass.output_losses.push_back(loss);
    if (compiled_->loss_weights[i] != 1) {
      loss = b.Op("Mul", {loss, NumberLike(b, loss, compiled_->loss_weights[i])});
    }
    add(loss);
  }
  for (const Weight& weight : parts_.weights) {
    if (weight.loss && weight.variable.trainable) add(weight.loss);
  }
  for (const Endpoint& loss : parts_.losses) add(loss);
  pass.loss = total;
  for (const auto& [output, metric] : metrics_) {
    pass.sums.push_back(metric->Sums(b, targets_[output], outputs[output].tensor, sample_weights_));
    WEFT_RETURN_IF_ERROR(Annotate(b.status(), absl::StrCat("Metric '", metric->name(), "'")));
  }
  b.PopName();
  WEFT_RETURN_IF_ERROR(Annotate(b.status(), "The model's loss"));
  return pass;
}

Status Model::MakeAssignments() {
  GraphBuilder& b = program_->builder();
  fresh_weights_.clear();
  assignments_.clear();
  b.PushName("set_weights");
  for (const Weight& weight : parts_.weights) {
    const train::Variable& v = weight.variable;
    fresh_weights_.push_back(
        b.Op("Placeholder", {}, {{"dtype", v.dtype}, {"shape", v.shape}}, "value"));
    const std::string outer = b.device();
    if (!v.device.empty()) b.set_device(v.device);
    assignments_.push_back(
        b.AddNode("AssignVariableOp", {v.handle, fresh_weights_.back()}, {{"dtype", v.dtype}}));
    b.set_device(outer);
  }
  b.PopName();
  reset_states_.clear();
  b.PushName("reset_states");
  for (const RunningState& state : parts_.states) {
    const train::Variable& v = state.variable;
    const std::string outer = b.device();
    if (!v.device.empty()) b.set_device(v.device);
    const Endpoint zeros = b.Op("Fill", {ShapeVector(b, v.shape), Number(b, v.dtype, 0)});
    reset_states_.push_back(b.AddNode("AssignVariableOp", {v.handle, zeros}, {{"dtype", v.dtype}}));
    b.set_device(outer);
  }
  b.PopName();
  return b.status();
}

Status Model::ResetStates() {
  if (reset_states_.empty()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  return session->RunPlain({}, {}, reset_states_, nullptr);
}

StatusOr<train::MonitoredSession*> Model::Session() {
  if (session_ != nullptr) return session_.get();
  train::MonitoredOptions options;
  options.make_session = [this] {
    client::SessionOptions where;
    where.target = options_.target;
    // Beside parameter servers no other worker is needed: each may come and go.
    if (options_.num_ps > 0 && !options_.device.empty())
      where.device_filters = {"/job:ps", options_.device};
    return client::NewSession(where);
  };
  options.is_chief = options_.is_chief;
  options.train = optimizer_.train;
  WEFT_ASSIGN_OR_RETURN(session_, train::MonitoredSession::Create(*program_, options));
  if (!kept_.empty()) {
    const std::vector<NamedWeight> kept = std::move(kept_);
    kept_.clear();
    WEFT_RETURN_IF_ERROR(SetWeights(kept));
  }
  return session_.get();
}

StatusOr<std::vector<NamedWeight>> Model::GetWeights() {
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  std::vector<Endpoint> fetches;
  for (const Weight& weight : parts_.weights) fetches.push_back(weight.variable.value);
  std::vector<Tensor> values;
  if (!fetches.empty()) WEFT_RETURN_IF_ERROR(session->RunPlain({}, fetches, {}, &values));
  std::vector<NamedWeight> named;
  for (size_t i = 0; i < values.size(); ++i) {
    const Weight& weight = parts_.weights[i];
    if (!weight.variable.IsPart()) {
      named.push_back({weight.name, std::move(values[i])});
      continue;
    }
    if (weight.is_first()) named.push_back({weight.name, Tensor()});
    WEFT_RETURN_IF_ERROR(AppendRows(values[i], weight.variable.part_begin,
                                    weight.whole_shape().dim(0), &named.back().value));
  }
  return named;
}

Status Model::SetWeights(const std::vector<NamedWeight>& values) {
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  std::vector<session::Feed> feeds;
  std::vector<Node*> targets;
  for (const NamedWeight& value : values) {
    const auto found = parts_.by_name.find(value.name);
    if (found == parts_.by_name.end()) {
      return NotFound("The model has no weight '", value.name, "'");
    }
    const Weight& first = parts_.weights[found->second];
    if (value.value.dtype() != first.variable.dtype || value.value.shape() != first.whole_shape()) {
      return InvalidArgument("Weight '", value.name, "' is ", DTypeName(first.variable.dtype), " ",
                             first.whole_shape().ToString(), ", the value ",
                             DTypeName(value.value.dtype()), " ", value.value.shape().ToString());
    }
    for (size_t at = found->second; at < parts_.weights.size(); ++at) {
      const Weight& part = parts_.weights[at];
      if (part.name != value.name) break;
      Tensor rows = value.value;
      if (part.variable.IsPart()) {
        const int64_t begin = part.variable.part_begin;
        rows = value.value.SliceRows(begin, begin + part.variable.shape.dim(0));
      }
      feeds.emplace_back(fresh_weights_[at].node->name() + ":0", std::move(rows));
      targets.push_back(assignments_[at]);
    }
  }
  if (targets.empty()) return absl::OkStatus();
  return session->RunPlain(feeds, {}, targets, nullptr);
}

StatusOr<double> Model::LearningRate() {
  WEFT_RETURN_IF_ERROR(RunCompiled());
  if (!optimizer_.rate) return FailedPrecondition("The model has no weights to train");
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  std::vector<Tensor> rate;
  WEFT_RETURN_IF_ERROR(session->RunPlain({}, {optimizer_.rate}, {}, &rate));
  return static_cast<double>(rate[0].scalar<float>());
}

Status Model::SetLearningRate(double rate) {
  WEFT_RETURN_IF_ERROR(RunCompiled());
  if (optimizer_.set_rate == nullptr) {
    return FailedPrecondition("The optimizer's learning rate follows a schedule");
  }
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  return session->RunPlain(
      {{optimizer_.new_rate.node->name() + ":0", Tensor::Scalar<float>(static_cast<float>(rate))}},
      {}, {optimizer_.set_rate}, nullptr);
}

Status Model::RunCompiled() const {
  if (compiled_ != nullptr) return absl::OkStatus();
  return FailedPrecondition("The model must be compiled first");
}

}  // namespace weft::estimator
