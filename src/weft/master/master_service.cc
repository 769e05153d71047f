// SPDX-License-Identifier: Apache-2.0
#include "weft/master/master_service.h"

#include <memory>
#include <utility>

#include "absl/time/clock.h"

#include "net/utf8.h"
#include "weft/graph/graph_proto.h"
#include "weft/wire/device_proto.h"
#include "weft/wire/run_metadata_proto.h"
#include "weft/wire/step_messages.h"

namespace weft::master {
namespace {

using Call = std::unique_ptr<wire::ServerCall>;

// Adds a method that answers at once: `handle(request, call, &response)`.
template <typename Request, typename Response, typename Handle>
void AddMethod(const char* name, wire::MethodTable* methods, Handle handle) {
  methods->emplace(absl::StrCat("/tensorflow.MasterService/", name),
                   wire::Method{[handle](Call call) {
                                  Request request;
                                  Response response;
                                  Status status = wire::ParseMessage(call->request(), &request);
                                  if (status.ok()) status = handle(request, *call, &response);
                                  call->Reply(status, status.ok() ? wire::SerializeMessage(response)
                                                                  : wire::Payload());
                                },
                                /*may_block=*/true});
}

void ReplyStep(wire::ServerCall& call, bool store_errors, const Status& status,
               wire::Payload payload) {
  if (status.ok() || !store_errors) {
    call.Reply(status, std::move(payload));
    return;
  }
  tensorflow::RunStepResponse response;
  response.set_status_code(static_cast<tensorflow::error::Code>(status.code()));
  // A client that finds other bytes in it refuses the whole message.
  response.set_status_error_message(EscapeBadUtf8(status.message()));
  call.Reply(absl::OkStatus(), wire::SerializeMessage(response));
}

SessionStep StepFrom(const tensorflow::RunOptions& options, const MasterSession& session,
                     wire::ServerCall* call) {
  SessionStep step;
  const int64_t timeout_ms = options.timeout_in_ms() > 0
                                 ? options.timeout_in_ms()
                                 : session.config().operation_timeout_in_ms();
  if (timeout_ms > 0) step.timeout = absl::Milliseconds(timeout_ms);
  step.trace = options.trace_level() != tensorflow::RunOptions::NO_TRACE;
  step.partition_graphs = options.output_partition_graphs();
  step.caller = &call->cancellation();
  return step;
}

StatusOr<wire::Payload> StepResponse(const std::vector<std::string>& names,
                                     const StepResult& result) {
  wire::Payload payload;
  WEFT_RETURN_IF_ERROR(wire::AppendFetches(names, result.fetches, &payload));
  // Clients expect metadata to be there.
  WEFT_ASSIGN_OR_RETURN(const std::string metadata, wire::SerializeRunMetadata(result.metadata));
  wire::AppendBytes(tensorflow::RunStepResponse::kMetadataFieldNumber, metadata, &payload);
  return payload;
}

void RunStep(const MasterService& service, Call call) {
  const StepTimer timer(service.metrics);
  wire::RunStepMessage message;
  const Status parsed = wire::ParseRunStep(call->request(), &message);
  const bool store_errors = message.rest.store_errors_in_response_body();
  const auto fail = [&](const Status& status) {
    timer.End(status);
    ReplyStep(*call, store_errors, status, wire::Payload());
  };
  if (!parsed.ok()) return fail(parsed);
  StatusOr<std::shared_ptr<MasterSession>> session =
      service.master->Find(message.rest.session_handle());
  if (!session.ok()) return fail(session.status());
  if (Status s = (*session)->AdmitRequest(message.rest.request_id()); !s.ok()) return fail(s);
  SessionStep step = StepFrom(message.rest.options(), **session, call.get());
  for (wire::NamedTensor& feed : message.feeds) {
    step.feeds.emplace_back(std::move(feed.name), std::move(feed.tensor));
  }
  std::vector<std::string> names(message.rest.fetch().begin(), message.rest.fetch().end());
  step.fetches = names;
  step.targets.assign(message.rest.target().begin(), message.rest.target().end());
  auto answer = [call = std::move(call), names = std::move(names), store_errors,
                 timer](StatusOr<StepResult> result) {
    StatusOr<wire::Payload> payload = result.ok() ? StepResponse(names, *result) : result.status();
    timer.End(payload.status());
    ReplyStep(*call, store_errors, payload.status(),
              payload.ok() ? *std::move(payload) : wire::Payload());
  };
  if (message.rest.partial_run_handle().empty()) {
    (*session)->Run(std::move(step), std::move(answer));
  } else {
    (*session)->RunPartially(message.rest.partial_run_handle(), std::move(step.feeds),
                             std::move(step.fetches), std::move(answer));
  }
}

void SetUpPartialRun(const MasterService& service, Call call) {
  tensorflow::PartialRunSetupRequest request;
  Status status = wire::ParseMessage(call->request(), &request);
  StatusOr<std::shared_ptr<MasterSession>> session =
      status.ok() ? service.master->Find(request.session_handle()) : status;
  if (!session.ok()) return call->Reply(session.status(), wire::Payload());
  SessionStep step;
  for (const std::string& name : request.feed()) step.feeds.emplace_back(name, Tensor());
  step.fetches.assign(request.fetch().begin(), request.fetch().end());
  step.targets.assign(request.target().begin(), request.target().end());
  (*session)->SetUpPartialRun(std::move(step),
                              [call = std::move(call)](StatusOr<std::string> handle) {
                                tensorflow::PartialRunSetupResponse response;
                                if (handle.ok()) response.set_partial_run_handle(*handle);
                                call->Reply(handle.status(), wire::SerializeMessage(response));
                              });
}

StatusOr<wire::Payload> CallableResponse(const StepResult& result) {
  wire::Payload payload;
  for (const Tensor& fetch : result.fetches) {
    WEFT_RETURN_IF_ERROR(
        wire::AppendTensor(tensorflow::RunCallableResponse::kFetchFieldNumber, fetch, &payload));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string metadata, wire::SerializeRunMetadata(result.metadata));
  wire::AppendBytes(tensorflow::RunCallableResponse::kMetadataFieldNumber, metadata, &payload);
  return payload;
}

void RunCallable(const MasterService& service, Call call) {
  const StepTimer timer(service.metrics);
  const auto fail = [&](const Status& status) {
    timer.End(status);
    call->Reply(status, wire::Payload());
  };
  wire::RunCallableMessage message;
  if (Status s = wire::ParseRunCallable(call->request(), &message); !s.ok()) return fail(s);
  StatusOr<std::shared_ptr<MasterSession>> session =
      service.master->Find(message.rest.session_handle());
  if (!session.ok()) return fail(session.status());
  StatusOr<tensorflow::CallableOptions> options = (*session)->FindCallable(message.rest.handle());
  if (!options.ok()) return fail(options.status());
  if (options->feed_size() != static_cast<int>(message.feeds.size())) {
    return fail(InvalidArgument("The callable takes ", options->feed_size(), " feeds, got ",
                                message.feeds.size()));
  }
  if (Status s = (*session)->AdmitRequest(message.rest.request_id()); !s.ok()) return fail(s);
  SessionStep step = StepFrom(options->run_options(), **session, call.get());
  // TensorFlow's client looks at shapes in Session.run alone, its servers nowhere: Keras feeds a
  // scalar where a placeholder says a matrix.
  step.any_shape = true;
  for (size_t i = 0; i < message.feeds.size(); ++i) {
    step.feeds.emplace_back(options->feed(static_cast<int>(i)), std::move(message.feeds[i]));
  }
  step.fetches.assign(options->fetch().begin(), options->fetch().end());
  step.targets.assign(options->target().begin(), options->target().end());
  (*session)->Run(std::move(step), [call = std::move(call), timer](StatusOr<StepResult> result) {
    StatusOr<wire::Payload> payload = result.ok() ? CallableResponse(*result) : result.status();
    timer.End(payload.status());
    // A client repeats what is UNAVAILABLE, but the step may have changed things already.
    const Status status = absl::IsUnavailable(payload.status())
                              ? Aborted(payload.status().message())
                              : payload.status();
    call->Reply(status, payload.ok() ? *std::move(payload) : wire::Payload());
  });
}

void CloseSession(const MasterService& service, Call call) {
  tensorflow::CloseSessionRequest request;
  Status status = wire::ParseMessage(call->request(), &request);
  // Shared: of two paths, closed and not found, one answers.
  auto shared = std::make_shared<Call>(std::move(call));
  if (status.ok()) {
    status = service.master->CloseSession(request.session_handle(), [shared] {
      (*shared)->Reply(absl::OkStatus(),
                       wire::SerializeMessage(tensorflow::CloseSessionResponse()));
    });
  }
  if (!status.ok()) (*shared)->Reply(status, wire::Payload());
}

StatusOr<std::string> CreateSession(const MasterService& service, wire::ServerCall& call) {
  wire::CreateSessionMessage message;
  WEFT_RETURN_IF_ERROR(wire::ParseCreateSession(call.request(), &message));
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const GraphDef> graph,
                        service.graphs->Parse(message.graph));
  return service.master->CreateSession(*graph, message.rest.config(), &call.cancellation());
}

void AddSessionMethods(const MasterService& service, wire::MethodTable* methods) {
  Master* master = service.master;
  methods->emplace("/tensorflow.MasterService/CreateSession",
                   wire::Method{[service](Call call) {
                                  const StatusOr<std::string> handle =
                                      CreateSession(service, *call);
                                  tensorflow::CreateSessionResponse response;
                                  if (handle.ok()) response.set_session_handle(*handle);
                                  call->Reply(handle.status(), wire::SerializeMessage(response));
                                },
                                /*may_block=*/true});
  AddMethod<tensorflow::ExtendSessionRequest, tensorflow::ExtendSessionResponse>(
      "ExtendSession", methods,
      [master](const auto& request, wire::ServerCall& call, auto* response) -> Status {
        WEFT_ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                              master->Find(request.session_handle()));
        WEFT_ASSIGN_OR_RETURN(GraphDef graph, GraphDefFromProto(request.graph_def()));
        WEFT_ASSIGN_OR_RETURN(const int64_t version,
                              session->Extend(std::move(graph), request.current_graph_version(),
                                              &call.cancellation()));
        response->set_new_graph_version(version);
        return absl::OkStatus();
      });
  AddMethod<tensorflow::ResetRequest, tensorflow::ResetResponse>(
      "Reset", methods, [master](const auto& request, wire::ServerCall& call, auto*) -> Status {
        return master->Reset({request.container().begin(), request.container().end()},
                             {request.device_filters().begin(), request.device_filters().end()},
                             &call.cancellation());
      });
  AddMethod<tensorflow::ListDevicesRequest, tensorflow::ListDevicesResponse>(
      "ListDevices", methods,
      [master](const auto& request, wire::ServerCall& call, auto* response) -> Status {
        WEFT_ASSIGN_OR_RETURN(const Master::Devices devices,
                              master->ListDevices(request.session_handle(), &call.cancellation()));
        for (const auto& device : devices.local)
          wire::DeviceToProto(device, response->add_local_device());
        for (const auto& device : devices.remote)
          wire::DeviceToProto(device, response->add_remote_device());
        return absl::OkStatus();
      });
}

