// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/grpc_methods.h"

#include <memory>
#include <utility>

#include "absl/time/clock.h"

#include "weft/serving/examples.h"
#include "weft/serving/predict.h"
#include "weft/wire/serving_messages.h"
#include "weft/wire/step_messages.h"

namespace weft::serving {
namespace {

namespace proto = tensorflow::serving;
using Call = std::unique_ptr<wire::ServerCall>;

constexpr char kSignatureDef[] = "signature_def";

// A question to a model: whoever answers it holds the call.
struct Asked {
  Asked(Call asked, ServingMetrics* counts, std::string method)
      : call(std::move(asked)), metrics(counts), api(std::move(method)) {
    metrics->Begin();
  }
  ~Asked() { metrics->End(); }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  Call call;
  ServingMetrics* metrics;
  std::string model, api;
  absl::Time begin = absl::Now();

  void Reply(const Status& status, wire::Payload response) {
    metrics->EndRequest(model, api, "GRPC", begin, status);
    call->Reply(status, std::move(response));
  }
  CallLimits limits() { return {.cancellation = &call->cancellation()}; }
};

void AnswerPredict(ModelSet* models, std::unique_ptr<Asked> asked) {
  wire::PredictMessage message;
  const Status parsed = wire::ParsePredict(asked->call->request(), &message);
  asked->model = message.rest.model_spec().name();
  if (!parsed.ok()) return asked->Reply(parsed, {});
  StatusOr<std::shared_ptr<const ModelVersion>> model = models->Find(message.rest.model_spec());
  if (!model.ok()) return asked->Reply(model.status(), {});
  PredictAsk ask{.signature = message.rest.model_spec().signature_name(),
                 .limits = asked->limits()};
  for (wire::NamedTensor& input : message.inputs)
    ask.inputs[std::move(input.name)] = std::move(input.tensor);
  ask.output_filter.assign(message.rest.output_filter().begin(),
                           message.rest.output_filter().end());
  proto::ModelSpec spec;
  FillSpec(**model, ask.signature, &spec);
  Predict(*std::move(model), std::move(ask),
          [asked = std::move(asked), spec = std::move(spec)](StatusOr<NamedTensors> outputs) {
            if (!outputs.ok()) return asked->Reply(outputs.status(), {});
            StatusOr<wire::Payload> reply = wire::PredictReply(spec, *outputs);
            const Status status = reply.status();
            asked->Reply(status, reply.ok() ? *std::move(reply) : wire::Payload());
          });
}

const proto::ModelSpec& SpecOf(const proto::ClassificationRequest& request) {
  return request.model_spec();
}
const proto::ModelSpec& SpecOf(const proto::RegressionRequest& request) {
  return request.model_spec();
}
// Of all tasks: they name one model.
const proto::ModelSpec& SpecOf(const proto::MultiInferenceRequest& request) {
  return request.tasks_size() > 0 ? request.tasks(0).model_spec()
                                  : proto::ModelSpec::default_instance();
}

// Of a method that takes examples: `answer(model, request, limits, done)`.
template <typename Request, typename Response, typename Answer>
void AnswerExamples(ModelSet* models, std::unique_ptr<Asked> asked, Answer answer) {
  Request request;
  const Status parsed = wire::ParseMessage(asked->call->request(), &request);
  if (!parsed.ok()) return asked->Reply(parsed, {});
  asked->model = SpecOf(request).name();
  StatusOr<std::shared_ptr<const ModelVersion>> model = models->Find(SpecOf(request));
  if (!model.ok()) return asked->Reply(model.status(), {});
  const CallLimits limits = asked->limits();
  answer(*std::move(model), request, limits,
         [asked = std::move(asked)](StatusOr<Response> response) {
           const Status status = response.status();
           asked->Reply(status, status.ok() ? wire::SerializeMessage(*response) : wire::Payload());
         });
}

Status DescribeModel(const ModelSet& models, const proto::GetModelMetadataRequest& request,
                     proto::GetModelMetadataResponse* response) {
  if (!request.has_model_spec()) return InvalidArgument("Missing ModelSpec");
  if (request.metadata_field().empty())
    return InvalidArgument("GetModelMetadataRequest must specify at least one metadata_field");
  for (const std::string& field : request.metadata_field()) {
    if (field != kSignatureDef)
      return InvalidArgument("Metadata field ", field, " is not supported");
  }
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelVersion> model,
                        models.Find(request.model_spec()));
  response->mutable_model_spec()->set_name(model->model());
  response->mutable_model_spec()->mutable_version()->set_value(model->version());
  (*response->mutable_metadata())[kSignatureDef].PackFrom(model->metadata());
  return absl::OkStatus();
}

Status Reload(ModelSet* models, const proto::ReloadConfigRequest& request,
              proto::ReloadConfigResponse* response) {
  const Status status =
      request.config().config_case() == proto::ModelServerConfig::kModelConfigList
          ? models->Configure(request.config())
          : InvalidArgument("ServerModelConfig type not supported by HandleReloadConfigRequest. ",
                            "Only ModelConfigList is currently supported");
  response->mutable_status()->set_error_code(static_cast<tensorflow::error::Code>(status.code()));
  response->mutable_status()->set_error_message(std::string(status.message()));
  return status;
}

// Adds a method of which `handle(request, &response)` is all, and which may block.
template <typename Request, typename Response, typename Handle>
void AddPlain(const std::string& path, wire::MethodTable* methods, Handle handle) {
  methods->emplace(path, wire::Method(
                             [handle](Call call) {
                               Request request;
                               Response response;
                               Status status = wire::ParseMessage(call->request(), &request);
                               if (status.ok()) status = handle(request, &response);
                               call->Reply(status, status.ok() ? wire::SerializeMessage(response)
                                                               : wire::Payload());
                             },
                             /*blocks=*/true));
}

}  // namespace

