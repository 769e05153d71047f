// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/train_and_evaluate.h"

#include <algorithm>
#include <utility>

#include <pthread.h>
#include <signal.h>

#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/estimator/model_fn/checkpoints.h"
#include "weft/train/task.h"

namespace weft::estimator {
namespace {

// Evaluates an estimator's checkpoints, each once.
class Evaluations {
 public:
  Evaluations(Estimator& estimator, const EvalSpec& spec) : estimator_(estimator), spec_(spec) {}

  // The newest checkpoint, unless there is none or it has been evaluated.
  StatusOr<std::string> New() const {
    const StatusOr<std::string> newest = estimator_.LatestCheckpoint();
    if (!newest.ok() && newest.status().code() == absl::StatusCode::kNotFound) return std::string();
    WEFT_RETURN_IF_ERROR(newest.status());
    return *newest == last_ ? std::string() : *newest;
  }

  Status Evaluate(const std::string& checkpoint, bool is_final) {
    WEFT_ASSIGN_OR_RETURN(result_, estimator_.Evaluate(spec_.input, {.steps = spec_.steps,
                                                                     .name = spec_.name,
                                                                     .checkpoint = checkpoint}));
    last_ = checkpoint;
    return Export(is_final);
  }
  // What is exported of the newest evaluation.
  Status Export(bool is_final) {
    for (const auto& exporter : spec_.exporters) {
      WEFT_ASSIGN_OR_RETURN(const std::string folder,
                            exporter->Export(estimator_, last_, result_, is_final));
      if (!folder.empty()) WEFT_LOG(INFO) << "Exported " << last_ << " to " << folder;
    }
    return absl::OkStatus();
  }
  const EvalResult& result() const { return result_; }

 private:
  Estimator& estimator_;
  const EvalSpec& spec_;
  std::string last_;
  EvalResult result_;
};

// Evaluates on the way of a training in this process.
class EvaluateHook final : public train::Hook {
 public:
  EvaluateHook(Evaluations& evaluations, absl::Duration throttle)
      : evaluations_(evaluations), throttle_(throttle) {}

  Status AfterCreate(session::Session&, int64_t) override {
    last_ = absl::Now();
    return absl::OkStatus();
  }
  Status AfterRun(const train::StepContext& context) override {
    // The last checkpoint is evaluated when training is over.
    if (*context.stop || absl::Now() - last_ < throttle_) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, evaluations_.New());
    if (checkpoint.empty()) return absl::OkStatus();
    const Status evaluated = evaluations_.Evaluate(checkpoint, /*is_final=*/false);
    last_ = absl::Now();
    return evaluated;
  }

 private:
  Evaluations& evaluations_;
  const absl::Duration throttle_;
  absl::Time last_;
};

StatusOr<EvalResult> RunAlone(Estimator& estimator, const TrainSpec& train_spec,
                              const EvalSpec& eval_spec) {
  Evaluations evaluations(estimator, eval_spec);
  EvaluateHook hook(evaluations, eval_spec.throttle);
  TrainOptions options{.max_steps = train_spec.max_steps, .hooks = train_spec.hooks};
  options.hooks.push_back(&hook);
  WEFT_RETURN_IF_ERROR(estimator.Train(train_spec.input, options).status());
  WEFT_ASSIGN_OR_RETURN(const std::string last, evaluations.New());
  WEFT_RETURN_IF_ERROR(last.empty() ? evaluations.Export(/*is_final=*/true)
                                    : evaluations.Evaluate(last, /*is_final=*/true));
  return evaluations.result();
}

// SIGTERM, from here on held back until it is asked for: a job that has succeeded ends its
// evaluator so, which shall have the last word on the last checkpoint.
class EndSignal {
 public:
  EndSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  EndSignal(const EndSignal&) = delete;
  EndSignal& operator=(const EndSignal&) = delete;

  // True as soon as it has come, false when `time` is over.
  bool Wait(absl::Duration time) {
    if (came_) return true;
    const timespec wait = absl::ToTimespec(std::max(time, absl::ZeroDuration()));
    came_ = sigtimedwait(&signals_, nullptr, &wait) == SIGTERM;
    // Another one ends the process at once.
    if (came_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    return came_;
  }

 private:
  sigset_t signals_ = {}, before_ = {};
  bool came_ = false;
};

// Waits for checkpoints until one has the last step, or the job ends.
StatusOr<EvalResult> RunEvaluator(Estimator& estimator, const TrainSpec& train_spec,
                                  const EvalSpec& eval_spec) {
  constexpr absl::Duration kPoll = absl::Milliseconds(200);
  if (train_spec.max_steps <= 0) {
    return InvalidArgument("An evaluator needs max_steps in the TrainSpec to know when to end");
  }
  EndSignal end;
  Evaluations evaluations(estimator, eval_spec);
  bool ends = end.Wait(eval_spec.start_delay);
  absl::Time last_new = absl::Now();
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, evaluations.New());
    if (checkpoint.empty()) {
      if (ends && !evaluations.result().empty()) {
        WEFT_RETURN_IF_ERROR(evaluations.Export(/*is_final=*/true));
      }
      if (ends) return evaluations.result();
      if (absl::Now() - last_new > eval_spec.max_wait) {
        return DeadlineExceeded("No new checkpoint has come to ", estimator.model_dir(), " for ",
                                absl::FormatDuration(eval_spec.max_wait));
      }
      ends = end.Wait(kPoll);
      continue;
    }
    last_new = absl::Now();
    const StatusOr<int64_t> step = GlobalStepOf(checkpoint);
    const bool is_last = ends || (step.ok() && *step >= train_spec.max_steps);
    const Status evaluated = step.ok() ? evaluations.Evaluate(checkpoint, is_last) : step.status();
    // The chief deletes old checkpoints, this one perhaps meanwhile.
    if (evaluated.code() == absl::StatusCode::kNotFound) {
      WEFT_ASSIGN_OR_RETURN(const std::string newer, evaluations.New());
      if (!newer.empty() && newer != checkpoint) continue;
    }
    WEFT_RETURN_IF_ERROR(evaluated);
    if (is_last) return evaluations.result();
    ends = end.Wait(last_new + eval_spec.throttle - absl::Now());
  }
}

}  // namespace

StatusOr<EvalResult> TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec,
                                      const EvalSpec& eval_spec) {
  if (!train_spec.input || !eval_spec.input) {
    return InvalidArgument("TrainAndEvaluate needs an input function in both specs");
  }
  WEFT_ASSIGN_OR_RETURN(const train::Task task, train::TaskFromEnvironment());
  if (!task.distributed) return RunAlone(estimator, train_spec, eval_spec);
  if (task.is_evaluator) return RunEvaluator(estimator, train_spec, eval_spec);
  WEFT_RETURN_IF_ERROR(train::RunTask([&](const train::Task& own) {
    return estimator
        .TrainAs(own, train_spec.input,
                 {.max_steps = train_spec.max_steps, .hooks = train_spec.hooks})
        .status();
  }));
  return EvalResult();
}

}  // namespace weft::estimator
