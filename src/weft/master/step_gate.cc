// SPDX-License-Identifier: Apache-2.0
#include "weft/master/step_gate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "proto/weft/handover.pb.h"
#include "weft/graph/device_name.h"
#include "weft/wire/step_messages.h"

namespace weft::master {
namespace {

// For steps that run to end.
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kMostLease = absl::Minutes(2);
// Between two looks whether nobody waits for the step any more.
constexpr absl::Duration kLook = absl::Milliseconds(100);

}  // namespace

bool StepGate::Enter(const Tasks& tasks, StepRunner::Step* step, StepRunner::Done* done,
                     Again again) {
  std::shared_ptr<Cancellation> cancellation = step->cancellation;
  std::string task;
  int64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto held = std::find_if(tasks.begin(), tasks.end(), [&](const StepParts::Remote& one) {
      return held_.contains(one.task);
    });
    if (held == tasks.end()) {
      for (const StepParts::Remote& one : tasks) ++running_[one.task];
      return true;
    }
    task = held->task;
    number = next_++;
    held_[task].waiting.emplace(
        number, Waiting{.step = std::move(*step),
                        .done = std::move(*done),
                        .again = std::move(again),
                        .wait = waits_->Begin(WaitSubject{
                            .waiter = self_, .what = "the task's next process", .on = task})});
  }
  Cancellation::Token token = 0;
  const bool watches = cancellation->Register(
      &token, [this, task, number](const Status& why) { Cancelled(task, number, why); });
  if (!watches) {
    Cancelled(task, number, cancellation->status());
    return false;
  }
  {
    absl::MutexLock lock(&mutex_);
    const auto held = held_.find(task);
    if (held != held_.end()) {
      const auto waiting = held->second.waiting.find(number);
      if (waiting != held->second.waiting.end()) {
        waiting->second.token = token;
        waiting->second.watches = true;
        return false;
      }
    }
  }
  cancellation->Deregister(token);  // it went on meanwhile
  return false;
}

void StepGate::Cancelled(const std::string& task, int64_t number, const Status& why) {
  Waiting cancelled;
  {
    absl::MutexLock lock(&mutex_);
    const auto held = held_.find(task);
    if (held == held_.end()) return;
    const auto waiting = held->second.waiting.find(number);
    if (waiting == held->second.waiting.end()) return;
    cancelled = std::move(waiting->second);
    held->second.waiting.erase(waiting);
  }
  setup_->Schedule([cancelled = std::move(cancelled), why]() mutable {
    cancelled.wait.End();
    cancelled.done(why);
  });
}

void StepGate::Leave(const Tasks& tasks) {
  absl::MutexLock lock(&mutex_);
  for (const StepParts::Remote& one : tasks) End(one.task);
}

void StepGate::End(const std::string& task) {
  const auto found = running_.find(task);
  if (found != running_.end() && --found->second == 0) running_.erase(found);
}

Status StepGate::EnterSetup(const std::vector<std::string>& tasks, Cancellation* cancellation) {
  absl::MutexLock lock(&mutex_);
  const auto free = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return std::none_of(tasks.begin(), tasks.end(),
                        [&](const std::string& task) { return held_.contains(task); });
  };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&free), kLook)) {
    if (cancellation->IsCancelled()) return cancellation->status();
  }
  for (const std::string& task : tasks) ++running_[task];
  return absl::OkStatus();
}

void StepGate::LeaveSetup(const std::vector<std::string>& tasks) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& task : tasks) End(task);
}

Status StepGate::Hold(const std::string& task, absl::Duration lease) {
  {
    absl::MutexLock lock(&mutex_);
    const uint64_t number = ++leases_;
    held_[task].lease = number;
    timers_->Schedule(std::clamp(lease, kPatience, kMostLease),
                      [this, task, number] { LeaseOver(task, number); });
    const auto idle = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !running_.contains(task); };
    if (mutex_.AwaitWithTimeout(absl::Condition(&idle), kPatience)) return absl::OkStatus();
  }
  Release(task);
  return DeadlineExceeded("A step that ", self_, " has started and that needs ", task,
                          " still runs after ", absl::FormatDuration(kPatience),
                          ": the task cannot go to another process meanwhile");
}

void StepGate::LeaseOver(const std::string& task, uint64_t lease) {
  {
    absl::MutexLock lock(&mutex_);
    const auto held = held_.find(task);
    if (held == held_.end() || held->second.lease != lease) return;
  }
  WEFT_LOG(WARNING) << "Steps that need " << task
                    << " go on: nothing more was heard of where the task goes";
  Release(task);
}

void StepGate::Release(const std::string& task) {
  Held released;
  {
    absl::MutexLock lock(&mutex_);
    const auto held = held_.find(task);
    if (held == held_.end()) return;
    released = std::move(held->second);
    held_.erase(held);
  }
  for (auto& [number, waiting] : released.waiting) {
    if (waiting.watches) waiting.step.cancellation->Deregister(waiting.token);
    setup_->Schedule([waiting = std::move(waiting)]() mutable {
      waiting.wait.End();
      waiting.again(std::move(waiting.step), std::move(waiting.done));
    });
  }
}

void StepGate::Watch(const void* session, std::function<void(const std::string&)> moved) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_[session] = std::move(moved);
}

void StepGate::Unwatch(const void* session) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_.erase(session);
}

void StepGate::Moved(const std::string& task) {
  absl::MutexLock lock(&watchers_mutex_);
  for (const auto& [session, moved] : watchers_) moved(task);
}

void AddGateMethods(StepGate* gate, cluster::TaskDirectory* directory, wire::MethodTable* methods) {
  const auto add = [methods](const char* name, auto handle) {
    methods->emplace(absl::StrCat("/weft.Steps/", name),
                     wire::Method{[handle](std::unique_ptr<wire::ServerCall> call) {
                                    wire::HandoverNotice notice;
                                    Status status = wire::ParseMessage(call->request(), &notice);
                                    if (status.ok()) status = handle(notice);
                                    call->Reply(status, wire::Payload());
                                  },
                                  /*may_block=*/true});
  };
  add("Hold", [gate](const wire::HandoverNotice& notice) {
    return gate->Hold(notice.task(), absl::Milliseconds(notice.hold_ms()));
  });
  add("End", [gate, directory](const wire::HandoverNotice& notice) -> Status {
    if (!notice.address().empty()) {
      WEFT_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(notice.task()));
      if (!name.job || !name.task) return InvalidArgument("Not a task: ", notice.task());
      directory->Moved({*name.job, *name.task}, notice.address());
      gate->Moved(notice.task());
    }
    gate->Release(notice.task());
    return absl::OkStatus();
  });
}

}  // namespace weft::master
