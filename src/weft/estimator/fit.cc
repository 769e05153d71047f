// SPDX-License-Identifier: Apache-2.0
// A model's steps: training, evaluation, prediction.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/estimator/callback.h"
#include "weft/estimator/model.h"

namespace weft::estimator {
namespace {

// Whole numbers and doubles as the type a placeholder wants.
template <typename From, typename To>
Tensor Converted(const Tensor& from, Tensor to) {
  std::transform(from.data<From>(), from.data<From>() + from.num_elements(), to.data<To>(),
                 [](From value) { return static_cast<To>(value); });
  return to;
}

template <typename To>
StatusOr<Tensor> ConvertedTo(const Tensor& from, Tensor to) {
  switch (from.dtype()) {
    case DType::kFloat:
      return Converted<float, To>(from, std::move(to));
    case DType::kDouble:
      return Converted<double, To>(from, std::move(to));
    case DType::kInt32:
      return Converted<int32_t, To>(from, std::move(to));
    case DType::kInt64:
      return Converted<int64_t, To>(from, std::move(to));
    case DType::kUint8:
      return Converted<uint8_t, To>(from, std::move(to));
    case DType::kBool:
      return Converted<bool, To>(from, std::move(to));
    default:
      return InvalidArgument("values of dtype ", DTypeName(from.dtype()));
  }
}

StatusOr<Tensor> AsType(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  WEFT_ASSIGN_OR_RETURN(Tensor to, Tensor::Allocate(dtype, tensor.shape()));
  if (dtype == DType::kFloat) return ConvertedTo<float>(tensor, std::move(to));
  if (dtype == DType::kInt32) return ConvertedTo<int32_t>(tensor, std::move(to));
  if (dtype == DType::kInt64) return ConvertedTo<int64_t>(tensor, std::move(to));
  return InvalidArgument("expected ", DTypeName(dtype), ", got ", DTypeName(tensor.dtype()));
}

// The rank of targets is the predictions': [n] stands for [n, 1] and the other way round.
StatusOr<Tensor> WithRankOf(const Tensor& target, const PartialShape& wanted) {
  if (target.rank() == wanted.rank()) return target;
  Shape shape = target.shape();
  const int last = target.rank() - 1;
  if (target.rank() == wanted.rank() - 1) {
    shape.AddDim(1);
  } else if (target.rank() == wanted.rank() + 1 && target.dim(last) == 1) {
    shape.RemoveDim(last);
  } else {
    return InvalidArgument("targets have shape ", target.shape().ToString(), ", expected ",
                           wanted.ToString());
  }
  return target.Reshaped(shape);
}

// Each example's weight by its class: the first output's target, a number or one-hot.
Status ApplyClassWeight(const std::map<int64_t, double>& weights, Batch* batch) {
  if (batch->y.empty()) return InvalidArgument("class_weight needs targets");
  const Tensor& y = batch->y[0];
  const int64_t count = y.rank() == 0 ? 0 : y.dim(0);
  const int64_t each = count == 0 ? 0 : y.num_elements() / count;
  WEFT_ASSIGN_OR_RETURN(const Tensor targets, AsType(y, DType::kFloat));
  WEFT_ASSIGN_OR_RETURN(Tensor made, Tensor::Allocate(DType::kFloat, Shape{count}));
  for (int64_t i = 0; i < count; ++i) {
    const float* row = targets.data<float>() + i * each;
    const int64_t of = each == 1 ? std::llround(row[0]) : std::max_element(row, row + each) - row;
    const auto found = weights.find(of);
    float weight = found == weights.end() ? 1.0f : static_cast<float>(found->second);
    if (batch->sample_weight.IsInitialized()) {
      WEFT_ASSIGN_OR_RETURN(const Tensor given, AsType(batch->sample_weight, DType::kFloat));
      if (given.num_elements() == count) weight *= given.data<float>()[i];
    }
    made.data<float>()[i] = weight;
  }
  batch->sample_weight = std::move(made);
  return absl::OkStatus();
}

std::string FeedName(const Endpoint& placeholder) { return placeholder.node->name() + ":0"; }

}  // namespace

double LogOf(const Logs& logs, const std::string& name) {
  for (const auto& [known, value] : logs) {
    if (known == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// What an epoch's batches add up to.
class Model::Totals {
 public:
  explicit Totals(const Model& model) : model_(model) {}

  Status Add(const Pass& pass, const std::vector<Tensor>& fetched, double examples) {
    losses_.resize(model_.loss_names_.size(), 0);
    sums_.resize(pass.sums.size());
    for (size_t i = 0; i < losses_.size(); ++i) {
      losses_[i] += examples * static_cast<double>(fetched[i].scalar<float>());
    }
    last_loss_ = static_cast<double>(fetched[0].scalar<float>());
    size_t at = losses_.size();
    for (size_t m = 0; m < pass.sums.size(); ++m) {
      sums_[m].resize(pass.sums[m].size());
      for (std::vector<double>& sum : sums_[m]) {
        const Tensor& batch = fetched[at++];
        const float* values = batch.data<float>();
        sum.resize(static_cast<size_t>(batch.num_elements()), 0);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(values[i]);
      }
    }
    examples_ += examples;
    ++batches_;
    return absl::OkStatus();
  }

  Logs Numbers(const std::string& prefix = "") const {
    Logs logs;
    for (size_t i = 0; i < losses_.size(); ++i) {
      logs.emplace_back(prefix + model_.loss_names_[i], losses_[i] / std::max(1.0, examples_));
    }
    for (size_t m = 0; m < sums_.size(); ++m) {
      const Metric& metric = *model_.metrics_[m].second;
      logs.emplace_back(prefix + metric.name(), metric.Result(sums_[m]));
    }
    return logs;
  }
  double last_loss() const { return last_loss_; }
  int64_t batches() const { return batches_; }

 private:
  const Model& model_;
  std::vector<double> losses_;
  std::vector<std::vector<std::vector<double>>> sums_;
  double examples_ = 0, last_loss_ = 0;
  int64_t batches_ = 0;
};

StatusOr<std::vector<session::Feed>> Model::Feeds(const Batch& batch, bool with_targets) const {
  if (batch.x.size() != inputs_.size()) {
    return InvalidArgument("There are ", batch.x.size(), " tensors for ", inputs_.size(),
                           " inputs");
  }
  std::vector<session::Feed> feeds;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& name = inputs_[i].node->name();
    StatusOr<Tensor> x = AsType(batch.x[i], inputs_[i].node->output_type(0).dtype);
    WEFT_RETURN_IF_ERROR(Annotate(x.status(), absl::StrCat("Input '", name, "'")));
    WEFT_ASSIGN_OR_RETURN(const PartialShape wanted, inputs_[i].node->Attr<PartialShape>("shape"));
    if (!wanted.IsCompatibleWith(PartialShape(x->shape()))) {
      return InvalidArgument("Input '", name, "' has shape ", x->shape().ToString(), ", expected ",
                             wanted.ToString());
    }
    feeds.emplace_back(FeedName(inputs_[i]), *std::move(x));
  }
  if (!with_targets) return feeds;
  if (batch.y.size() != targets_.size()) {
    return InvalidArgument("There are ", batch.y.size(), " tensors for ", targets_.size(),
                           " outputs");
  }
  for (size_t i = 0; i < targets_.size(); ++i) {
    StatusOr<Tensor> y = AsType(batch.y[i], targets_[i].node->output_type(0).dtype);
    if (y.ok()) y = WithRankOf(*y, target_shapes_[i]);
    if (y.ok() && !target_shapes_[i].IsCompatibleWith(PartialShape(y->shape()))) {
      y = InvalidArgument("targets have shape ", y->shape().ToString(), ", expected ",
                          target_shapes_[i].ToString());
    }
    WEFT_RETURN_IF_ERROR(Annotate(y.status(), absl::StrCat("Output ", i)));
    feeds.emplace_back(FeedName(targets_[i]), *std::move(y));
  }
  Tensor weights = batch.sample_weight;
  const int64_t count = batch.x[0].rank() == 0 ? 0 : batch.x[0].dim(0);
  if (!weights.IsInitialized()) {
    WEFT_ASSIGN_OR_RETURN(weights, Tensor::Allocate(DType::kFloat, Shape{count}));
    std::fill_n(weights.data<float>(), count, 1.0f);
  }
  WEFT_ASSIGN_OR_RETURN(weights, AsType(weights, DType::kFloat));
  if (weights.rank() != 1 || weights.dim(0) != count) {
    return InvalidArgument("sample_weight has shape ", weights.shape().ToString(), ", expected [",
                           count, "]");
  }
  feeds.emplace_back(FeedName(sample_weights_), std::move(weights));
  return feeds;
}

Status Model::RunBatches(BatchSource& source, Totals* totals) {
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  const std::vector<Endpoint> fetches = test_.Fetches();
  WEFT_RETURN_IF_ERROR(source.BeginEpoch());
  while (true) {
    Batch batch;
    WEFT_ASSIGN_OR_RETURN(const bool more, source.Next(&batch));
    if (!more) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const std::vector<session::Feed> feeds, Feeds(batch, true));
    std::vector<Tensor> fetched;
    WEFT_RETURN_IF_ERROR(session->RunPlain(feeds, fetches, keep_states_, &fetched));
    WEFT_RETURN_IF_ERROR(totals->Add(test_, fetched, static_cast<double>(batch.x[0].dim(0))));
  }
}

Status Model::RunEpoch(BatchSource& source, const FitOptions& options, Totals* totals) {
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  if (optimizer_.train == nullptr) return FailedPrecondition("The model has no weights to train");
  const std::vector<Endpoint> fetches = train_.Fetches();
  WEFT_RETURN_IF_ERROR(source.BeginEpoch());
  for (int64_t step = 0; options.steps_per_epoch == 0 || step < options.steps_per_epoch; ++step) {
    Batch batch;
    WEFT_ASSIGN_OR_RETURN(const bool more, source.Next(&batch));
    if (!more) break;
    if (!options.class_weight.empty()) {
      WEFT_RETURN_IF_ERROR(ApplyClassWeight(options.class_weight, &batch));
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<session::Feed> feeds, Feeds(batch, true));
    std::vector<Tensor> fetched;
    WEFT_RETURN_IF_ERROR(session->Run(feeds, fetches, {optimizer_.train}, &fetched));
    WEFT_RETURN_IF_ERROR(totals->Add(train_, fetched, static_cast<double>(batch.x[0].dim(0))));
    if (options.callbacks.empty()) continue;
    const Logs now = totals->Numbers();
    for (const CallbackPtr& callback : options.callbacks) {
      WEFT_RETURN_IF_ERROR(callback->OnBatchEnd(*this, step, totals->last_loss(), now));
    }
    if (stop_training_) break;
  }
  if (totals->batches() == 0) return InvalidArgument("There are no batches to train on");
  return absl::OkStatus();
}

StatusOr<Logs> Model::TrainOnBatch(const Batch& batch) {
  WEFT_RETURN_IF_ERROR(RunCompiled());
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  if (optimizer_.train == nullptr) return FailedPrecondition("The model has no weights to train");
  WEFT_ASSIGN_OR_RETURN(const std::vector<session::Feed> feeds, Feeds(batch, true));
  std::vector<Tensor> fetched;
  WEFT_RETURN_IF_ERROR(session->Run(feeds, train_.Fetches(), {optimizer_.train}, &fetched));
  Totals totals(*this);
  WEFT_RETURN_IF_ERROR(totals.Add(train_, fetched, static_cast<double>(batch.x[0].dim(0))));
  return totals.Numbers();
}

StatusOr<History> Model::Fit(BatchSource& source, const FitOptions& options) {
  WEFT_RETURN_IF_ERROR(RunCompiled());
  stop_training_ = false;
  History history;
  std::unique_ptr<ExampleBatches> validation;
  if (options.validation_data != nullptr) {
    WEFT_ASSIGN_OR_RETURN(
        ExampleBatches batches,
        ExampleBatches::Make(*options.validation_data, {.batch_size = options.batch_size}));
    validation = std::make_unique<ExampleBatches>(std::move(batches));
  }
  const auto each = [&](auto&& of) -> Status {
    for (const CallbackPtr& callback : options.callbacks) WEFT_RETURN_IF_ERROR(of(*callback));
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(each([&](Callback& c) { return c.OnTrainBegin(*this); }));
  for (int epoch = options.initial_epoch; epoch < options.epochs && !stop_training_; ++epoch) {
    WEFT_RETURN_IF_ERROR(each([&](Callback& c) { return c.OnEpochBegin(*this, epoch); }));
    Totals totals(*this);
    WEFT_RETURN_IF_ERROR(RunEpoch(source, options, &totals));
    Logs logs = totals.Numbers();
    if (validation != nullptr) {
      Totals validated(*this);
      WEFT_RETURN_IF_ERROR(RunBatches(*validation, &validated));
      for (auto& log : validated.Numbers("val_")) logs.push_back(std::move(log));
    }
    WEFT_RETURN_IF_ERROR(each([&](Callback& c) { return c.OnEpochEnd(*this, epoch, logs); }));
    history.epochs.push_back(epoch);
    for (const auto& [name, value] : logs) history.values[name].push_back(value);
  }
  if (optimizer_.use_averages != nullptr) {
    WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
    WEFT_RETURN_IF_ERROR(session->RunPlain({}, {}, {optimizer_.use_averages}, nullptr));
  }
  WEFT_RETURN_IF_ERROR(each([&](Callback& c) { return c.OnTrainEnd(*this); }));
  return history;
}

StatusOr<History> Model::Fit(const Examples& examples, const FitOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const int64_t count, CountExamples(examples));
  if (!(options.validation_split >= 0 && options.validation_split < 1)) {
    return InvalidArgument("validation_split is ", options.validation_split,
                           ", expected at least 0 and below 1");
  }
  const auto part = [&](int64_t begin, int64_t end) {
    Examples some;
    for (const Tensor& x : examples.x) some.x.push_back(x.SliceRows(begin, end));
    for (const Tensor& y : examples.y) some.y.push_back(y.SliceRows(begin, end));
    if (examples.sample_weight.IsInitialized()) {
      some.sample_weight = examples.sample_weight.SliceRows(begin, end);
    }
    return some;
  };
  FitOptions own = options;
  const auto trained =
      static_cast<int64_t>(static_cast<double>(count) * (1 - options.validation_split));
  const Examples held_back = part(trained, count);
  if (options.validation_split > 0 && options.validation_data == nullptr) {
    own.validation_data = &held_back;
  }
  WEFT_ASSIGN_OR_RETURN(
      ExampleBatches batches,
      ExampleBatches::Make(options.validation_split > 0 ? part(0, trained) : examples,
                           {options.batch_size, options.shuffle, options_.seed}));
  return Fit(batches, own);
}

StatusOr<Logs> Model::Evaluate(BatchSource& source) {
  WEFT_RETURN_IF_ERROR(RunCompiled());
  Totals totals(*this);
  WEFT_RETURN_IF_ERROR(RunBatches(source, &totals));
  if (totals.batches() == 0) return InvalidArgument("There are no batches to evaluate on");
  return totals.Numbers();
}

StatusOr<Logs> Model::Evaluate(const Examples& examples, int64_t batch_size) {
  WEFT_ASSIGN_OR_RETURN(ExampleBatches batches,
                        ExampleBatches::Make(examples, {.batch_size = batch_size}));
  return Evaluate(batches);
}

StatusOr<std::vector<Tensor>> Model::Predict(const std::vector<Tensor>& x, int64_t batch_size) {
  WEFT_ASSIGN_OR_RETURN(train::MonitoredSession * session, Session());
  WEFT_ASSIGN_OR_RETURN(ExampleBatches source,
                        ExampleBatches::Make(Examples{x}, {.batch_size = batch_size}));
  WEFT_ASSIGN_OR_RETURN(const int64_t count, CountExamples(Examples{x}));
  std::vector<Tensor> whole(predictions_.size());
  WEFT_RETURN_IF_ERROR(source.BeginEpoch());
  int64_t done = 0;
  while (done < count || count == 0) {
    Batch batch;
    WEFT_ASSIGN_OR_RETURN(const bool more, source.Next(&batch));
    if (!more) batch.x = x;  // of no examples: the outputs' shapes
    WEFT_ASSIGN_OR_RETURN(const std::vector<session::Feed> feeds, Feeds(batch, false));
    std::vector<Tensor> out;
    WEFT_RETURN_IF_ERROR(session->RunPlain(feeds, predictions_, keep_states_, &out));
    if (batch.x[0].dim(0) == count) return out;
    for (size_t i = 0; i < out.size(); ++i) {
      WEFT_RETURN_IF_ERROR(AppendRows(out[i], done, count, &whole[i]));
    }
    done += batch.x[0].dim(0);
  }
  return whole;
}

}  // namespace weft::estimator
