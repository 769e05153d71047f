// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/foreign_steps.h"

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"

#include "proto/tensorflow/config.pb.h"
#include "proto/tensorflow/worker.pb.h"
#include "weft/wire/run_metadata_proto.h"
#include "weft/wire/step_messages.h"

namespace weft::worker {
namespace {

using rendezvous::EdgeKey;
using rendezvous::StepRendezvous;

using Call = std::unique_ptr<wire::ServerCall>;

void AddHandler(const char* name, wire::MethodTable* methods, std::function<void(Call)> handle) {
  methods->emplace(absl::StrCat("/tensorflow.WorkerService/", name),
                   wire::Method{std::move(handle)});
}

// A call that one of two answers: what it waits for, or its end.
class OneReply {
 public:
  explicit OneReply(Call call) : call_(std::move(call)) {}

  void Reply(const Status& status, wire::Payload payload) {
    if (!replied_.exchange(true)) call_->Reply(status, std::move(payload));
  }
  wire::ServerCall& call() { return *call_; }

 private:
  const Call call_;
  std::atomic<bool> replied_{false};
};

// The values that a RunGraph asks back, as they come.
struct Wanted {
  absl::Mutex mutex;
  std::map<std::string, StatusOr<Tensor>> values ABSL_GUARDED_BY(mutex);
};

// One RunGraph from its request to its answer.
class GraphRun : public std::enable_shared_from_this<GraphRun> {
 public:
  GraphRun(Worker* worker, cluster::StepTasks* tasks, Call call)
      : worker_(worker),
        tasks_(tasks),
        call_(std::move(call)),
        cancellation_(std::make_shared<Cancellation>()) {}

  void Start() {
    TaskStep step;
    const Status ready = Prepare(&step);
    if (!ready.ok()) {
      tasks_->End(step_);
      return call_->Reply(ready, wire::Payload());
    }
    step.source = tasks_;
    step.cancellation = cancellation_;
    watching_ = call_->cancellation().Register(
        &token_, [weak = std::weak_ptr<Cancellation>(cancellation_)](const Status& why) {
          if (const auto alive = weak.lock()) alive->Cancel(why);
        });
    if (!watching_) cancellation_->Cancel(call_->cancellation().status());
    worker_->RunStep(std::move(step), [self = shared_from_this()](step::PartReport report) {
      self->End(std::move(report));
    });
  }

 private:
  Status Prepare(TaskStep* step) {
    wire::RunGraphMessage message;
    WEFT_RETURN_IF_ERROR(wire::ParseRunGraph(call_->request(), &message));
    const tensorflow::RunGraphRequest& request = message.rest;
    if (request.is_partial()) {
      return Unimplemented("A weft server has no partial runs for masters of TensorFlow's own");
    }
    if (!absl::SimpleAtoi(request.graph_handle(), &step->graph)) {
      return Aborted("Graph handle is not found: ", request.graph_handle());
    }
    step->step = step_ = request.step_id();
    tasks_->Begin(step_, request.session_handle());
    step->trace = request.exec_opts().record_timeline() || request.exec_opts().record_costs();
    step->partition_graphs = request.exec_opts().record_partition_graphs();
    if (message.sends.empty() && request.recv_key().empty()) return absl::OkStatus();
    const Ref<StepRendezvous> rendezvous = worker_->RendezvousOf(request.step_id());
    if (!rendezvous) return Aborted("Step ", request.step_id(), " is over at ", worker_->task());
    for (wire::NamedTensor& sent : message.sends) {
      WEFT_ASSIGN_OR_RETURN(const RendezvousKey key, RendezvousKey::Parse(sent.name));
      WEFT_RETURN_IF_ERROR(rendezvous->Deliver(EdgeKey::Of(key), std::move(sent.tensor), false));
    }
    for (const std::string& name : request.recv_key()) {
      WEFT_ASSIGN_OR_RETURN(const RendezvousKey key, RendezvousKey::Parse(name));
      names_.push_back(name);
      rendezvous->Receive(key, [wanted = wanted_, name](StatusOr<Tensor> value, bool is_dead) {
        if (is_dead) value = InvalidArgument("The tensor returned for ", name, " was not valid.");
        absl::MutexLock lock(&wanted->mutex);
        wanted->values.insert_or_assign(name, std::move(value));
      });
    }
    return absl::OkStatus();
  }

  void End(step::PartReport report) {
    if (watching_) call_->cancellation().Deregister(token_);
    tasks_->End(step_);
    wire::Payload payload;
    Status status = report.status;
    if (status.ok()) status = Answer(report, &payload);
    call_->Reply(status, status.ok() ? std::move(payload) : wire::Payload());
  }

  Status Answer(const step::PartReport& report, wire::Payload* payload) {
    WEFT_ASSIGN_OR_RETURN(const std::string told, wire::SerializeRunMetadata(report.metadata));
    tensorflow::RunMetadata metadata;
    if (!metadata.ParseFromString(told)) return Internal("The trace of a step is malformed");
    tensorflow::RunGraphResponse response;
    response.mutable_step_stats()->Swap(metadata.mutable_step_stats());
    response.mutable_partition_graph()->Swap(metadata.mutable_partition_graphs());
    payload->Append(response.SerializeAsString());
    absl::MutexLock lock(&wanted_->mutex);
    for (const std::string& name : names_) {
      const auto found = wanted_->values.find(name);
      if (found == wanted_->values.end()) return Internal("The step made no tensor for ", name);
      WEFT_RETURN_IF_ERROR(found->second.status());
      WEFT_RETURN_IF_ERROR(wire::AppendNamedTensor(tensorflow::RunGraphResponse::kRecvFieldNumber,
                                                   name, *found->second, payload));
    }
    return absl::OkStatus();
  }

