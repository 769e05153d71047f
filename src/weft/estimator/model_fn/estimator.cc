// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/estimator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/files.h"
#include "base/log.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/model_fn/checkpoints.h"
#include "weft/estimator/model_fn/training_hooks.h"
#include "weft/kernel/op_spec.h"
#include "weft/storage/object_files.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::estimator {

StatusOr<FeatureBatch> BatchesOf(const InputContext& input, const train::Dataset& dataset,
                                 const std::vector<std::string>& names, const std::string& label) {
  GraphBuilder& b = input.b();
  WEFT_RETURN_IF_ERROR(b.status());
  if (names.size() != dataset.types().size()) {
    return InvalidArgument("The dataset has ", dataset.types().size(),
                           " components, and there are ", names.size(),
                           " names for them: ", absl::StrJoin(names, ", "));
  }
  if (!label.empty() && std::find(names.begin(), names.end(), label) == names.end()) {
    return InvalidArgument("The label '", label, "' is not among the components, which are ",
                           absl::StrJoin(names, ", "));
  }
  const train::DatasetIterator next =
      train::AddIterator(input.program, dataset, "input", /*saved=*/false);
  WEFT_RETURN_IF_ERROR(b.status());
  FeatureBatch batch;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == label && input.mode == Mode::kPredict) continue;
    if (names[i] == label) {
      batch.labels = next.next[i];
    } else if (!batch.features.emplace(names[i], Feature(next.next[i])).second) {
      return InvalidArgument("Two components are called '", names[i], "'");
    }
  }
  return batch;
}

StatusOr<EstimatorSpec> Estimator::Build(train::Program& program, const train::Task& task,
                                         Mode mode, const InputFn& input, Assets* assets) {
  if (config_.model_dir.empty()) {
    return InvalidArgument("RunConfig::model_dir is empty, expected the folder of the checkpoints");
  }
  program.GlobalStep();
  const InputContext context{program, mode, task.num_workers, task.worker};
  WEFT_ASSIGN_OR_RETURN(const FeatureBatch batch, input(context));
  WEFT_RETURN_IF_ERROR(Annotate(program.status(), "The input function"));
  const ModelCall call{program, batch.features, batch.labels, mode, config_, task, assets};
  WEFT_ASSIGN_OR_RETURN(EstimatorSpec spec, model_fn_(call));
  WEFT_RETURN_IF_ERROR(Annotate(program.status(), "The model function"));
  if (mode == Mode::kPredict && spec.predictions.empty()) {
    return InvalidArgument("The model function gives no predictions");
  }
  if (mode != Mode::kPredict && !spec.loss) {
    return InvalidArgument("The model function gives no loss");
  }
  if (mode == Mode::kTrain && spec.train_op == nullptr) {
    return InvalidArgument("The model function gives no train_op");
  }
  return spec;
}

StatusOr<int64_t> Estimator::Train(const InputFn& input, const TrainOptions& options) {
  return TrainAs(AloneTask(), input, options);
}

StatusOr<int64_t> Estimator::TrainAs(const train::Task& task, const InputFn& input,
                                     const TrainOptions& options) {
  if (options.steps < 0 || options.max_steps < 0 || (options.steps > 0 && options.max_steps > 0)) {
    return InvalidArgument("There are steps ", options.steps, " and max_steps ", options.max_steps,
                           ", expected one of them, or none");
  }
  if (options.max_steps > 0) {
    const StatusOr<std::string> newest = LatestCheckpoint();
    const StatusOr<int64_t> step = newest.ok() ? GlobalStepOf(*newest) : newest.status();
    if (step.ok() && *step >= options.max_steps) {
      WEFT_LOG(INFO) << "Training is done: " << *newest << " has step " << *step;
      return *step;
    }
  }
  train::Program program(&task.catalogue->ops());
  program.set_placement(task.Placement());
  program.builder().set_device(task.Device());
  Assets assets;
  WEFT_ASSIGN_OR_RETURN(EstimatorSpec spec, Build(program, task, Mode::kTrain, input, &assets));
  WEFT_RETURN_IF_ERROR(AddWarmStart(program, warm_start_, &spec.scaffold));
  const auto watch = WatchLoss(spec.loss, task.is_chief ? config_.log_step_count_steps : 0);
  const auto stop = StopAfter(options.steps, options.max_steps);
  train::TrainingOptions training{.make_session = [&] { return task.NewSession(); },
                                  .is_chief = task.is_chief,
                                  .checkpoint_folder = config_.model_dir,
                                  .scaffold = spec.scaffold,
                                  .save_checkpoint = config_.save_checkpoints,
                                  .save_summaries = config_.save_summaries,
                                  .log_step_count_steps = config_.log_step_count_steps,
                                  .train = spec.train_op,
                                  .check_chief = [&] { return task.CheckChief(); }};
  training.hooks = {watch.get(), stop.get()};
  for (const auto& hook : spec.training_hooks) training.hooks.push_back(hook.get());
  // Those of the caller see checkpoints of this step.
  for (train::Hook* hook : options.hooks) {
    (task.is_chief ? training.chief_only_hooks : training.hooks).push_back(hook);
  }
  WEFT_ASSIGN_OR_RETURN(const auto session,
                        train::MonitoredSession::CreateTraining(program, training));
  while (!session->ShouldStop()) {
    const Status ran = session->Run({}, {}, {spec.train_op}, nullptr);
    if (ran.code() == absl::StatusCode::kOutOfRange) break;
    WEFT_RETURN_IF_ERROR(ran);
  }
  WEFT_RETURN_IF_ERROR(session->End());
  return session->global_step();
}

