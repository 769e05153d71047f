// SPDX-License-Identifier: Apache-2.0
// Estimators as SavedModels.
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "base/files.h"
#include "weft/estimator/model_fn/checkpoints.h"
#include "weft/estimator/model_fn/estimator.h"
#include "weft/storage/object_files.h"
#include "weft/train/saved_model.h"

namespace weft::estimator {
namespace {

// A folder under `base` that there is not yet, named by the time.
std::string NewFolder(FileSystem& files, const std::string& base) {
  int64_t seconds = absl::ToUnixSeconds(absl::Now());
  while (files.Stat(JoinPath(base, absl::StrCat(seconds))).ok()) ++seconds;
  return JoinPath(base, absl::StrCat(seconds));
}

// The outputs that the model offers, with the inputs of the export. Classifications and regressions
// are of records alone, as TensorFlow Serving calls them.
std::map<std::string, train::Signature> Signatures(
    GraphBuilder& b, const std::map<std::string, train::Signature>& offered,
    const std::map<std::string, Endpoint>& receivers) {
  const std::map<std::string, train::SignatureTensor> given =
      train::MakeSignature(b, receivers, {}).inputs;
  const bool of_records = given.size() == 1 && given.begin()->second.dtype == DType::kString;
  std::map<std::string, train::Signature> signatures;
  for (const auto& [name, signature] : offered) {
    train::Signature made = signature;
    if (absl::EndsWith(signature.method, "/predict")) {
      made.inputs = given;
    } else if (of_records) {
      made.inputs = {{"inputs", given.begin()->second}};
    } else {
      continue;
    }
    signatures[name] = std::move(made);
  }
  // Where the usual one cannot be, the predictions are.
  const auto predict = signatures.find("predict");
  if (!signatures.contains("serving_default") && predict != signatures.end()) {
    signatures["serving_default"] = predict->second;
  }
  return signatures;
}

}  // namespace

ServingInputFn ParsingServingInput(const ExampleSpec& spec) {
  return [spec](train::Program& program) -> StatusOr<ServingInput> {
    GraphBuilder& b = program.builder();
    const Endpoint records =
        b.Op("Placeholder", {}, {{"dtype", DType::kString}, {"shape", PartialShape{-1}}},
             "input_example_tensor");
    ServingInput input{ParseExamples(b, records, spec), {{"examples", records}}};
    WEFT_RETURN_IF_ERROR(b.status());
    return input;
  };
}

ServingInputFn RawServingInput(
    const std::map<std::string, std::pair<DType, PartialShape>>& inputs) {
  return [inputs](train::Program& program) -> StatusOr<ServingInput> {
    GraphBuilder& b = program.builder();
    ServingInput input;
    for (const auto& [name, type] : inputs) {
      const Endpoint tensor =
          b.Op("Placeholder", {}, {{"dtype", type.first}, {"shape", type.second}}, name);
      input.features[name] = Feature(tensor);
      input.receivers[name] = tensor;
    }
    WEFT_RETURN_IF_ERROR(b.status());
    return input;
  };
}

StatusOr<std::string> Estimator::ExportSavedModel(const std::string& base,
                                                  const ServingInputFn& serving,
                                                  const std::string& checkpoint) {
  WEFT_ASSIGN_OR_RETURN(const std::string values, CheckpointFor(checkpoint));
  const train::Task task = AloneTask();
  train::Program program(&task.catalogue->ops());
  program.GlobalStep();
  GraphBuilder& b = program.builder();
  WEFT_ASSIGN_OR_RETURN(const ServingInput input, serving(program));
  Assets assets;
  const ModelCall call{program, input.features, {}, Mode::kPredict, config_, task, &assets};
  WEFT_ASSIGN_OR_RETURN(const EstimatorSpec spec, model_fn_(call));
  WEFT_RETURN_IF_ERROR(Annotate(program.status(), "The model function"));
  train::ExportOptions options;
  options.signatures = Signatures(b, spec.export_outputs, input.receivers);
  if (options.signatures.empty()) {
    return InvalidArgument("The model function gives no export_outputs for predictions");
  }
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));
  if (!program.states().empty()) {
    options.after_load = program.InitializeStates();
    options.assets = assets;
  }
  WEFT_ASSIGN_OR_RETURN(const auto session,
                        OpenCheckpoint(program, *saver, spec.scaffold, task, values));
  storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
  const std::string folder = NewFolder(files, base);
  WEFT_RETURN_IF_ERROR(train::ExportSavedModel(program, *saver, *session, folder, options));
  return folder;
}

}  // namespace weft::estimator
