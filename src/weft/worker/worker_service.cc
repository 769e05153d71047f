// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/worker_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"

#include "proto/tensorflow/worker.pb.h"
#include "proto/weft/cluster.pb.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/wire/device_proto.h"
#include "weft/wire/step_messages.h"
#include "weft/worker/foreign_steps.h"
#include "weft/worker/guessed_shapes.h"
#include "weft/worker/part_options.h"

namespace weft::worker {
namespace {

template <typename Request, typename Response, typename Handle>
void AddMethod(const char* name, wire::MethodTable* methods, Handle handle) {
  methods->emplace(absl::StrCat("/tensorflow.WorkerService/", name),
                   wire::Method{[handle](std::unique_ptr<wire::ServerCall> call) {
                                  Request request;
                                  Response response;
                                  Status status = wire::ParseMessage(call->request(), &request);
                                  if (status.ok()) status = handle(request, *call, &response);
                                  call->Reply(status, status.ok() ? wire::SerializeMessage(response)
                                                                  : wire::Payload());
                                },
                                /*may_block=*/true});
}

StatusOr<uint32_t> RegisterGraph(Worker* worker, cluster::DataPlane* plane,
                                 tensorflow::RegisterGraphRequest& request,
                                 const wire::ServerCall& call) {
  wire::RegisterGraphExtension extension;
  WEFT_RETURN_IF_ERROR(wire::ParseMessage(call.request(), &extension));
  for (const wire::TaskInfo& task : extension.tasks()) {
    if (task.task() != worker->task())
      plane->Know({task.task(), task.data_address(), task.incarnation()});
  }
  DropGuessedShapes(request.mutable_graph_def());
  WEFT_ASSIGN_OR_RETURN(GraphDef def, GraphDefFromProto(request.graph_def()));
  Graph part(&worker->options().catalogue->ops());
  WEFT_RETURN_IF_ERROR(ImportGraph(std::move(def), {.allow_internal = true}, &part));
  for (Node* node : part.nodes()) node->set_assigned_device(node->requested_device());
  return worker->RegisterGraph(request.session_handle(), std::move(part),
                               PartOptionsFromConfig(request.config_proto()));
}

void AddGraphMethods(Worker* worker, cluster::DataPlane* plane, wire::MethodTable* methods) {
  AddMethod<tensorflow::RegisterGraphRequest, tensorflow::RegisterGraphResponse>(
      "RegisterGraph", methods,
      [=](auto& request, const wire::ServerCall& call, auto* response) -> Status {
        WEFT_ASSIGN_OR_RETURN(const uint32_t graph, RegisterGraph(worker, plane, request, call));
        response->set_graph_handle(absl::StrCat(graph));
        return absl::OkStatus();
      });
  AddMethod<tensorflow::DeregisterGraphRequest, tensorflow::DeregisterGraphResponse>(
      "DeregisterGraph", methods,
      [=](const auto& request, const wire::ServerCall&, auto*) -> Status {
        uint32_t graph = 0;
        if (!absl::SimpleAtoi(request.graph_handle(), &graph)) {
          return Aborted("Graph handle is not found: ", request.graph_handle());
        }
        return worker->DeregisterGraph(graph);
      });
}

// A master of another cluster says all that the session's tasks are, the one that it asks too.
bool KnowsItself(const tensorflow::ServerDef& server) {
  for (const tensorflow::JobDef& job : server.cluster().job()) {
    if (job.name() == server.job_name() && job.tasks().contains(server.task_index())) return true;
  }
  return false;
}

// The task of that name with its address; none if the cluster there has no such task.
std::optional<std::pair<cluster::TaskId, std::string>> FindMaster(
    const tensorflow::CreateWorkerSessionRequest& request) {
  for (const tensorflow::JobDef& job : request.server_def().cluster().job()) {
    for (const auto& [index, address] : job.tasks()) {
      cluster::TaskId task{job.name(), index};
      if (task.DeviceTask() == request.master_task()) return {{std::move(task), address}};
    }
  }
  return std::nullopt;
}

Status CreateSession(const tensorflow::CreateWorkerSessionRequest& request, Worker* worker,
                     cluster::TaskDirectory* directory, cluster::StepTasks* sessions) {
  WorkerSessionSpec spec{.handle = request.session_handle(),
                         .isolate = request.isolate_session_state(),
                         .master = request.master_task(),
                         .master_incarnation = static_cast<uint64_t>(request.master_incarnation())};
  const bool is_strangers = KnowsItself(request.server_def());
  if (const auto master = FindMaster(request)) {
    if (is_strangers) {
      absl::StrAppend(&spec.master, "@", master->second);
    } else {
      directory->Learn(master->first, master->second);
    }
  }
  WEFT_RETURN_IF_ERROR(worker->CreateSession(spec));
  if (!is_strangers) return absl::OkStatus();
  // After the worker has it: it is forgotten with the worker's.
  return sessions->Describe(spec.handle, request.server_def());
}

void AddSessionMethods(Worker* worker, const cluster::TaskAddress& data,
                       cluster::TaskDirectory* directory, cluster::StepTasks* sessions,
                       std::function<void(wire::GetStatusExtension*)> more,
                       wire::MethodTable* methods) {
  methods->emplace("/tensorflow.WorkerService/GetStatus",
                   wire::Method{[=, &cluster = directory->cluster(),
                                 more = std::move(more)](std::unique_ptr<wire::ServerCall> call) {
                     tensorflow::GetStatusResponse response;
                     for (const DeviceAttributes& device : worker->devices()) {
                       wire::DeviceToProto(device, response.add_device_attributes());
                     }
                     wire::GetStatusExtension extension;
                     extension.mutable_task()->set_task(data.task);
                     extension.mutable_task()->set_data_address(data.address);
                     extension.mutable_task()->set_incarnation(data.incarnation);
                     for (const auto& [task, address] : cluster.tasks())
                       extension.add_cluster_task(task.ToString());
                     more(&extension);
                     wire::Payload payload = wire::SerializeMessage(response);
                     payload.Append(extension.SerializeAsString());
                     call->Reply(absl::OkStatus(), std::move(payload));
                   }});
  AddMethod<tensorflow::CreateWorkerSessionRequest, tensorflow::CreateWorkerSessionResponse>(
      "CreateWorkerSession", methods,
      [=](const auto& request, const wire::ServerCall&, auto*) -> Status {
        return CreateSession(request, worker, directory, sessions);
      });
  AddMethod<tensorflow::DeleteWorkerSessionRequest, tensorflow::DeleteWorkerSessionResponse>(
      "DeleteWorkerSession", methods,
      [=](const auto& request, const wire::ServerCall&, auto*) -> Status {
        sessions->Forget(request.session_handle());
        return worker->DeleteSession(request.session_handle());
      });
  AddMethod<tensorflow::CleanupAllRequest, tensorflow::CleanupAllResponse>(
      "CleanupAll", methods, [=](const auto& request, const wire::ServerCall&, auto*) -> Status {
        worker->Cleanup({request.container().begin(), request.container().end()});
        return absl::OkStatus();
      });
  // Logs and traces are not kept.
  AddMethod<tensorflow::LoggingRequest, tensorflow::LoggingResponse>(
      "Logging", methods,
      [](const auto&, const wire::ServerCall&, auto*) -> Status { return absl::OkStatus(); });
  AddMethod<tensorflow::TracingRequest, tensorflow::TracingResponse>(
      "Tracing", methods,
      [](const auto&, const wire::ServerCall&, auto*) -> Status { return absl::OkStatus(); });
}

}  // namespace

void AddWorkerMethods(Worker* worker, cluster::DataPlane* plane, const cluster::TaskAddress& data,
                      cluster::TaskDirectory* directory, cluster::StepTasks* sessions,
                      std::function<void(wire::GetStatusExtension*)> more,
                      wire::MethodTable* methods) {
  AddSessionMethods(worker, data, directory, sessions, std::move(more), methods);
  AddGraphMethods(worker, plane, methods);
  AddForeignSteps(worker, sessions, methods);
}

}  // namespace weft::worker
