// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/task_directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/graph/device_name.h"
#include "weft/wire/device_proto.h"
#include "weft/wire/step_messages.h"

namespace weft::cluster {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(60);
constexpr absl::Duration kCleanupTimeout = absl::Seconds(10);
constexpr absl::Duration kNagEvery = absl::Seconds(10);
// A task that has moved and says nothing for so long is also looked for where the cluster lists it.
constexpr absl::Duration kLookElsewhere = absl::Seconds(1);
// From process to process of a task that has moved.
constexpr int kMostMoves = 16;

std::string MethodPath(const char* method) {
  return absl::StrCat("/tensorflow.WorkerService/", method);
}

StatusOr<TaskStatus> ReadStatus(const TaskId& task, const wire::ClientReply& reply) {
  tensorflow::GetStatusResponse response;
  wire::GetStatusExtension extension;
  WEFT_RETURN_IF_ERROR(wire::ParseMessage(reply.response(), &response));
  WEFT_RETURN_IF_ERROR(wire::ParseMessage(reply.response(), &extension));
  TaskStatus status{.id = task};
  for (const auto& device : response.device_attributes()) {
    status.devices.push_back(wire::DeviceFromProto(device));
    StatusOr<DeviceName> name = DeviceName::Parse(device.name());
    if (!name.ok() || name->TaskName() != task.DeviceTask()) {
      return FailedPrecondition("The server at the address of ", task.ToString(), " says it is ",
                                device.name(), ": do all tasks have the same cluster?");
    }
  }
  status.data = {task.DeviceTask(), extension.task().data_address(),
                 extension.task().incarnation()};
  // TensorFlow's own tasks are known by their first device.
  if (status.data.address.empty() && !status.devices.empty())
    status.data.incarnation = status.devices.front().incarnation;
  status.cluster.assign(extension.cluster_task().begin(), extension.cluster_task().end());
  status.moved_to = extension.moved_to();
  status.took_over.assign(extension.took_over().begin(), extension.took_over().end());
  return status;
}

// Waits for a task that is not up yet. Asks again, `more` times, where the connection breaks under
// the question: one that a task left behind which has been started again since.
void AskForStatus(std::shared_ptr<wire::GrpcChannel> channel, absl::Time deadline,
                  Cancellation* cancellation, int more, wire::GrpcChannel::Done done) {
  wire::GrpcChannel& connection = *channel;
  connection.Call(
      {.method = MethodPath("GetStatus"),
       .deadline = deadline,
       .wait_for_ready = true,
       .cancellation = cancellation},
      [channel = std::move(channel), deadline, cancellation, more,
       done = std::move(done)](StatusOr<std::unique_ptr<wire::ClientReply>> reply) mutable {
        if (more == 0 || !absl::IsUnavailable(reply.status())) return done(std::move(reply));
        AskForStatus(std::move(channel), deadline, cancellation, more - 1, std::move(done));
      });
}

}  // namespace

TaskDirectory::TaskDirectory(ClusterSpec cluster, TaskId self, WaitRegistry* waits,
                             std::optional<JobIdentity> identity)
    : cluster_(std::move(cluster)),
      self_(std::move(self)),
      waits_(waits),
      identity_(std::move(identity)) {}

std::vector<TaskId> TaskDirectory::OthersMatching(const std::vector<std::string>& filters) const {
  std::vector<TaskId> matching;
  for (const auto& [task, address] : cluster_.tasks()) {
    if (task == self_) continue;
    const DeviceName name{.job = task.job, .replica = 0, .task = task.index};
    const auto matches = [&](const std::string& filter) {
      StatusOr<DeviceName> wanted = DeviceName::Parse(filter);
      if (!wanted.ok()) return false;
      wanted->type.reset();
      wanted->index.reset();
      return wanted->Matches(name);
    };
    if (filters.empty() || std::any_of(filters.begin(), filters.end(), matches))
      matching.push_back(task);
  }
  return matching;
}

StatusOr<std::shared_ptr<wire::GrpcChannel>> TaskDirectory::ChannelTo(const TaskId& task) {
  WEFT_ASSIGN_OR_RETURN(const std::string address, AddressOf(task));
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<wire::GrpcChannel>& channel = channels_[task];
  if (channel == nullptr) {
    channel = wire::GrpcChannel::Connect(address, identity_.has_value() ? &*identity_ : nullptr);
  }
  return channel;
}

StatusOr<std::string> TaskDirectory::AddressOf(const TaskId& task) {
  absl::MutexLock lock(&mutex_);
  const auto moved = moved_.find(task);
  if (moved != moved_.end()) return moved->second;
  return cluster_.AddressOf(task);
}

