// SPDX-License-Identifier: Apache-2.0
// Who waits for what, on whom, since when: every wait of a process has an entry here, so that none
// hangs in silence.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "base/threads.h"

namespace weft {

// What does not change from step to step: made once for a plan, shared by its waits.
struct WaitSubject {
  std::string waiter;  // "/job:worker/task:1"
  std::string what;    // "tensor 'w/read'"
  std::string on;      // "/job:ps/task:0"; empty when unknown
};

struct WaitRecord {
  uint64_t id = 0;
  // Shared: the plan that made it may be gone while a report is written.
  std::shared_ptr<const WaitSubject> subject;
  int64_t step = -1;        // -1: no step
  absl::Duration since;     // of the registry's clock, monotonic
  absl::Duration duration;  // so far, in a snapshot
};

// "/job:worker/task:1 waits 31 s for tensor 'w/read' of step 12 from /job:ps/task:0"
std::string DescribeWait(const WaitRecord& wait);

class WaitRegistry;

// One wait: from Begin until it is destroyed or End is called. Movable; not thread-safe.
class Wait {
 public:
  Wait() = default;
  Wait(Wait&& other) noexcept;
  Wait& operator=(Wait&& other) noexcept;
  ~Wait() { End(); }
  void End();

 private:
  friend class WaitRegistry;
  Wait(WaitRegistry* registry, uint64_t id) : registry_(registry), id_(id) {}
  WaitRegistry* registry_ = nullptr;
  uint64_t id_ = 0;
};

// Thread-safe. Outlives its waits and borrows the clock.
class WaitRegistry {
 public:
  explicit WaitRegistry(const Clock* clock) : clock_(clock) {}
  WaitRegistry(const WaitRegistry&) = delete;
  WaitRegistry& operator=(const WaitRegistry&) = delete;

  [[nodiscard]] Wait Begin(std::shared_ptr<const WaitSubject> subject, int64_t step = -1);
  [[nodiscard]] Wait Begin(WaitSubject subject, int64_t step = -1);

  // Longest first.
  std::vector<WaitRecord> Snapshot() const;

 private:
  friend class Wait;
  struct alignas(64) Shard {
    mutable absl::Mutex mutex;
    uint64_t next ABSL_GUARDED_BY(mutex) = 0;
    std::map<uint64_t, WaitRecord> waits ABSL_GUARDED_BY(mutex);
  };
  static constexpr size_t kShards = 8;
  void Finish(uint64_t id);

  const Clock* const clock_;
  std::array<Shard, kShards> shards_;
};

// Reports each wait when it is older than `threshold`, and again whenever its age has doubled
// since.
class WaitWatchdog {
 public:
  struct Options {
    absl::Duration threshold = absl::Seconds(30);
    absl::Duration period = absl::Seconds(1);
  };
  using Report = absl::AnyInvocable<void(const WaitRecord&)>;

  // Without `report` a warning goes to the log. Borrows `registry`. The thread starts with Start.
  explicit WaitWatchdog(const WaitRegistry* registry)
      : WaitWatchdog(registry, Options(), nullptr) {}
  WaitWatchdog(const WaitRegistry* registry, Options options, Report report);
  ~WaitWatchdog();

  void Start();
  // One round, as the thread makes every period. Not while the thread runs.
  void Check();

 private:
  void Loop();

  const WaitRegistry* const registry_;
  const Options options_;
  Report report_;
  std::map<uint64_t, absl::Duration> next_report_;  // by wait: the age of its next report
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace weft