StatusOr<std::string> Estimator::CheckpointFor(const std::string& asked) const {
  return CheckpointAt(asked.empty() ? config_.model_dir : asked);
}

StatusOr<EvalResult> Estimator::Evaluate(const InputFn& input, const EvaluateOptions& options) {
  const train::Task task = AloneTask();
  train::Program program(&task.catalogue->ops());
  Assets assets;
  WEFT_ASSIGN_OR_RETURN(EstimatorSpec spec, Build(program, task, Mode::kEvaluate, input, &assets));
  spec.eval_metrics["loss"] = MeanOfValues(program.builder(), spec.loss);
  WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointFor(options.checkpoint));
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));
  std::vector<std::string> fetches = {train::NameOf(program.GlobalStep().value)};
  for (const auto& [name, metric] : spec.eval_metrics) {
    for (const Endpoint& sum : metric.sums) fetches.push_back(train::NameOf(sum));
  }
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(const auto session,
                        OpenCheckpoint(program, *saver, spec.scaffold, task, checkpoint));
  std::vector<std::vector<double>> sums(fetches.size() - 1);
  int64_t step = 0, batches = 0;
  for (; options.steps == 0 || batches < options.steps; ++batches) {
    std::vector<Tensor> values;
    const Status ran = session->Run({}, fetches, {}, &values);
    if (ran.code() == absl::StatusCode::kOutOfRange) break;
    WEFT_RETURN_IF_ERROR(ran);
    step = values[0].scalar<int64_t>();
    for (size_t i = 1; i < values.size(); ++i) {
      sums[i - 1].resize(static_cast<size_t>(values[i].num_elements()));
      for (size_t k = 0; k < sums[i - 1].size(); ++k) {
        sums[i - 1][k] += static_cast<double>(values[i].span<float>()[k]);
      }
    }
  }
  if (batches == 0) return InvalidArgument("The input function gives no batch to evaluate on");
  EvalResult result;
  size_t next = 0;
  for (const auto& [name, metric] : spec.eval_metrics) {
    const auto first = sums.begin() + static_cast<std::ptrdiff_t>(next);
    next += metric.sums.size();
    result[name] = metric.result({first, sums.begin() + static_cast<std::ptrdiff_t>(next)});
  }
  result["global_step"] = static_cast<double>(step);
  WEFT_LOG(INFO) << "Evaluated " << checkpoint << ": "
                 << absl::StrJoin(result, ", ", absl::PairFormatter(" "));
  const std::string folder = options.name.empty() ? "eval" : "eval_" + options.name;
  WEFT_RETURN_IF_ERROR(WriteNumbers(JoinPath(config_.model_dir, folder), step, result));
  return result;
}

Status Estimator::Predict(const InputFn& input,
                          const std::function<Status(const Predictions&)>& take,
                          const PredictOptions& options) {
  const train::Task task = AloneTask();
  train::Program program(&task.catalogue->ops());
  Assets assets;
  WEFT_ASSIGN_OR_RETURN(EstimatorSpec spec, Build(program, task, Mode::kPredict, input, &assets));
  const std::map<std::string, Endpoint>& all = spec.predictions;
  std::vector<std::string> names = options.keys, fetches;
  for (const auto& [name, tensor] : all) {
    if (options.keys.empty()) names.push_back(name);
  }
  for (const std::string& name : names) {
    const auto found = all.find(name);
    if (found == all.end()) {
      return InvalidArgument("There is no prediction '", name, "': there are ",
                             absl::StrJoin(all, ", ", [](std::string* out, const auto& p) {
                               absl::StrAppend(out, p.first);
                             }));
    }
    fetches.push_back(train::NameOf(found->second));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointFor(options.checkpoint));
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));
  WEFT_ASSIGN_OR_RETURN(const auto session,
                        OpenCheckpoint(program, *saver, spec.scaffold, task, checkpoint));
  while (true) {
    std::vector<Tensor> values;
    const Status ran = session->Run({}, fetches, {}, &values);
    if (ran.code() == absl::StatusCode::kOutOfRange) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(ran);
    Predictions predictions;
    for (size_t i = 0; i < names.size(); ++i) predictions[names[i]] = std::move(values[i]);
    WEFT_RETURN_IF_ERROR(take(predictions));
  }
}

StatusOr<std::vector<Predictions>> Estimator::Predict(const InputFn& input,
                                                      const PredictOptions& options) {
  std::vector<Predictions> all;
  WEFT_RETURN_IF_ERROR(Predict(
      input,
      [&](const Predictions& one) {
        all.push_back(one);
        return absl::OkStatus();
      },
      options));
  return all;
}

StatusOr<std::string> Estimator::LatestCheckpoint() const {
  return CheckpointAt(config_.model_dir);
}

StatusOr<std::vector<std::string>> Estimator::VariableNames() const {
  WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, LatestCheckpoint());
  storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
  WEFT_ASSIGN_OR_RETURN(const auto bundle, storage::BundleReader::Open(files, checkpoint));
  WEFT_ASSIGN_OR_RETURN(const std::vector<storage::BundleTensor> tensors, bundle->List());
  std::vector<std::string> names;
  for (const storage::BundleTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

StatusOr<Tensor> Estimator::VariableValue(const std::string& name) const {
  WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, LatestCheckpoint());
  storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
  WEFT_ASSIGN_OR_RETURN(const auto bundle, storage::BundleReader::Open(files, checkpoint));
  return bundle->Read(name);
}

}  // namespace weft::estimator
