// SPDX-License-Identifier: Apache-2.0
// A model: layers that are compiled, fitted, evaluated, asked and kept in files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/estimator/batches.h"
#include "weft/estimator/loss.h"
#include "weft/estimator/metric.h"
#include "weft/estimator/network.h"
#include "weft/estimator/optimizer.h"
#include "weft/tensor/tensor.h"
#include "weft/train/monitored_session.h"

namespace weft::estimator {

class Callback;

// Where a model runs. Fit and the rest are the same everywhere.
struct ModelOptions {
  std::string name = {};
  int64_t seed = 0;         // of first values, dropout and shuffling; 0: other ones at each start
  std::string target = {};  // "": this process; "grpc://host:port": at that task's master
  // Of a cluster: where the steps run, and over how many parameter servers weights are spread, the
  // least loaded first (0: they lie where the steps run).
  std::string device = {};
  int num_ps = 0;
  // Embeddings of at least so many bytes are spread by rows over all parameter servers, and only
  // the rows of a batch travel. First values are drawn for each part.
  int64_t split_from = 1 << 20;
  // The chief gives weights their first values; other workers of one cluster wait for that.
  bool is_chief = true;
};

// What a model is trained for; one loss for all outputs, or one each.
struct CompileOptions {
  std::shared_ptr<Optimizer> optimizer = nullptr;  // null: RmsProp(), as in Keras
  std::vector<Loss> loss = {};
  std::vector<double> loss_weights = {};  // empty: all 1
  // By name, of the first output; and others, of any.
  std::vector<std::string> metrics = {};
  std::vector<std::pair<int, std::shared_ptr<Metric>>> output_metrics = {};
};

// Numbers under Keras's names: "loss", "accuracy", "val_loss".
using Logs = std::vector<std::pair<std::string, double>>;
// NaN if there is none of the name.
double LogOf(const Logs& logs, const std::string& name);

struct FitOptions {
  int64_t batch_size = 32;
  int epochs = 1;
  int initial_epoch = 0;
  bool shuffle = true;
  int64_t steps_per_epoch = 0;  // 0: all there is
  double validation_split = 0;  // the last part of the examples, which is not trained on
  const Examples* validation_data = nullptr;
  std::map<int64_t, double> class_weight = {};  // by class; of targets that are classes
  std::vector<std::shared_ptr<Callback>> callbacks = {};
};

struct History {
  std::vector<int> epochs;
  std::map<std::string, std::vector<double>> values;  // one an epoch
};

struct NamedWeight {
  std::string name;
  Tensor value;
};

// Not thread-safe. Errors name the layer.
class Model {
 public:
  static StatusOr<std::unique_ptr<Model>> Make(const std::vector<Symbol>& inputs,
                                               const std::vector<Symbol>& outputs,
                                               const ModelOptions& options = {});
  // A chain: each layer takes what the one before gives.
  static StatusOr<std::unique_ptr<Model>> Sequential(const Symbol& input,
                                                     const std::vector<LayerRef>& layers,
                                                     const ModelOptions& options = {});
  static StatusOr<std::unique_ptr<Model>> Of(std::shared_ptr<Network> network,
                                             const ModelOptions& options = {});
  ~Model();

  // Weights keep their values when a model is compiled again; the optimizer starts anew.
  Status Compile(const CompileOptions& options);
  // Trains; the numbers of each epoch. FailedPrecondition before Compile.
  StatusOr<History> Fit(const Examples& examples, const FitOptions& options = {});
  StatusOr<History> Fit(BatchSource& source, const FitOptions& options = {});
  // The loss and the metrics over all of them.
  StatusOr<Logs> Evaluate(const Examples& examples, int64_t batch_size = 32);
  StatusOr<Logs> Evaluate(BatchSource& source);
  // The outputs for all of `x`, one tensor of each input.
  StatusOr<std::vector<Tensor>> Predict(const std::vector<Tensor>& x, int64_t batch_size = 32);
  // One training step, or one of evaluation, on one batch.
  StatusOr<Logs> TrainOnBatch(const Batch& batch);

  // Layers, shapes and counts of parameters, as Keras's table.
  std::string Summary() const;
  const std::vector<Weight>& weights() const { return parts_.weights; }
  Network& network() { return *network_; }
  const ModelOptions& options() const { return options_; }
  StatusOr<std::vector<NamedWeight>> GetWeights();
  // By name; InvalidArgument names a weight of another shape, NotFound one that there is not.
  Status SetWeights(const std::vector<NamedWeight>& values);
  // Stateful layers begin anew with the next batch.
  Status ResetStates();
  StatusOr<double> LearningRate();
  // FailedPrecondition where the optimizer follows a schedule.
  Status SetLearningRate(double rate);
  // For callbacks: ends Fit after this epoch.
  void StopTraining() { stop_training_ = true; }
  // The session, made if need be; for what is not above.
  StatusOr<train::MonitoredSession*> Session();
  train::Program& program() { return *program_; }
  // Ends of the graph: placeholders, and predictions.
  const std::vector<Endpoint>& inputs() const { return inputs_; }
  const std::vector<Endpoint>& predictions() const { return predictions_; }

 private:
  // What one pass over the layers ends in.
  struct Pass {
    Endpoint loss;
    std::vector<Endpoint> output_losses;      // of more than one output
    std::vector<std::vector<Endpoint>> sums;  // one list a metric
    std::vector<Endpoint> Fetches() const;
  };
  class Totals;

  Model(std::shared_ptr<Network> network, const ModelOptions& options)
      : options_(options), network_(std::move(network)) {}
  Status Build();
  StatusOr<std::vector<Value>> CallLayers(bool training);
  Status MakeTargets(const std::vector<Value>& outputs);
  Status MakeMetrics(const std::vector<Value>& outputs);
  Endpoint WeightsUnderMask(const Value& output);
  StatusOr<Pass> MakePass(const std::vector<Value>& outputs, bool training);
  Status MakeAssignments();
  StatusOr<std::vector<session::Feed>> Feeds(const Batch& batch, bool with_targets) const;
  Status RunEpoch(BatchSource& source, const FitOptions& options, Totals* totals);
  Status RunBatches(BatchSource& source, Totals* totals);
  Status RunCompiled() const;

  const ModelOptions options_;
  const std::shared_ptr<Network> network_;
  std::unique_ptr<CompileOptions> compiled_;  // null before Compile
  std::unique_ptr<train::Program> program_;
  ModelParts parts_;
  std::vector<Endpoint> inputs_, predictions_, targets_;
  std::vector<PartialShape> target_shapes_;
  Endpoint sample_weights_;
  std::vector<std::pair<int, std::shared_ptr<Metric>>> metrics_;  // of which output
  std::vector<std::string> loss_names_;
  Pass train_, test_;
  Optimizer::Nodes optimizer_;
  std::vector<Endpoint> fresh_weights_;  // fed
  std::vector<Node*> assignments_;
  std::vector<Node*> keep_states_, reset_states_;  // of stateful layers
  std::unique_ptr<train::MonitoredSession> session_;
  std::vector<NamedWeight> kept_;  // of the graph before this one
  bool stop_training_ = false;
};

}  // namespace weft::estimator
