// SPDX-License-Identifier: Apache-2.0
// One of several processes acts, by a Lease (coordination.k8s.io/v1).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "base/threads.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Takes a lease and renews it. Nobody's wall clock counts: a holder measures from before it asked
// for a renewal, the others from after they saw it, so that their times never overlap while clocks
// run at rates that differ by less than 5 %. Thread-safe; borrows store and clock.
class LeaderElector {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const Clock* clock = nullptr;
    std::string namespace_name;
    std::string name;
    std::string identity;  // of this process and no other
    absl::Duration lease_duration = absl::Seconds(15);
    absl::Duration renew_deadline = absl::Seconds(10);
    absl::Duration retry_period = absl::Seconds(2);
    MetricRegistry* metrics = nullptr;  // borrowed; leader_election_master_status
  };
  explicit LeaderElector(Options options) : options_(std::move(options)) {}

  // InvalidArgument names the flags that do not fit each other.
  static Status CheckTimes(absl::Duration lease_duration, absl::Duration renew_deadline,
                           absl::Duration retry_period);

  // One try to take or to renew it; to be called every retry_period, by one thread.
  void Step();
  // Gives it up, so that the next one need not wait. After the last write.
  void Release();

  // Nothing new begins when this is false.
  bool IsLeader() const;
  // When a write that begins now must have ended, on the clock's Monotonic: another may lead after
  // that. Minus infinity: it must not begin.
  absl::Duration WriteDeadline() const;
  // How often the lease changed hands, for logs.
  int64_t transitions() const;

 private:
  struct Record {
    std::string holder;
    std::string renewed;
    int64_t transitions = 0;
    absl::Duration duration;
    bool operator==(const Record&) const = default;
  };
  static Record RecordOf(const Json& lease);
  Status Try();
  Status Write(Json lease, const Record& held, bool is_new);
  Json Fill(Json lease, const Record& held) const;

  const Options options_;
  mutable absl::Mutex mutex_;
  bool is_holder_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration renewed_ ABSL_GUARDED_BY(mutex_);  // when the last renewal was asked for
  int64_t transitions_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the thread that steps.
  Record seen_;
  absl::Duration seen_at_ = -absl::InfiniteDuration();
  bool has_led_ = false;  // as it was told last
};

// A store whose writes need the lease: a deposed leader writes nothing, whatever it was about to
// do. Thread-safe; borrows both.
class FencedStore : public ObjectStore {
 public:
  FencedStore(ObjectStore* store, const LeaderElector* elector)
      : store_(store), elector_(elector) {}

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override;
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override;
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override;
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override;

 private:
  // FailedPrecondition when this process does not lead; else puts the time that is left into the
  // options.
  Status Admit(absl::Duration* deadline) const;

  ObjectStore* const store_;
  const LeaderElector* const elector_;
};

// Runs what only a leader may: `start` once it leads, whose result is destroyed when it does no
// more; and again.
class LeaderLoop {
 public:
  using Work = std::shared_ptr<void>;  // of any type, for its destructor
  LeaderLoop(LeaderElector* elector, absl::Duration period, std::function<Work()> start);
  // Ends the work, then gives the lease up.
  ~LeaderLoop();
  LeaderLoop(const LeaderLoop&) = delete;
  LeaderLoop& operator=(const LeaderLoop&) = delete;

 private:
  LeaderElector* const elector_;
  absl::Notification stopping_;
  std::unique_ptr<Thread> elects_;
  std::unique_ptr<Thread> works_;
};

}  // namespace weft::platform
