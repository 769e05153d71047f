// SPDX-License-Identifier: Apache-2.0
// Training with evaluations on the way: one program alone, or each task's part of a job.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/estimator/model_fn/estimator.h"

namespace weft::estimator {

// Exports a model after an evaluation, to model_dir/export/<name>.
class Exporter {
 public:
  virtual ~Exporter() = default;
  // `is_final`: training is over. Nothing is exported where the path comes back empty.
  virtual StatusOr<std::string> Export(Estimator& estimator, const std::string& checkpoint,
                                       const EvalResult& result, bool is_final) = 0;
};
// After each evaluation; the newest `keep` stay.
std::shared_ptr<Exporter> LatestExporter(const std::string& name, ServingInputFn serving,
                                         int keep = 5);
// After the last evaluation.
std::shared_ptr<Exporter> FinalExporter(const std::string& name, ServingInputFn serving);
// After each evaluation whose `metric` is less than in all that this process has seen.
std::shared_ptr<Exporter> BestExporter(const std::string& name, ServingInputFn serving,
                                       const std::string& metric = "loss", int keep = 5);

struct TrainSpec {
  InputFn input;
  int64_t max_steps = 0;                 // 0: as long as there is input
  std::vector<train::Hook*> hooks = {};  // borrowed
};

struct EvalSpec {
  InputFn input;
  int64_t steps = 100;  // 0: as long as there is input
  std::string name = {};
  std::vector<std::shared_ptr<Exporter>> exporters = {};
  absl::Duration start_delay = absl::Seconds(120);  // of a job's evaluator
  absl::Duration throttle = absl::Seconds(600);     // between evaluations, at least
  // A job's evaluator gives up, DeadlineExceeded, when no new checkpoint comes for so long.
  absl::Duration max_wait = absl::Hours(2);
};

// Without TF_CONFIG trains, evaluates new checkpoints on the way and the last one, and gives the
// last evaluation. As a task of a job does its part: chief, master and workers train, a parameter
// server serves until it is told to end, an evaluator evaluates each new checkpoint until one has
// max_steps, or, where SIGTERM ends it, the newest as its last; the result is empty but for the
// evaluator. Call it from main, before there are threads.
StatusOr<EvalResult> TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec,
                                      const EvalSpec& eval_spec);

}  // namespace weft::estimator