void AddServingMethods(ModelSet* models, ServingMetrics* metrics,
                       const std::function<bool()>& is_ready, wire::MethodTable* methods) {
  const auto add = [&](const std::string& api, auto answer) {
    methods->emplace("/tensorflow.serving.PredictionService/" + api, wire::Method([=](Call call) {
                       answer(models, std::make_unique<Asked>(std::move(call), metrics, api));
                     }));
  };
  add("Predict", AnswerPredict);
  add("Classify", [](ModelSet* set, std::unique_ptr<Asked> asked) {
    AnswerExamples<proto::ClassificationRequest, proto::ClassificationResponse>(
        set, std::move(asked), Classify);
  });
  add("Regress", [](ModelSet* set, std::unique_ptr<Asked> asked) {
    AnswerExamples<proto::RegressionRequest, proto::RegressionResponse>(set, std::move(asked),
                                                                        Regress);
  });
  add("MultiInference", [](ModelSet* set, std::unique_ptr<Asked> asked) {
    AnswerExamples<proto::MultiInferenceRequest, proto::MultiInferenceResponse>(
        set, std::move(asked), InferAll);
  });
  AddPlain<proto::GetModelMetadataRequest, proto::GetModelMetadataResponse>(
      "/tensorflow.serving.PredictionService/GetModelMetadata", methods,
      [models](const auto& request, auto* response) {
        return DescribeModel(*models, request, response);
      });
  AddPlain<proto::GetModelStatusRequest, proto::GetModelStatusResponse>(
      "/tensorflow.serving.ModelService/GetModelStatus", methods,
      [models](const auto& request, auto* response) {
        if (!request.has_model_spec()) return InvalidArgument("Missing ModelSpec");
        return models->Describe(request.model_spec(), response);
      });
  AddPlain<proto::ReloadConfigRequest, proto::ReloadConfigResponse>(
      "/tensorflow.serving.ModelService/HandleReloadConfigRequest", methods,
      [models](const auto& request, auto* response) { return Reload(models, request, response); });
  if (is_ready == nullptr) return;
  // HealthCheckResponse has one field, status: 1 is SERVING, 2 NOT_SERVING.
  methods->emplace("/grpc.health.v1.Health/Check", wire::Method([is_ready](Call call) {
                     wire::Payload response;
                     wire::AppendVarint(1, is_ready() ? 1 : 2, &response);
                     call->Reply(absl::OkStatus(), std::move(response));
                   }));
}

}  // namespace weft::serving
