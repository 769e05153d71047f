// SPDX-License-Identifier: Apache-2.0
// A graph that grows on the devices of one task, with its compiled steps.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "weft/compile/plan.h"
#include "weft/compile/prune.h"
#include "weft/executor/plan_runner.h"
#include "weft/kernel/op_spec.h"
#include "weft/session/session.h"

namespace weft::session {

// What an engine borrows; all must outlive it.
struct EngineOptions {
  const Catalogue* catalogue = nullptr;
  std::vector<Device*> devices;  // the first is the default
  ThreadPool* pool = nullptr;
  FileSystem* files = nullptr;
  bool soft_placement = true;
  bool fold = true;
  bool fuse = true;
  bool deterministic = false;
  bool single_threaded = false;
  std::string container = kDefaultContainer;
};

// One call of a signature. Feeds and fetches by name, in any order.
struct StepCall {
  std::vector<Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  Cancellation* cancellation = nullptr;  // required; outlives `done`
  executor::StepTrace* trace = nullptr;
  std::vector<GraphDef>* partition_graphs = nullptr;
};

// Thread-safe. Compiles each signature once and replays it.
class StepEngine {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<std::vector<Tensor>> results)>;

  explicit StepEngine(EngineOptions options);
  ~StepEngine();

  // All or nothing; running steps are not disturbed.
  Status Extend(const GraphDef& graph);
  // Results in the order of `call.fetches`. May call `done` before it returns.
  void Run(StepCall call, Done done);
  const EngineOptions& options() const { return options_; }

 private:
  struct Executable;
  StatusOr<std::shared_ptr<Executable>> Prepare(const StepCall& call);
  StatusOr<std::shared_ptr<Executable>> Compile(const compile::Signature& signature)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Refuses what asks for a device that there is not.
  Status Place(Graph* step) const;
  Status CheckFeeds(const Executable& executable, const StepCall& call) const;

  const EngineOptions options_;
  compile::KernelCache kernels_;
  absl::Mutex mutex_;
  Graph graph_ ABSL_GUARDED_BY(mutex_);
  // Shared with running steps: a signature may be dropped while it runs.
  std::map<std::string, std::shared_ptr<Executable>, std::less<>> executables_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::session