  Worker* const worker_;
  cluster::StepTasks* const tasks_;
  const Call call_;
  int64_t step_ = 0;
  const std::shared_ptr<Cancellation> cancellation_;  // shared with who cancels the step late
  Cancellation::Token token_ = 0;
  bool watching_ = false;
  std::vector<std::string> names_;
  const std::shared_ptr<Wanted> wanted_ = std::make_shared<Wanted>();  // shared with the rendezvous
};

// The device of `key` is one of this task, and the process that the asker means.
Status CheckSource(const Worker& worker, const RendezvousKey& key) {
  for (const DeviceAttributes& device : worker.devices()) {
    if (device.name != key.send_device) continue;
    if (key.send_incarnation == device.incarnation) return absl::OkStatus();
    return Aborted("RecvTensor expects a different device incarnation: ", key.send_incarnation,
                   " vs. ", device.incarnation, ". Your worker job (\"", worker.task(),
                   "\") was probably restarted. Check your worker job for the reason why it was "
                   "restarted.");
  }
  return InvalidArgument("There is no device ", key.send_device, " at ", worker.task());
}

void SendTensor(Worker* worker, Call incoming) {
  tensorflow::RecvTensorRequest request;
  const Status parsed = wire::ParseMessage(incoming->request(), &request);
  if (!parsed.ok()) return incoming->Reply(parsed, wire::Payload());
  AnswerRecvTensor(
      *worker, request, [&] { return worker->RendezvousOf(request.step_id()); },
      std::move(incoming));
}

// The next number of each graph: from a random start, so that no process repeats another's.
class StepSequences {
 public:
  int64_t Next(int64_t graph) {
    absl::MutexLock lock(&mutex_);
    const auto [it, added] = next_.try_emplace(graph, 0);
    if (added) it->second = static_cast<int64_t>(std::random_device()()) << 20;
    return it->second++;
  }

 private:
  absl::Mutex mutex_;
  std::map<int64_t, int64_t> next_ ABSL_GUARDED_BY(mutex_);
};

template <typename Request>
bool Parse(wire::ServerCall& call, Request* request) {
  const Status parsed = wire::ParseMessage(call.request(), request);
  if (!parsed.ok()) call.Reply(parsed, wire::Payload());
  return parsed.ok();
}

}  // namespace

void AnswerRecvTensor(const Worker& worker, const tensorflow::RecvTensorRequest& request,
                      absl::FunctionRef<Ref<StepRendezvous>()> find,
                      std::unique_ptr<wire::ServerCall> incoming) {
  const StatusOr<RendezvousKey> key = RendezvousKey::Parse(request.rendezvous_key());
  Status status = key.ok() ? CheckSource(worker, *key) : key.status();
  const Ref<StepRendezvous> rendezvous = status.ok() ? find() : Ref<StepRendezvous>();
  if (status.ok() && !rendezvous)
    status = Aborted("Step ", request.step_id(), " is over at ", worker.task());
  if (!status.ok()) return incoming->Reply(status, wire::Payload());
  auto call = std::make_shared<OneReply>(std::move(incoming));  // shared with what ends it
  Cancellation::Token token = 0;
  // The asker's step has ended: nobody waits for the tensor any more.
  if (!call->call().cancellation().Register(
          &token, [weak = std::weak_ptr<OneReply>(call)](const Status& why) {
            if (const auto alive = weak.lock()) alive->Reply(why, wire::Payload());
          })) {
    return call->Reply(call->call().cancellation().status(), wire::Payload());
  }
  rendezvous->Receive(*key, [call](StatusOr<Tensor> tensor, bool is_dead) {
    if (!tensor.ok()) return call->Reply(tensor.status(), wire::Payload());
    StatusOr<wire::Payload> payload = wire::RecvTensorReply(*tensor, is_dead);
    call->Reply(payload.status(), payload.ok() ? *std::move(payload) : wire::Payload());
  });
}

void AddForeignSteps(Worker* worker, cluster::StepTasks* tasks, wire::MethodTable* methods) {
  AddHandler("RunGraph", methods, [=](Call call) {
    std::make_shared<GraphRun>(worker, tasks, std::move(call))->Start();
  });
  AddHandler("RecvTensor", methods, [=](Call call) { SendTensor(worker, std::move(call)); });
  AddHandler("CleanupGraph", methods, [=](Call call) {
    tensorflow::CleanupGraphRequest request;
    if (!Parse(*call, &request)) return;
    worker->AbortStep(request.step_id(), Cancelled("Its master has ended the step"));
    call->Reply(absl::OkStatus(), wire::Payload());
  });
  // No answer of ours asks for an acknowledgement.
  AddHandler("MarkRecvFinished", methods,
             [](Call call) { call->Reply(absl::OkStatus(), wire::Payload()); });
  AddHandler("GetStepSequence", methods,
             [sequences = std::make_shared<StepSequences>()](Call call) {
               tensorflow::GetStepSequenceRequest request;
               if (!Parse(*call, &request)) return;
               tensorflow::GetStepSequenceResponse response;
               for (const int64_t graph : request.graph_key()) {
                 tensorflow::StepSequence* next = response.add_step_sequence();
                 next->set_graph_key(graph);
                 next->set_next_step_id(sequences->Next(graph));
               }
               call->Reply(absl::OkStatus(), wire::SerializeMessage(response));
             });
  for (const char* name : {"RecvBuf", "CompleteGroup", "CompleteInstance"}) {
    AddHandler(name, methods, [name](Call call) {
      call->Reply(Unimplemented("A weft server takes no part in TensorFlow's collectives (", name,
                                "): they need tasks of TensorFlow's own"),
                  wire::Payload());
    });
  }
}

}  // namespace weft::worker
