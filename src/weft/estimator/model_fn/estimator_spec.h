// SPDX-License-Identifier: Apache-2.0
// A model function: what it is called with and what it says of the model.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/estimator/columns/column_call.h"
#include "weft/estimator/columns/feature.h"
#include "weft/estimator/model_fn/eval_metric.h"
#include "weft/train/dataset.h"
#include "weft/train/hooks.h"
#include "weft/train/meta_graph.h"
#include "weft/train/monitored_session.h"
#include "weft/train/program.h"
#include "weft/train/task.h"

namespace weft::estimator {

enum class Mode { kTrain, kEvaluate, kPredict };

// Where an estimator keeps what it learns, and how often; the defaults are TensorFlow's.
struct RunConfig {
  std::string model_dir;
  int64_t seed = 0;  // of first values and dropout; 0: others at each start
  train::Every save_checkpoints = {.time = absl::Minutes(10)};
  train::Every save_summaries = train::Every::Steps(100);
  int64_t log_step_count_steps = 100;  // 0: neither speed nor loss are told
};

// A batch as an input function gives it. No labels where there are none to learn from.
struct FeatureBatch {
  Features features;
  Endpoint labels;
};

// What an input function is called with.
struct InputContext {
  train::Program& program;
  Mode mode = Mode::kTrain;
  int num_workers = 1;  // that read side by side
  int worker = 0;       // this one among them
  GraphBuilder& b() const { return program.builder(); }
};

// Adds the nodes that give each step a batch; OutOfRange ends training, evaluation or prediction.
using InputFn = std::function<StatusOr<FeatureBatch>(const InputContext&)>;

// The next elements of `dataset`, whose components have these names; that of `label` are labels.
//   return BatchesOf(input, clicks.Batch(64), {"user", "item", "clicked"}, "clicked");
StatusOr<FeatureBatch> BatchesOf(const InputContext& input, const train::Dataset& dataset,
                                 const std::vector<std::string>& names,
                                 const std::string& label = "");

// What a model function is called with.
struct ModelCall {
  train::Program& program;
  const Features& features;
  Endpoint labels;  // empty when predicting
  Mode mode = Mode::kTrain;
  const RunConfig& config;
  const train::Task& task;
  Assets* assets = nullptr;
  GraphBuilder& b() const { return program.builder(); }
  // For feature columns of the features.
  ColumnCall Columns() const { return ColumnCall(program, features, assets, task.num_ps); }
};

struct EstimatorSpec {
  std::map<std::string, Endpoint> predictions;  // when predicting: one row an example
  Endpoint loss;                                // a scalar, when training and evaluating
  Node* train_op = nullptr;  // when training; adds one to the program's global step
  std::map<std::string, EvalMetric> eval_metrics = {};  // when evaluating
  // When predicting: what an export offers, by the signatures' names. Of "classify" and "regress"
  // ones the inputs are those of TensorFlow Serving, of others all that the export takes.
  std::map<std::string, train::Signature> export_outputs = {};
  train::Scaffold scaffold = {};
  std::vector<std::shared_ptr<train::Hook>> training_hooks = {};
};

using ModelFn = std::function<StatusOr<EstimatorSpec>(const ModelCall&)>;

}  // namespace weft::estimator
