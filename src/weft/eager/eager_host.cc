// SPDX-License-Identifier: Apache-2.0
#include "weft/eager/eager_host.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/wire/device_proto.h"
#include "weft/wire/step_messages.h"
#include "weft/worker/foreign_steps.h"

namespace weft::eager {
namespace {

namespace proto = tensorflow::eager;

constexpr absl::Duration kLeastKeepAlive = absl::Seconds(60);

// `handle(request, caller, &response)` is all of a method; on a stream, of each message.
template <typename Request, typename Response, typename Handle>
void AddMethod(const char* name, bool streams, wire::MethodTable* methods, Handle handle) {
  wire::Method method(
      [handle](std::unique_ptr<wire::ServerCall> call) {
        Request request;
        Response response;
        Status status = wire::ParseMessage(call->request(), &request);
        if (status.ok()) status = handle(request, &call->cancellation(), &response);
        call->Reply(status, status.ok() ? wire::SerializeMessage(response) : wire::Payload());
      },
      /*blocks=*/true);
  method.streams = streams;
  methods->emplace(absl::StrCat("/tensorflow.eager.EagerService/", name), std::move(method));
}

Status Do(const proto::QueueItem& item, EagerContext* context, Cancellation* caller,
          proto::QueueResponse* response) {
  switch (item.item_case()) {
    case proto::QueueItem::kOperation:
      return context->Run(item.operation(), caller, response);
    case proto::QueueItem::kHandleToDecref:
      return context->Release(item.handle_to_decref().op_id(),
                              item.handle_to_decref().output_num());
    case proto::QueueItem::kSendTensor:
      return context->Put(item.send_tensor());
    case proto::QueueItem::kRegisterFunction:
      return context->AddFunctions(item.register_function());
    case proto::QueueItem::kCleanupFunction:
      context->CleanUp(item.cleanup_function().step_id());
      return absl::OkStatus();
    case proto::QueueItem::kRemoveFunction:
    case proto::QueueItem::kSyncRemoteExecutorForStream:
      // Functions stay as long as the context; and what was asked before has been done.
      return absl::OkStatus();
    case proto::QueueItem::kSendPackedHandle:
      return Unimplemented("Handles of several devices as one are not taken");
    case proto::QueueItem::ITEM_NOT_SET:
      return InvalidArgument("A queue item that asks for nothing");
  }
  return InvalidArgument("A queue item of an unknown kind");
}

}  // namespace

StatusOr<std::shared_ptr<EagerContext>> EagerHost::Find(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) {
    // Clients tell by these words that the task was started anew.
    return Aborted("Unable to find a context_id matching the specified one (", id,
                   "). Perhaps the worker was restarted, or the context was GC'd?");
  }
  found->second->Touch();
  return found->second;
}

size_t EagerHost::num_contexts() {
  absl::MutexLock lock(&mutex_);
  return contexts_.size();
}

Status EagerHost::Create(const proto::CreateContextRequest& request,
                         proto::CreateContextResponse* response) {
  const auto context = std::make_shared<EagerContext>(
      environment_, request.context_id(),
      std::max(kLeastKeepAlive, absl::Seconds(request.keep_alive_secs())));
  context->set_view(request.context_view_id());
  std::shared_ptr<EagerContext> replaced;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = contexts_.find(request.context_id());
    if (found != contexts_.end() && request.context_view_id() < found->second->view())
      return InvalidArgument("EagerService:CreateContext failed. Context id: <",
                             request.context_id(), "> already exists.");
    if (found != contexts_.end()) {
      replaced = std::move(found->second);
      contexts_.erase(found);
    }
  }
  replaced.reset();
  WEFT_RETURN_IF_ERROR(tasks_.Describe(request.context_id(), request.server_def()));
  WEFT_RETURN_IF_ERROR(context->Open());
  for (const DeviceAttributes& device : environment_.worker->devices())
    wire::DeviceToProto(device, response->add_device_attributes());
  absl::MutexLock lock(&mutex_);
  contexts_[request.context_id()] = context;
  return absl::OkStatus();
}

Status EagerHost::Update(const proto::UpdateContextRequest& request,
                         proto::UpdateContextResponse* response) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<EagerContext> context, Find(request.context_id()));
  context->set_view(request.context_view_id());
  if (request.has_server_def()) {
    WEFT_RETURN_IF_ERROR(tasks_.Describe(request.context_id(), request.server_def()));
    context->FollowTasks();
  }
  for (const DeviceAttributes& device : environment_.worker->devices())
    wire::DeviceToProto(device, response->add_device_attributes());
  return absl::OkStatus();
}

Status EagerHost::Close(const proto::CloseContextRequest& request) {
  std::shared_ptr<EagerContext> closed;
  absl::MutexLock lock(&mutex_);
  const auto found = contexts_.find(request.context_id());
  if (found == contexts_.end()) return absl::OkStatus();
  // It has been updated since.
  if (request.context_view_id() < found->second->view()) return absl::OkStatus();
  closed = std::move(found->second);
  contexts_.erase(found);
  tasks_.Forget(request.context_id());
  closed->Cancel(Cancelled("The context was closed"));
  return absl::OkStatus();
}

