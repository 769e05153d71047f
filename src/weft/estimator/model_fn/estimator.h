// SPDX-License-Identifier: Apache-2.0
// TensorFlow's Estimator: a model function that is trained, evaluated, asked and exported, each in
// a graph of its own that begins with the newest checkpoint.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/estimator/model_fn/estimator_spec.h"
#include "weft/estimator/model_fn/warm_start.h"
#include "weft/tensor/tensor.h"

namespace weft::estimator {

struct TrainOptions {
  // So many steps more, or until the global step is this; 0: as long as there is input. Of a job
  // these are steps of all workers together.
  int64_t steps = 0, max_steps = 0;
  std::vector<train::Hook*> hooks = {};  // borrowed
};

struct EvaluateOptions {
  int64_t steps = 0;            // 0: as long as there is input
  std::string name = {};        // of several evaluations: events go to model_dir/eval_<name>
  std::string checkpoint = {};  // empty: the newest of model_dir
};

struct PredictOptions {
  std::string checkpoint = {};         // empty: the newest of model_dir
  std::vector<std::string> keys = {};  // which predictions; empty: all
};

// Means over the batches, among them "loss" and "global_step".
using EvalResult = std::map<std::string, double>;
using Predictions = std::map<std::string, Tensor>;

// What an exported model is called with: features, and the tensors that callers give, by name.
struct ServingInput {
  Features features;
  std::map<std::string, Endpoint> receivers;
};
using ServingInputFn = std::function<StatusOr<ServingInput>(train::Program&)>;
// Callers give serialized tensorflow.Example records as "examples".
ServingInputFn ParsingServingInput(const ExampleSpec& spec);
// Callers give the features themselves, [batch, ...].
ServingInputFn RawServingInput(const std::map<std::string, std::pair<DType, PartialShape>>& inputs);

// Not thread-safe. Errors of the input and model functions are handed on.
class Estimator {
 public:
  explicit Estimator(ModelFn model_fn, RunConfig config = {}, WarmStart warm_start = {})
      : model_fn_(std::move(model_fn)),
        config_(std::move(config)),
        warm_start_(std::move(warm_start)) {}

  const RunConfig& config() const { return config_; }
  const std::string& model_dir() const { return config_.model_dir; }

  // Trains in this process and gives the global step that it reached. FailedPrecondition where the
  // loss becomes NaN.
  StatusOr<int64_t> Train(const InputFn& input, const TrainOptions& options = {});
  // The part of `task` in a job's training (RunTask gives it); TrainAndEvaluate calls it.
  StatusOr<int64_t> TrainAs(const train::Task& task, const InputFn& input,
                            const TrainOptions& options);
  // NotFound where there is no checkpoint.
  StatusOr<EvalResult> Evaluate(const InputFn& input, const EvaluateOptions& options = {});
  // Calls `take` with the predictions of one batch after the other.
  Status Predict(const InputFn& input, const std::function<Status(const Predictions&)>& take,
                 const PredictOptions& options = {});
  // All of them.
  StatusOr<std::vector<Predictions>> Predict(const InputFn& input,
                                             const PredictOptions& options = {});
  // Writes a SavedModel to `base`/<seconds since 1970> and gives the folder.
  StatusOr<std::string> ExportSavedModel(const std::string& base, const ServingInputFn& serving,
                                         const std::string& checkpoint = "");

  StatusOr<std::string> LatestCheckpoint() const;
  // Of the newest checkpoint.
  StatusOr<std::vector<std::string>> VariableNames() const;
  StatusOr<Tensor> VariableValue(const std::string& name) const;

 private:
  // Calls the input function, then the model function.
  StatusOr<EstimatorSpec> Build(train::Program& program, const train::Task& task, Mode mode,
                                const InputFn& input, Assets* assets);
  StatusOr<std::string> CheckpointFor(const std::string& asked) const;

  const ModelFn model_fn_;
  const RunConfig config_;
  const WarmStart warm_start_;
};

}  // namespace weft::estimator
