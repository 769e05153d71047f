// SPDX-License-Identifier: Apache-2.0
#include "weft/master/master_session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"

#include "weft/master/partial_run.h"

namespace weft::master {

namespace {
constexpr size_t kRecentRequests = 4096;
constexpr size_t kMostPartialRuns = 1000;
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
                             std::unique_ptr<StepRunner> runner, TimerQueue* timers,
                             const std::string& cost_file)
    : handle_(std::move(handle)),
      config_(std::move(config)),
      runner_(std::move(runner)),
      timers_(timers),
      costs_(cost_file.empty() && !inspect::ShowsSteps()
                 ? nullptr
                 : std::make_unique<inspect::CostRecorder>(cost_file)),
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
  const bool is_recorded =
      costs_ != nullptr && !request.trace && !request.started && costs_->Wants();
  const bool adds_graphs = is_recorded && !request.partition_graphs && costs_->WantsGraphs();
  std::vector<executor::NodeTrace> fed;
  if (is_recorded) fed = inspect::TracesOfFeeds(request.feeds);
  StepRunner::Step inner{.feeds = std::move(request.feeds),
                         .fetches = std::move(request.fetches),
                         .targets = std::move(request.targets),
                         .trace = request.trace || is_recorded,
                         .partition_graphs = request.partition_graphs || adds_graphs,
                         .any_shape = request.any_shape,
                         .cancellation = {step, &step->cancellation},
                         .started = std::move(request.started)};
  runner_->Run(std::move(inner), [step, is_recorded, adds_graphs, fed = std::move(fed),
                                  start = absl::Now()](StatusOr<StepResult> result) {
    if (is_recorded && result.ok()) {
      const absl::Duration taken = absl::Now() - start;
      std::vector<executor::NodeTrace>& trace = result->metadata.trace;
      trace.insert(trace.begin(), fed.begin(), fed.end());
      step->session->costs_->Add(trace, result->metadata.partition_graphs, taken);
      result->metadata.trace.clear();
      if (adds_graphs) result->metadata.partition_graphs.clear();
    }
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

void MasterSession::SetUpPartialRun(SessionStep step,
                                    absl::AnyInvocable<void(StatusOr<std::string>)> done) {
  if (step.fetches.empty() && step.targets.empty()) {
    return done(InvalidArgument("Must specify at least one target to fetch or execute."));
  }
  std::vector<std::string> feeds;
  for (const step::Feed& feed : step.feeds) feeds.push_back(feed.first);
  // Shared by the table, the step that it runs and its calls.
  auto run = std::make_shared<PartialRun>(std::move(feeds), step.fetches, runner_.get());
  std::string handle;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return done(FailedPrecondition("Session is closed."));
    if (partial_runs_.size() >= kMostPartialRuns) {
      return done(ResourceExhausted("Too many partial runs are open in this session: ",
                                    partial_runs_.size()));
    }
    last_used_ = absl::Now();
    handle = absl::StrCat("partial_run_", next_partial_run_++);
    partial_runs_.emplace(handle, run);
  }
  run->WhenReady(
      [self = shared_from_this(), handle, done = std::move(done)](const Status& status) mutable {
        if (!status.ok()) {
          absl::MutexLock lock(&self->mutex_);
          self->partial_runs_.erase(handle);
        }
        done(status.ok() ? StatusOr<std::string>(handle) : status);
      });
  step.started = [run](PartialStart start) { run->Begin(std::move(start)); };
  Run(std::move(step), [run](StatusOr<StepResult> result) { run->End(std::move(result)); });
}

void MasterSession::RunPartially(const std::string& handle, std::vector<step::Feed> feeds,
                                 std::vector<std::string> fetches, Done done) {
  std::shared_ptr<PartialRun> run;
  {
    absl::MutexLock lock(&mutex_);
    last_used_ = absl::Now();
    if (const auto found = partial_runs_.find(handle); found != partial_runs_.end()) {
      run = found->second;
    }
  }
  if (run == nullptr) {
    return done(InvalidArgument("Must run 'setup' before performing partial runs!"));
  }
  run->Call(std::move(feeds), std::move(fetches),
            [self = shared_from_this(), run, handle,
             done = std::move(done)](StatusOr<StepResult> result) mutable {
              if (run->is_over()) {
                absl::MutexLock lock(&self->mutex_);
                self->partial_runs_.erase(handle);
              }
              done(std::move(result));
            });
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
  // Partial runs wait for the client, which may be gone.
  int waiting = 0;
  for (const auto& [handle, run] : partial_runs_) waiting += run->waits_for_client() ? 1 : 0;
  return running_ > waiting ? absl::ZeroDuration() : absl::Now() - last_used_;
}

}  // namespace weft::master
