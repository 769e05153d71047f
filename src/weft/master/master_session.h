// SPDX-License-Identifier: Apache-2.0
// One client's session: its graph, its running steps, its end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/timers.h"
#include "proto/tensorflow/config.pb.h"
#include "weft/graph/node_def.h"
#include "weft/inspect/cost_recorder.h"
#include "weft/master/step_runner.h"

namespace weft::master {

// One step as a client asks for it.
struct SessionStep {
  std::vector<step::Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  absl::Duration timeout = absl::InfiniteDuration();
  bool trace = false;
  bool partition_graphs = false;
  bool any_shape = false;          // as for StepRunner::Step
  Cancellation* caller = nullptr;  // the call's; must live until the step is done
  // As for StepRunner::Step.
  absl::AnyInvocable<void(PartialStart)> started;
};

class PartialRun;

// Thread-safe. Shared by the master's table and the calls that use it.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<StepResult>)>;

  MasterSession(std::string handle, tensorflow::ConfigProto config,
                std::unique_ptr<StepRunner> runner, TimerQueue* timers,
                const std::string& cost_file = "");

  const std::string& handle() const { return handle_; }
  const tensorflow::ConfigProto& config() const { return config_; }

  // The new version. Aborted if `expected_version` is not the current one; all or nothing.
  StatusOr<int64_t> Extend(GraphDef graph, int64_t expected_version, Cancellation* caller);
  // The first graph: keeps the version at 0.
  Status Create(GraphDef graph, Cancellation* caller);

  // `done` runs once, maybe before this returns. FailedPrecondition after Close.
  void Run(SessionStep step, Done done);

  // Begins a step whose feeds and fetches come one by one; its feeds are names without values.
  // `done` gives its handle once it can be run.
  void SetUpPartialRun(SessionStep step, absl::AnyInvocable<void(StatusOr<std::string>)> done);
  // Gives such a step more feeds and waits for more fetches, all of those that it was set up with.
  void RunPartially(const std::string& handle, std::vector<step::Feed> feeds,
                    std::vector<std::string> fetches, Done done);

  // A signature kept for RunCallable.
  StatusOr<int64_t> MakeCallable(tensorflow::CallableOptions options, int64_t request_id);
  StatusOr<tensorflow::CallableOptions> FindCallable(int64_t id) const;
  Status ReleaseCallable(int64_t id);
  // Aborted the second time: the client repeats a call whose answer it lost.
  Status AdmitRequest(int64_t request_id);

  // Cancels running steps with `reason`, refuses new ones, and calls `closed` when the last has
  // ended.
  void Close(Status reason, absl::AnyInvocable<void()> closed);

  // Zero while a step runs that does not wait for the client.
  absl::Duration idle() const;

 private:
  struct Step;
  void EndStep(const std::shared_ptr<Step>& step, StatusOr<StepResult> result);

  const std::string handle_;
  const tensorflow::ConfigProto config_;
  const std::unique_ptr<StepRunner> runner_;
  TimerQueue* const timers_;
  const std::unique_ptr<inspect::CostRecorder> costs_;  // null: nobody asked for them
  Cancellation cancellation_;

  absl::Mutex extend_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // one Extend at a time
  int64_t version_ ABSL_GUARDED_BY(extend_mutex_) = 0;

  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_
      ABSL_GUARDED_BY(mutex_);  // shared with their calls
  int64_t next_partial_run_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Time last_used_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::AnyInvocable<void()>> when_closed_ ABSL_GUARDED_BY(mutex_);
  int64_t next_callable_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, tensorflow::CallableOptions> callables_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, int64_t> callable_of_request_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> recent_requests_ ABSL_GUARDED_BY(mutex_);  // a ring
  size_t next_recent_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::master