void TaskDirectory::Learn(const TaskId& task, const std::string& address) {
  if (clusters_may_differ_ && !cluster_.tasks().contains(task)) Moved(task, address);
}

void TaskDirectory::Moved(const TaskId& task, const std::string& address) {
  std::shared_ptr<wire::GrpcChannel> old;  // after the lock
  absl::MutexLock lock(&mutex_);
  std::string& known = moved_[task];
  if (known == address) return;
  WEFT_LOG(INFO) << task.ToString() << " is at " << address << " now";
  known = address;
  old = std::exchange(channels_[task], nullptr);
}

StatusOr<std::vector<TaskStatus>> TaskDirectory::GetStatus(const std::vector<TaskId>& tasks,
                                                           absl::Duration patience,
                                                           Cancellation* cancellation) {
  for (int moves = 0; moves < kMostMoves; ++moves) {
    WEFT_ASSIGN_OR_RETURN(std::vector<TaskStatus> all, AskAll(tasks, patience, cancellation));
    bool all_here = true;
    for (const TaskStatus& status : all) {
      if (status.moved_to.empty()) continue;
      all_here = false;
      Moved(status.id, status.moved_to);
    }
    if (all_here) return all;
  }
  return Unavailable("Tasks move faster than they can be found");
}

// Shared with calls that end after the one who asked has left.
struct TaskDirectory::Answers {
  explicit Answers(Cancellation* parent) : cancellation(parent) {}

  void Take(const TaskId& task, StatusOr<TaskStatus> status) {
    absl::MutexLock lock(&mutex);
    by_task.emplace(task, std::move(status));
  }
  std::vector<TaskId> Late(const std::vector<TaskId>& tasks) {
    std::vector<TaskId> late;
    absl::MutexLock lock(&mutex);
    for (const TaskId& task : tasks) {
      if (!by_task.contains(task)) late.push_back(task);
    }
    return late;
  }
  bool AwaitAll(size_t count, absl::Duration within) {
    absl::MutexLock lock(&mutex);
    const auto all_in = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return by_task.size() == count; };
    return mutex.AwaitWithTimeout(absl::Condition(&all_in), within);
  }

  Cancellation cancellation;  // of the questions
  absl::Mutex mutex;
  std::map<TaskId, StatusOr<TaskStatus>> by_task ABSL_GUARDED_BY(mutex);
  std::set<TaskId> looked_for ABSL_GUARDED_BY(mutex);  // where the cluster lists them, just now
};

void TaskDirectory::AskWhereListed(const TaskId& task, absl::Time deadline,
                                   const std::shared_ptr<Answers>& answers) {
  const StatusOr<std::string> listed = cluster_.AddressOf(task);
  const StatusOr<std::string> known = AddressOf(task);
  if (!listed.ok() || !known.ok() || *listed == *known) return;
  {
    absl::MutexLock lock(&answers->mutex);
    if (!answers->looked_for.insert(task).second) return;
  }
  AskForStatus(wire::GrpcChannel::Connect(*listed, identity_.has_value() ? &*identity_ : nullptr),
               std::min(deadline, absl::Now() + kNagEvery), &answers->cancellation, /*more=*/0,
               [answers, task, known = *known](StatusOr<std::unique_ptr<wire::ClientReply>> reply) {
                 StatusOr<TaskStatus> status =
                     reply.ok() ? ReadStatus(task, **reply) : reply.status();
                 absl::MutexLock lock(&answers->mutex);
                 answers->looked_for.erase(task);
                 // The process that the task left says what is known.
                 if (!status.ok() || status->moved_to == known) return;
                 status->is_where_listed = true;
                 answers->by_task.emplace(task, *std::move(status));
               });
}

