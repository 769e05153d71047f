// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/model_version.h"

#include <utility>

#include "absl/time/clock.h"

#include "weft/graph/import.h"
#include "weft/session/direct_session.h"
#include "weft/train/meta_graph.h"
#include "weft/train/program.h"

namespace weft::serving {
namespace {

constexpr const char* kInitSignature = "__saved_model_init_op";

}  // namespace

StatusOr<std::unique_ptr<ModelVersion>> ModelVersion::Load(const LoadSettings& settings,
                                                           const std::string& model,
                                                           int64_t version,
                                                           const std::string& folder) {
  std::unique_ptr<ModelVersion> loaded(new ModelVersion(model, version, settings));
  {
    train::Program program(&settings.catalogue->ops());
    WEFT_ASSIGN_OR_RETURN(loaded->loaded_, train::LoadSavedModel(program, folder,
                                                                 {.tags = settings.tags,
                                                                  .clear_devices = true,
                                                                  .files = settings.files}));
    WEFT_RETURN_IF_ERROR(Annotate(program.status(), folder));
    WEFT_ASSIGN_OR_RETURN(loaded->session_,
                          session::NewDirectSession({.catalogue = settings.catalogue,
                                                     .devices = settings.devices,
                                                     .num_threads = settings.num_threads,
                                                     .files = settings.files}));
    WEFT_RETURN_IF_ERROR(Annotate(loaded->session_->Extend(ExportGraph(program.graph())), folder));
  }
  WEFT_RETURN_IF_ERROR(loaded->loaded_.Restore(*loaded->session_));
  WEFT_RETURN_IF_ERROR(loaded->DescribeSignatures());
  if (settings.batch_pool != nullptr) {
    loaded->batcher_ = std::make_unique<Batcher>(
        model, settings.batching, settings.batch_pool, settings.timers, settings.metrics,
        [self = loaded.get()](const RunCall& call, std::vector<Tensor>* results) {
          return self->RunNow(call, results);
        });
  }
  return loaded;
}

Status ModelVersion::DescribeSignatures() {
  train::MetaGraph described;
  described.signatures = loaded_.signatures;
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, train::SerializeMetaGraph(described));
  tensorflow::MetaGraphDef proto;
  if (!proto.ParseFromString(bytes)) return Internal("The signatures cannot be described");
  *metadata_.mutable_signature_def() = proto.signature_def();
  if (loaded_.after_load.empty() || loaded_.collections.contains("saved_model_main_op"))
    return absl::OkStatus();
  // As TensorFlow 2 writes it: a signature that names the node.
  tensorflow::TensorInfo& node =
      (*(*metadata_.mutable_signature_def())[kInitSignature].mutable_outputs())[kInitSignature];
  node.set_name(loaded_.after_load);
  node.mutable_tensor_shape()->set_unknown_rank(true);
  return absl::OkStatus();
}

Status ModelVersion::RunNow(const RunCall& call, std::vector<Tensor>* results) const {
  session::RunOptions options;
  options.timeout = call.timeout;
  return session_->Run(options, call.feeds, call.fetches, {}, results, nullptr);
}

void ModelVersion::Run(RunCall call, const std::string& api, RunDone done) const {
  const absl::Time begin = absl::Now();
  RunDone timed = [this, api, begin,
                   done = std::move(done)](StatusOr<std::vector<Tensor>> results) mutable {
    if (results.ok()) metrics_->ObserveRun(model_, api, absl::Now() - begin);
    done(std::move(results));
  };
  if (batcher_ != nullptr) return batcher_->Enqueue(std::move(call), std::move(timed));
  if (call.cancellation != nullptr && call.cancellation->IsCancelled())
    return timed(call.cancellation->status());
  std::vector<Tensor> results;
  const Status status = RunNow(call, &results);
  if (status.ok()) return timed(std::move(results));
  timed(status);
}

}  // namespace weft::serving
