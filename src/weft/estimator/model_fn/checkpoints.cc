// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/checkpoints.h"

#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/checkpoint_state.h"
#include "weft/storage/event_file.h"
#include "weft/storage/object_files.h"
#include "weft/storage/summary.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::estimator {

StatusOr<std::string> CheckpointAt(const std::string& path) {
  storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
  if (files.Stat(storage::BundleIndexPath(path)).ok()) return path;
  StatusOr<std::string> newest = storage::LatestCheckpoint(files, path);
  if (!newest.ok() && newest.status().code() == absl::StatusCode::kNotFound) {
    return NotFound("There is no checkpoint in ", path);
  }
  return newest;
}

StatusOr<int64_t> GlobalStepOf(const std::string& checkpoint) {
  storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
  WEFT_ASSIGN_OR_RETURN(const auto bundle, storage::BundleReader::Open(files, checkpoint));
  WEFT_ASSIGN_OR_RETURN(const bool has_step, bundle->Contains("global_step"));
  if (!has_step) return int64_t{0};
  WEFT_ASSIGN_OR_RETURN(const Tensor step, bundle->Read("global_step"));
  if (step.dtype() != DType::kInt64 || step.num_elements() != 1) {
    return InvalidArgument("The global_step of ", checkpoint, " is ", DTypeName(step.dtype()), " ",
                           step.shape().ToString(), ", expected an int64 scalar");
  }
  return step.scalar<int64_t>();
}

train::Task AloneTask() {
  train::Task task;
  task.catalogue = &StandardCatalogue();
  task.devices = &StandardDevices();
  return task;
}

StatusOr<std::unique_ptr<session::Session>> OpenCheckpoint(train::Program& program,
                                                           train::Saver& saver,
                                                           const train::Scaffold& scaffold,
                                                           const train::Task& task,
                                                           const std::string& checkpoint) {
  std::vector<train::Variable> local;
  for (const train::Variable& variable : program.variables()) {
    if (variable.local) local.push_back(variable);
  }
  std::vector<Node*> begin = program.InitializersInOrder(local);
  begin.insert(begin.end(), scaffold.local_init.begin(), scaffold.local_init.end());
  if (Node* states = program.InitializeStates(); states != nullptr) begin.push_back(states);
  Node* all = program.Group(begin, "begin");
  WEFT_RETURN_IF_ERROR(program.status());
  client::SessionOptions options{.catalogue = task.catalogue, .devices = task.devices};
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<session::Session> session, client::NewSession(options));
  WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(saver.Restore(*session, checkpoint));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {all->name()}, nullptr));
  return session;
}

Status WriteNumbers(const std::string& folder, int64_t step,
                    const std::map<std::string, double>& numbers) {
  storage::ObjectFileSystem files(std::make_unique<RealFileSystem>());
  const RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const auto writer,
                        storage::EventFileWriter::Create(files, clock, folder, {}));
  std::vector<std::string> summaries;
  for (const auto& [name, value] : numbers) {
    if (name == "global_step") continue;
    summaries.push_back(storage::ScalarSummary(name, static_cast<float>(value)));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string merged, storage::MergeSummaries(summaries));
  WEFT_RETURN_IF_ERROR(writer->WriteSummary(step, merged));
  return writer->Close();
}

}  // namespace weft::estimator
