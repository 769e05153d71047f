// SPDX-License-Identifier: Apache-2.0
#include "weft/master/master_session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"

namespace weft::master {

namespace {
constexpr size_t kRecentRequests = 4096;
}  // namespace

// One running step: its cancellation and everything that may trigger it.
struct MasterSession::Step {
  explicit Step(std::shared_ptr<MasterSession> owner) : session(std::move(owner)) {}
  ~Step() {
    if (watches_session) session->cancellation_.Deregister(session_token);
  }
  const std::shared_ptr<MasterSession> session;  // shared: it must outlive what its steps register
  // Not a child of the session's: what ends the step frees it, maybe inside of its own Cancel, so
  // whoever cancels holds the step meanwhile.
  Cancellation cancellation;
  Cancellation::Token session_token = 0;
  bool watches_session = false;
  Cancellation* caller = nullptr;
  Cancellation::Token caller_token = 0;
  bool watches_caller = false;
  TimerQueue::Id timer = 0;
  Done done;
};

MasterSession::MasterSession(std::string handle, tensorflow::ConfigProto config,
                             std::unique_ptr<StepRunner> runner, TimerQueue* timers)
    : handle_(std::move(handle)),
      config_(std::move(config)),
      runner_(std::move(runner)),
      timers_(timers),
      last_used_(absl::Now()) {}

Status MasterSession::Create(GraphDef graph, Cancellation* caller) {
  absl::MutexLock lock(&extend_mutex_);
  return runner_->Extend(std::move(graph), caller);
}

StatusOr<int64_t> MasterSession::Extend(GraphDef graph, int64_t expected_version,
                                        Cancellation* caller) {
  absl::MutexLock lock(&extend_mutex_);
  {
    absl::MutexLock state(&mutex_);
    if (closed_) return FailedPrecondition("Session is closed.");
    last_used_ = absl::Now();
  }
  if (version_ != expected_version) {
    return Aborted("Current version is ", version_, " but caller expected ", expected_version, ".");
  }
  WEFT_RETURN_IF_ERROR(runner_->Extend(std::move(graph), caller));
  return ++version_;
}

void MasterSession::Run(SessionStep request, Done done) {
  const bool is_open = [&] {
    absl::MutexLock lock(&mutex_);
    if (!closed_) ++running_;
    return !closed_;
  }();
  if (!is_open) return done(FailedPrecondition("Session is closed."));
  auto step = std::make_shared<Step>(shared_from_this());  // shared by whatever may end it
  step->done = std::move(done);
  step->caller = request.caller;
  const std::weak_ptr<Step> weak = step;
  const auto cancel = [weak](const Status& reason) {
    if (const auto alive = weak.lock()) alive->cancellation.Cancel(reason);
  };
  step->watches_session = cancellation_.Register(&step->session_token, cancel);
  if (!step->watches_session) {
    EndStep(step, cancellation_.status());
    return;
  }
  if (request.caller != nullptr) {
    step->watches_caller = request.caller->Register(&step->caller_token, cancel);
    if (!step->watches_caller) {
      EndStep(step, request.caller->status());
      return;
    }
  }
  if (request.timeout != absl::InfiniteDuration()) {
    const absl::Duration timeout = request.timeout;
    step->timer = timers_->Schedule(timeout, [weak, timeout] {
      if (const auto alive = weak.lock()) {
        alive->cancellation.Cancel(DeadlineExceeded("The step did not end in time, its limit was ",
                                                    absl::FormatDuration(timeout)));
      }
    });
  }
  StepRunner::Step inner{.feeds = std::move(request.feeds),
                         .fetches = std::move(request.fetches),
                         .targets = std::move(request.targets),
                         .trace = request.trace,
                         .partition_graphs = request.partition_graphs,
                         .cancellation = {step, &step->cancellation}};
  runner_->Run(std::move(inner), [step](StatusOr<StepResult> result) {
    step->session->EndStep(step, std::move(result));
  });
}

void MasterSession::EndStep(const std::shared_ptr<Step>& step, StatusOr<StepResult> result) {
  if (step->watches_caller) step->caller->Deregister(step->caller_token);
  if (step->timer != 0) timers_->Cancel(step->timer);
  // What the ops say of a step that was stopped hides who stopped it.
  if (!result.ok() && step->cancellation.IsCancelled()) result = step->cancellation.status();
  Done done = std::move(step->done);
  done(std::move(result));
  std::vector<absl::AnyInvocable<void()>> closed;
  {
    absl::MutexLock lock(&mutex_);
    last_used_ = absl::Now();
    if (--running_ == 0 && closed_) closed = std::exchange(when_closed_, {});
  }
  for (auto& call : closed) call();
}

StatusOr<int64_t> MasterSession::MakeCallable(tensorflow::CallableOptions options,
                                              int64_t request_id) {
  if (options.tensor_connection_size() > 0) {
    return Unimplemented("Callables with tensor connections are not supported");
  }
  absl::MutexLock lock(&mutex_);
  if (closed_) return FailedPrecondition("Session is closed.");
  if (request_id != 0) {
    const auto made = callable_of_request_.find(request_id);
    if (made != callable_of_request_.end()) return made->second;
  }
  const int64_t id = next_callable_++;
  callables_.emplace(id, std::move(options));
  if (request_id != 0) callable_of_request_.emplace(request_id, id);
  return id;
}

StatusOr<tensorflow::CallableOptions> MasterSession::FindCallable(int64_t id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = callables_.find(id);
  if (found == callables_.end()) return InvalidArgument("No such callable: ", id);
  return found->second;
}

Status MasterSession::ReleaseCallable(int64_t id) {
  absl::MutexLock lock(&mutex_);
  if (callables_.erase(id) == 0) return InvalidArgument("No such callable: ", id);
  for (auto it = callable_of_request_.begin(); it != callable_of_request_.end(); ++it) {
    if (it->second != id) continue;
    callable_of_request_.erase(it);
    break;
  }
  return absl::OkStatus();
}

Status MasterSession::AdmitRequest(int64_t request_id) {
  if (request_id == 0) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (std::find(recent_requests_.begin(), recent_requests_.end(), request_id) !=
      recent_requests_.end()) {
    return Aborted(
        "The same request was received twice, which a client does after it lost an answer: ",
        request_id);
  }
  if (recent_requests_.size() < kRecentRequests) {
    recent_requests_.push_back(request_id);
  } else {
    recent_requests_[next_recent_] = request_id;
    next_recent_ = (next_recent_ + 1) % kRecentRequests;
  }
  return absl::OkStatus();
}

void MasterSession::Close(Status reason, absl::AnyInvocable<void()> closed) {
  bool now = false;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    now = running_ == 0;
    if (!now) when_closed_.push_back(std::move(closed));
  }
  cancellation_.Cancel(std::move(reason));
  if (now) closed();
}

absl::Duration MasterSession::idle() const {
  absl::MutexLock lock(&mutex_);
  return running_ > 0 ? absl::ZeroDuration() : absl::Now() - last_used_;
}

}  // namespace weft::master
