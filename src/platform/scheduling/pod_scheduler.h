// SPDX-License-Identifier: Apache-2.0
// The scheduler of pods on a store: what `weft up` has inside, and `weft scheduler` is.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/threads.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/reconcile/informer.h"
#include "platform/scheduling/workload_book.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Watches nodes, pods and pod groups, decides, binds, evicts, and says of each pod that waits why.
// Nothing lives here that the store does not tell: it may be killed between any two calls. Borrows
// store and clock.
class PodScheduler {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const Clock* clock = nullptr;
    std::set<std::string> scheduler_names;  // spec.schedulerName of the pods that are ours
    std::string order = "fifo";
    std::string placement = "packing";
    std::vector<QueueSpec> queues;
    std::string only_node;       // no other node is used
    bool tells_foreign = false;  // says so on pods that name a scheduler that is not here
    int parallel_calls = 0;      // 0: calls are made one after the other
  };
  // InvalidArgument: no such order or placement.
  static StatusOr<std::unique_ptr<PodScheduler>> Create(Options options);
  ~PodScheduler();
  PodScheduler(const PodScheduler&) = delete;
  PodScheduler& operator=(const PodScheduler&) = delete;

  // A thread of its own.
  void Start();
  // What that thread does again and again; simulations call it. True when it did something.
  bool Step();
  bool HasSynced() const;

 private:
  using Key = WorkloadBook::Key;
  // What a call has come to.
  struct Result {
    Status status;
    WorkloadBook::Binding binding;    // with a pod: it was one of these
    WorkloadBook::Eviction eviction;  // or one of these
  };
  struct Told {
    std::string uid;
    std::string why;
    absl::Duration at;
  };
  PodScheduler(Options options, std::unique_ptr<Order> order,
               std::unique_ptr<PlacementPolicy> placement);
  void Run();
  void Watch(Informer* informer, std::set<Key>* changed);
  bool TakeNews(double now);
  void TakeResults(double now);
  void TryAgain();
  void Call(const WorkloadBook::Binding& binding);
  void Call(const WorkloadBook::Eviction& eviction);
  void Finish(Result result);
  Status Bind(const WorkloadBook::Binding& binding);
  Status Evict(const WorkloadBook::Eviction& eviction);
  void MaintainGroups();
  void TellPending();
  void Tell(const WorkloadBook::Pending& pending);
  double Now() const;

  const Options options_;
  ObjectStore* const store_;
  const std::unique_ptr<Order> order_;
  const std::unique_ptr<PlacementPolicy> placement_;
  EventRecorder events_;
  WorkloadBook book_;
  std::map<Key, Told> told_;
  std::vector<WorkloadBook::Binding> unsure_;  // that may have happened; they are made again
  absl::Duration next_try_ = -absl::InfiniteDuration();
  absl::Duration next_tell_ = -absl::InfiniteDuration();
  absl::Duration next_look_ = -absl::InfiniteDuration();
  bool is_changed_ = true;  // since the last decision
  bool has_untold_ = true;
  std::atomic<bool> stopping_{false};
  absl::Mutex mutex_;
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Key> changed_nodes_ ABSL_GUARDED_BY(mutex_);
  std::set<Key> changed_pods_ ABSL_GUARDED_BY(mutex_);
  std::set<Key> changed_groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<Result> results_ ABSL_GUARDED_BY(mutex_);
  Informer nodes_;
  Informer pods_;
  // Of kinds that a cluster may lack, and when to ask for them again.
  struct Groups {
    const ResourceType& type;
    Informer informer;
    bool is_there = false;
    absl::Duration next_try = -absl::InfiniteDuration();
  };
  Groups groups_;
  Groups volcano_groups_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Thread> thread_;  // last: it uses all of the above
};

}  // namespace weft::platform