void AddCallableMethods(Master* master, wire::MethodTable* methods) {
  AddMethod<tensorflow::MakeCallableRequest, tensorflow::MakeCallableResponse>(
      "MakeCallable", methods,
      [master](const auto& request, wire::ServerCall&, auto* response) -> Status {
        WEFT_ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                              master->Find(request.session_handle()));
        WEFT_ASSIGN_OR_RETURN(const int64_t id,
                              session->MakeCallable(request.options(), request.request_id()));
        response->set_handle(id);
        return absl::OkStatus();
      });
  AddMethod<tensorflow::ReleaseCallableRequest, tensorflow::ReleaseCallableResponse>(
      "ReleaseCallable", methods,
      [master](const auto& request, wire::ServerCall&, auto*) -> Status {
        WEFT_ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                              master->Find(request.session_handle()));
        return session->ReleaseCallable(request.handle());
      });
}

}  // namespace

StepMetrics::StepMetrics(MetricRegistry* registry)
    : steps(registry->GetCounter("weft_steps_total", "Steps that ended, well or not")),
      failed(registry->GetCounter("weft_failed_steps_total", "Steps that ended with an error")),
      seconds(registry->GetHistogram("weft_step_seconds", "From a step's arrival to its answer",
                                     ExponentialBounds(1e-4, 4, 12))) {}

void AddMasterMethods(const MasterService& service, wire::MethodTable* methods) {
  AddSessionMethods(service, methods);
  AddCallableMethods(service.master, methods);
  const auto add = [&](const char* name, void (*handle)(const MasterService&, Call)) {
    methods->emplace(
        absl::StrCat("/tensorflow.MasterService/", name),
        wire::Method{[service, handle](Call call) { handle(service, std::move(call)); }});
  };
  add("RunStep", RunStep);
  add("PartialRunSetup", SetUpPartialRun);
  add("RunCallable", RunCallable);
  add("CloseSession", CloseSession);
}

}  // namespace weft::master