StatusOr<std::vector<TaskStatus>> TaskDirectory::AskAll(const std::vector<TaskId>& tasks,
                                                        absl::Duration patience,
                                                        Cancellation* cancellation) {
  const auto answers = std::make_shared<Answers>(cancellation);
  const absl::Time deadline = absl::Now() + patience;
  std::vector<Wait> waits;
  for (const TaskId& task : tasks) {
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<wire::GrpcChannel> channel, ChannelTo(task));
    waits.push_back(waits_->Begin(WaitSubject{
        .waiter = self_.ToString(), .what = "the task to answer", .on = task.ToString()}));
    AskForStatus(channel, deadline, &answers->cancellation, /*more=*/1,
                 [answers, task](StatusOr<std::unique_ptr<wire::ClientReply>> reply) {
                   answers->Take(task, reply.ok() ? ReadStatus(task, **reply) : reply.status());
                 });
  }
  for (absl::Time nag = absl::Now() + kNagEvery;
       !answers->AwaitAll(tasks.size(), kLookElsewhere);) {
    const std::vector<TaskId> late = answers->Late(tasks);
    for (const TaskId& task : late) AskWhereListed(task, deadline, answers);
    if (absl::Now() < nag) continue;
    nag = absl::Now() + kNagEvery;
    for (const TaskId& task : late) {
      WEFT_LOG(INFO) << "CreateSession still waiting for response from worker: "
                     << task.DeviceTask();
    }
  }
  answers->cancellation.Cancel(Cancelled("All tasks have answered"));
  absl::MutexLock lock(&answers->mutex);
  std::vector<TaskStatus> all;
  std::vector<std::string> missing;
  bool waited_in_vain = true;
  for (auto& [task, status] : answers->by_task) {
    if (status.ok()) {
      if (!clusters_may_differ_)
        WEFT_RETURN_IF_ERROR(cluster_.CheckSameTasks(task.ToString(), status->cluster));
      if (status->is_where_listed && status->moved_to.empty()) {
        WEFT_ASSIGN_OR_RETURN(const std::string listed, cluster_.AddressOf(task));
        Moved(task, listed);
      }
      all.push_back(*std::move(status));
    } else if (absl::IsDeadlineExceeded(status.status()) || absl::IsUnavailable(status.status())) {
      const bool is_late = absl::IsDeadlineExceeded(status.status());
      waited_in_vain = waited_in_vain && is_late;
      missing.push_back(
          absl::StrCat(task.ToString(), " at ", AddressOf(task).value_or("?"),
                       is_late ? "" : absl::StrCat(" (", status.status().message(), ")")));
    } else if (absl::IsCancelled(status.status())) {
      return status.status();
    } else {  // something answers there, which may be no weft server
      return Annotate(status.status(), absl::StrCat("Asking ", task.ToString(), " at ",
                                                    AddressOf(task).value_or("?")));
    }
  }
  if (missing.empty()) return all;
  return Unavailable(waited_in_vain
                         ? absl::StrCat("No answer within ", absl::FormatDuration(patience))
                         : "No answer",
                     " from ", absl::StrJoin(missing, ", "), ": is it running?");
}

Status TaskDirectory::Call(const TaskId& task, const char* method, wire::Payload request,
                           absl::Duration timeout, Cancellation* cancellation,
                           google::protobuf::MessageLite* response) {
  return Ask(task, MethodPath(method), std::move(request), timeout, cancellation, response);
}

Status TaskDirectory::Ask(const TaskId& task, const std::string& path, wire::Payload request,
                          absl::Duration timeout, Cancellation* cancellation,
                          google::protobuf::MessageLite* response) {
  const std::string method = path.substr(path.rfind('/') + 1);
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<wire::GrpcChannel> channel, ChannelTo(task));
  const Wait wait = waits_->Begin(WaitSubject{.waiter = self_.ToString(),
                                              .what = absl::StrCat(method, " to answer"),
                                              .on = task.ToString()});
  StatusOr<std::unique_ptr<wire::ClientReply>> reply =
      channel->CallAndWait({.method = path,
                            .request = std::move(request),
                            .deadline = absl::Now() + timeout,
                            .cancellation = cancellation});
  if (!reply.ok()) {
    return Annotate(reply.status(), absl::StrCat("From ", task.DeviceTask(), ":\n", method));
  }
  return wire::ParseMessage((*reply)->response(), response);
}

Status TaskDirectory::CreateWorkerSession(const TaskId& task,
                                          const tensorflow::CreateWorkerSessionRequest& request,
                                          Cancellation* cancellation) {
  tensorflow::CreateWorkerSessionResponse response;
  return Call(task, "CreateWorkerSession", wire::SerializeMessage(request), kCallTimeout,
              cancellation, &response);
}

void TaskDirectory::CallAndForget(const TaskId& task, const char* method, wire::Payload request) {
  StatusOr<std::shared_ptr<wire::GrpcChannel>> channel = ChannelTo(task);
  if (!channel.ok()) return;
  (*channel)->Call({.method = MethodPath(method),
                    .request = std::move(request),
                    .deadline = absl::Now() + kCleanupTimeout},
                   [](const StatusOr<std::unique_ptr<wire::ClientReply>>&) {});
}

void TaskDirectory::DeleteWorkerSession(const TaskId& task, const std::string& handle) {
  tensorflow::DeleteWorkerSessionRequest request;
  request.set_session_handle(handle);
  CallAndForget(task, "DeleteWorkerSession", wire::SerializeMessage(request));
}