Status EagerHost::Enqueue(const proto::EnqueueRequest& request, Cancellation* caller,
                          proto::EnqueueResponse* response) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<EagerContext> context, Find(request.context_id()));
  for (const proto::QueueItem& item : request.queue())
    WEFT_RETURN_IF_ERROR(Do(item, context.get(), caller, response->add_queue_response()));
  return absl::OkStatus();
}

void EagerHost::AddMethods(wire::MethodTable* methods) {
  AnswerForContexts(methods);
  AddMethod<proto::CreateContextRequest, proto::CreateContextResponse>(
      "CreateContext", false, methods, [this](const auto& request, Cancellation*, auto* response) {
        return Create(request, response);
      });
  AddMethod<proto::UpdateContextRequest, proto::UpdateContextResponse>(
      "UpdateContext", false, methods, [this](const auto& request, Cancellation*, auto* response) {
        return Update(request, response);
      });
  const auto enqueue = [this](const auto& request, Cancellation* caller, auto* response) {
    const Status status = Enqueue(request, caller, response);
    if (environment_.worker->options().ran) environment_.worker->options().ran();
    return status;
  };
  AddMethod<proto::EnqueueRequest, proto::EnqueueResponse>("Enqueue", false, methods, enqueue);
  AddMethod<proto::EnqueueRequest, proto::EnqueueResponse>("StreamingEnqueue", true, methods,
                                                           enqueue);
  // Calls are answered when they have run, so that none is left to wait for.
  AddMethod<proto::WaitQueueDoneRequest, proto::WaitQueueDoneResponse>(
      "WaitQueueDone", false, methods, [this](const auto& request, Cancellation*, auto*) {
        return Find(request.context_id()).status();
      });
  AddComponentMethod(methods);
  AddMethod<proto::KeepAliveRequest, proto::KeepAliveResponse>(
      "KeepAlive", false, methods,
      [this](const auto& request, Cancellation*, auto* response) -> Status {
        WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<EagerContext> context,
                              Find(request.context_id()));
        response->set_context_view_id(context->view());
        return absl::OkStatus();
      });
  AddMethod<proto::CloseContextRequest, proto::CloseContextResponse>(
      "CloseContext", false, methods,
      [this](const auto& request, Cancellation*, auto*) { return Close(request); });
}

// Holds no thread while it waits for the other parts of its function.
void EagerHost::AddComponentMethod(wire::MethodTable* methods) {
  wire::Method method(
      [this](std::unique_ptr<wire::ServerCall> call) {
        proto::RunComponentFunctionRequest request;
        const Status parsed = wire::ParseMessage(call->request(), &request);
        if (!parsed.ok()) return call->Reply(parsed, wire::Payload());
        StatusOr<std::shared_ptr<EagerContext>> context = Find(request.context_id());
        if (!context.ok()) return call->Reply(context.status(), wire::Payload());
        Cancellation* const caller = &call->cancellation();
        EagerContext& running = **context;
        running.RunComponent(
            request, caller,
            [call = std::move(call), context = *std::move(context),
             ran = environment_.worker->options().ran](
                const StatusOr<proto::RunComponentFunctionResponse>& response) {
              if (ran) ran();
              call->Reply(response.status(),
                          response.ok() ? wire::SerializeMessage(*response) : wire::Payload());
            });
      },
      /*blocks=*/true);
  methods->emplace("/tensorflow.eager.EagerService/RunComponentFunction", std::move(method));
}

// A context's number is that of the step in which its tensors lie.
void EagerHost::AnswerForContexts(wire::MethodTable* methods) {
  const auto found = methods->find("/tensorflow.WorkerService/RecvTensor");
  if (found == methods->end()) return;
  found->second.handle =
      [this, others = std::move(found->second.handle)](std::unique_ptr<wire::ServerCall> call) {
        tensorflow::RecvTensorRequest request;
        const Status parsed = wire::ParseMessage(call->request(), &request);
        std::shared_ptr<EagerContext> context;
        if (parsed.ok()) {
          absl::MutexLock lock(&mutex_);
          const auto of_step = contexts_.find(static_cast<uint64_t>(request.step_id()));
          if (of_step != contexts_.end()) context = of_step->second;
        }
        if (context == nullptr) return others(std::move(call));
        worker::AnswerRecvTensor(
            *environment_.worker, request, [&] { return context->rendezvous(); }, std::move(call));
      };
}

void EagerHost::Sweep() {
  std::vector<std::shared_ptr<EagerContext>> expired;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, context] : contexts_) {
    if (!context->IsExpired()) continue;
    expired.push_back(context);
    tasks_.Forget(id);
  }
  absl::erase_if(contexts_, [](const auto& entry) { return entry.second->IsExpired(); });
}

void EagerHost::Shutdown() {
  absl::flat_hash_map<uint64_t, std::shared_ptr<EagerContext>> all;
  {
    absl::MutexLock lock(&mutex_);
    all.swap(contexts_);
  }
  for (const auto& [id, context] : all) context->Cancel(Cancelled("The server is shutting down"));
}

}  // namespace weft::eager
