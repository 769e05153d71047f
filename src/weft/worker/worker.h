// SPDX-License-Identifier: Apache-2.0
// What a task runs of steps: its sessions, the graphs registered with it, its parts of running
// steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/waits.h"
#include "weft/kernel/collective_runner.h"
#include "weft/rendezvous/step_table.h"
#include "weft/step/part_run.h"
#include "weft/step/task_part.h"

namespace weft::worker {

struct WorkerOptions {
  DeviceName task;
  const Catalogue* catalogue = nullptr;
  std::vector<Device*> devices;      // that sessions share; the first is the default
  DeviceFactory* factory = nullptr;  // of devices that a session has to itself
  ThreadPool* pool = nullptr;
  FileSystem* files = nullptr;
  WaitRegistry* waits = nullptr;
  CollectiveRunner* collectives = nullptr;  // that devices of a session of its own offer
  const Clock* clock = nullptr;
  bool single_threaded = false;
  // Called when a part, or an op of eager, has run, before anybody hears of its end; may be empty.
  std::function<void()> ran;
  // Called with the staleness of a step that has changed variables here: how many other such steps
  // ended between its part's begin and end. May be empty.
  std::function<void(int64_t updates)> updated;
};

struct WorkerSessionSpec {
  std::string handle;
  bool isolate = false;  // variables and queues of its own
  // "/job:worker/replica:0/task:0", one of another cluster with "@host:port"; empty if it is this
  // process's.
  std::string master;
  uint64_t master_incarnation = 0;
};

// This task's part of one step.
struct TaskStep {
  uint32_t graph = 0;
  int64_t step = 0;
  std::vector<Tensor> arguments;
  bool trace = false;
  bool partition_graphs = false;
  // Of a step of TensorFlow's way (StepRendezvous::PullFrom); must outlive the worker.
  rendezvous::TensorSource* source = nullptr;
  // The step's own, shared because frames from elsewhere cancel it. Cancelled when the part fails.
  std::shared_ptr<Cancellation> cancellation;
};

// Thread-safe.
class Worker {
 public:
  using Done = step::PartDone;

  // `sink` takes tensors for other tasks; all pointers must outlive the worker.
  Worker(WorkerOptions options, rendezvous::TensorSink* sink);
  ~Worker();

  const WorkerOptions& options() const { return options_; }
  // "/job:ps/replica:0/task:0"
  const std::string& task() const { return task_; }
  std::vector<DeviceAttributes> devices() const;

  // Once a handle; the same again is fine. Sessions that an earlier process of the same master left
  // behind are dropped.
  Status CreateSession(const WorkerSessionSpec& spec);
  Status DeleteSession(const std::string& handle);
  // The processes, task and incarnation, whose masters have sessions here; without this one.
  std::set<std::pair<std::string, uint64_t>> masters() const;
  bool HasSession(const std::string& handle) const;
  // Whether a session has variables of its own here.
  bool has_isolated_sessions() const;
  // New sessions, graphs and parts are refused with this error from now on; OK: no longer.
  void Refuse(Status why);
  void DropSessionsOf(const std::string& master, uint64_t incarnation);
  // The graph's number. Aborted for a session that is not here.
  StatusOr<uint32_t> RegisterGraph(const std::string& session, Graph part,
                                   const step::PartOptions& options);
  // Steps that run it go on.
  Status DeregisterGraph(uint32_t graph);
  // The tensor that a session keeps here under a handle. InvalidArgument if it does not.
  StatusOr<Tensor> TensorOfSession(const std::string& session, const std::string& handle) const;
  // Drops the resources of containers; the default one if none is named.
  void Cleanup(const std::vector<std::string>& containers);

  // `done` runs once, maybe before this returns, when nothing of the part runs any more.
  void RunStep(TaskStep step, Done done);
  // Cancels the part if it runs; otherwise sees to it that it will not.
  void AbortStep(int64_t step, const Status& reason);
  // Cancels the parts that exchange tensors with `task`.
  void TaskLost(const std::string& task, const Status& why);

  // The meeting place for a tensor that came from elsewhere; null if its step is dead.
  Ref<rendezvous::StepRendezvous> RendezvousOf(int64_t step) { return steps_.FindOrMake(step); }
  bool IsDead(int64_t step) const { return steps_.IsDead(step); }
  struct Counts {
    size_t sessions = 0;
    size_t graphs = 0;
    size_t running = 0;     // parts that exchange tensors
    size_t open_steps = 0;  // with tensors here, started or not
  };
  Counts counts() const;
  // Forgets steps that never started; called now and then.
  void Sweep() { steps_.Sweep(); }

 private:
  struct Session;
  struct RegisteredGraph;
  struct Running;
  void Cancel(const std::vector<std::shared_ptr<Running>>& steps, const Status& reason);

  const WorkerOptions options_;
  const std::string task_;
  const step::TaskEnvironment environment_;
  rendezvous::StepTable steps_;
  std::atomic<int64_t> updates_{0};  // steps that changed variables here
  mutable absl::Mutex mutex_;
  Status refusal_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_graph_ ABSL_GUARDED_BY(mutex_);
  // Shared with graphs and steps that outlive their removal.
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, std::shared_ptr<RegisteredGraph>> graphs_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, std::shared_ptr<Running>> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::worker
