// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/warm_up.h"

#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "weft/serving/examples.h"
#include "weft/storage/tfrecord.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::serving {
namespace {

namespace proto = tensorflow::serving;

constexpr int kMostRecords = 1000;

// Calls `start(done)` and waits until `done` was called.
template <typename Value, typename Start>
Status Await(Start start) {
  absl::Notification ended;
  Status status;
  start([&](StatusOr<Value> result) {
    status = result.status();
    ended.Notify();
  });
  ended.WaitForNotification();
  return status;
}

Status RunPredict(const proto::PredictRequest& request,
                  const std::shared_ptr<const ModelVersion>& model) {
  PredictAsk ask{.signature = request.model_spec().signature_name()};
  for (const auto& [name, tensor] : request.inputs()) {
    WEFT_ASSIGN_OR_RETURN(ask.inputs[name], TensorFromProto(tensor));
  }
  ask.output_filter.assign(request.output_filter().begin(), request.output_filter().end());
  return Await<NamedTensors>(
      [&](PredictDone done) { Predict(model, std::move(ask), std::move(done)); });
}

Status RunRecord(const proto::PredictionLog& log,
                 const std::shared_ptr<const ModelVersion>& model) {
  switch (log.log_type_case()) {
    case proto::PredictionLog::kPredictLog:
      return RunPredict(log.predict_log().request(), model);
    case proto::PredictionLog::kClassifyLog:
      return Await<proto::ClassificationResponse>(
          [&](auto done) { Classify(model, log.classify_log().request(), {}, std::move(done)); });
    case proto::PredictionLog::kRegressLog:
      return Await<proto::RegressionResponse>(
          [&](auto done) { Regress(model, log.regress_log().request(), {}, std::move(done)); });
    case proto::PredictionLog::kMultiInferenceLog:
      return Await<proto::MultiInferenceResponse>([&](auto done) {
        InferAll(model, log.multi_inference_log().request(), {}, std::move(done));
      });
    default:
      return Unimplemented(
          "Unsupported log_type for warmup: expected predict_log, classify_log, regress_log or "
          "multi_inference_log");
  }
}

}  // namespace

Status WarmUp(FileSystem& files, const std::string& folder, int times,
              const std::shared_ptr<const ModelVersion>& model) {
  const std::string path = JoinPath(JoinPath(folder, "assets.extra"), "tf_serving_warmup_requests");
  if (!files.Stat(path).ok()) return absl::OkStatus();
  const absl::Time begin = absl::Now();
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<storage::RecordReader> reader,
                        storage::RecordReader::Open(files, path));
  std::string record;
  for (int i = 0;; ++i) {
    WEFT_ASSIGN_OR_RETURN(const bool is_there, reader->Next(&record));
    if (!is_there) break;
    if (i == kMostRecords)
      return InvalidArgument("Number of warmup records exceeeds the maximum (", kMostRecords,
                             ") at ", path);
    const std::string where = absl::StrCat("Record ", i, " of ", path);
    proto::PredictionLog log;
    if (!log.ParseFromString(record)) return InvalidArgument(where, " is no PredictionLog");
    for (int round = 0; round < times; ++round)
      WEFT_RETURN_IF_ERROR(Annotate(RunRecord(log, model), where));
  }
  model->metrics()->CountWarmUp(model->model(), absl::Now() - begin);
  return absl::OkStatus();
}

}  // namespace weft::serving