void TaskDirectory::DeregisterGraph(const TaskId& task, const std::string& session,
                                    const std::string& graph) {
  tensorflow::DeregisterGraphRequest request;
  request.set_graph_handle(graph);
  request.set_session_handle(session);
  request.set_create_worker_session_called(true);
  CallAndForget(task, "DeregisterGraph", wire::SerializeMessage(request));
}

StatusOr<std::string> TaskDirectory::RegisterGraph(const TaskId& task,
                                                   const tensorflow::RegisterGraphRequest& request,
                                                   const wire::RegisterGraphExtension& extension,
                                                   Cancellation* cancellation) {
  wire::Payload payload = wire::SerializeMessage(request);
  payload.Append(extension.SerializeAsString());
  tensorflow::RegisterGraphResponse response;
  WEFT_RETURN_IF_ERROR(
      Call(task, "RegisterGraph", std::move(payload), kCallTimeout, cancellation, &response));
  return response.graph_handle();
}

void TaskDirectory::RunGraph(
    const TaskId& task, const tensorflow::RunGraphRequest& request,
    std::shared_ptr<Cancellation> cancellation,
    absl::AnyInvocable<void(StatusOr<tensorflow::RunGraphResponse>)> done) {
  const StatusOr<std::shared_ptr<wire::GrpcChannel>> channel = ChannelTo(task);
  if (!channel.ok()) return done(channel.status());
  Cancellation* const cancelled = cancellation.get();
  (*channel)->Call({.method = MethodPath("RunGraph"),
                    .request = wire::SerializeMessage(request),
                    .cancellation = cancelled},
                   [cancellation = std::move(cancellation), done = std::move(done)](
                       StatusOr<std::unique_ptr<wire::ClientReply>> reply) mutable {
                     if (!reply.ok()) return done(reply.status());
                     tensorflow::RunGraphResponse response;
                     const Status parsed = wire::ParseMessage((*reply)->response(), &response);
                     if (!parsed.ok()) return done(parsed);
                     if (response.status_code() != tensorflow::error::OK) {
                       return done(Status(static_cast<absl::StatusCode>(response.status_code()),
                                          response.status_error_message()));
                     }
                     done(std::move(response));
                   });
}

void TaskDirectory::Pull(int64_t step, const RendezvousKey& key,
                         std::shared_ptr<Cancellation> cancellation, ReceiveCallback done) {
  const StatusOr<DeviceName> from = DeviceName::Parse(key.send_device);
  if (!from.ok()) return done(from.status(), false);
  if (!from->job || !from->task)
    return done(InvalidArgument("Not a device of a task: ", key.send_device), false);
  const StatusOr<std::shared_ptr<wire::GrpcChannel>> channel = ChannelTo({*from->job, *from->task});
  if (!channel.ok()) return done(channel.status(), false);
  tensorflow::RecvTensorRequest request;
  request.set_step_id(step);
  request.set_rendezvous_key(key.ToString());
  Cancellation* const cancelled = cancellation.get();
  (*channel)->Call(
      {.method = MethodPath("RecvTensor"),
       .request = wire::SerializeMessage(request),
       .cancellation = cancelled},
      [cancellation = std::move(cancellation), task = from->TaskName(),
       done = std::move(done)](StatusOr<std::unique_ptr<wire::ClientReply>> reply) mutable {
        if (!reply.ok()) {
          return done(cancellation->IsCancelled()
                          ? cancellation->status()
                          : Annotate(reply.status(), absl::StrCat("A tensor of ", task)),
                      false);
        }
        StatusOr<wire::ReceivedTensor> received = wire::ParseRecvTensorReply((*reply)->response());
        if (!received.ok()) return done(received.status(), false);
        done(std::move(received->tensor), received->is_dead);
      });
}

void TaskDirectory::CleanupGraph(const TaskId& task, int64_t step) {
  tensorflow::CleanupGraphRequest request;
  request.set_step_id(step);
  CallAndForget(task, "CleanupGraph", wire::SerializeMessage(request));
}

Status TaskDirectory::CleanupAll(const TaskId& task, const std::vector<std::string>& containers,
                                 Cancellation* cancellation) {
  tensorflow::CleanupAllRequest request;
  for (const std::string& container : containers) request.add_container(container);
  tensorflow::CleanupAllResponse response;
  return Call(task, "CleanupAll", wire::SerializeMessage(request), kCleanupTimeout, cancellation,
              &response);
}

}  // namespace weft::cluster
