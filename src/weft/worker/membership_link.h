// SPDX-License-Identifier: Apache-2.0
// Membership on the data connections: which tasks of the cluster live, told to all who care.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "weft/cluster/data_plane.h"
#include "weft/membership/swim.h"

namespace weft::worker {

// Thread-safe. Runs SWIM (membership/) over frames that pass tensors by.
class MembershipLink {
 public:
  // Asks a task that nothing is known of where it is; may block.
  using Find = std::function<StatusOr<cluster::TaskAddress>(const std::string& task)>;
  // They are called on `pool`, or on the thread of a data connection, and must not block.
  struct Listener {
    // A task died silently, or stands still: Unavailable.
    std::function<void(const std::string& task, const Status& why)> lost;
    // A task ends as it should: what waits for it hears so from its connections.
    std::function<void(const std::string& task)> left;
    // Which tasks are ranks and alive, in order of their names.
    std::function<void(const std::vector<std::string>& ranks)> ranks;
  };
  // `others`: the tasks of the cluster. `find` runs on `setup`. Pools and clock must outlive this.
  MembershipLink(const std::vector<std::string>& others, Find find, Listener listener,
                 ThreadPool* setup, Clock* clock);
  ~MembershipLink();

  // Begins; frames may come from now on.
  void Start(const cluster::TaskAddress& self, cluster::DataPlane* plane);
  // Tells the others that this task leaves, and does nothing any more.
  void Stop();

  void BeRank();
  static bool Takes(const transport::FrameHeader& header);
  void Received(const std::string& task, absl::string_view meta);
  // The last connection to a task is gone.
  void ConnectionLost(const std::string& task);

  // All that are known, this task among them.
  std::vector<membership::Member> Members();

 private:
  void Tick();
  void AskSeeds();
  void AskSeed(const std::string& task);
  void Do(membership::Actions actions);
  void ScheduleTick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellRanks();

  const std::vector<std::string> others_;
  const Find find_;
  const Listener listener_;
  ThreadPool* const setup_;
  Clock* const clock_;
  cluster::DataPlane* plane_ = nullptr;
  absl::Mutex telling_;  // keeps what listeners hear of ranks in order
  std::vector<std::string> told_ ABSL_GUARDED_BY(telling_);
  absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(telling_);
  std::optional<membership::Swim> swim_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> asked_ ABSL_GUARDED_BY(mutex_);  // seeds that are looked up now
  absl::Duration next_tick_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<TimerQueue> timers_;
};

}  // namespace weft::worker
