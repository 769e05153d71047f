// SPDX-License-Identifier: Apache-2.0
// A task's part in all collectives: its groups, their exchanges, and for some groups the leader.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/status.h"
#include "base/threads.h"
#include "weft/collective/exchange.h"
#include "weft/collective/leader.h"
#include "weft/collective/network.h"
#include "weft/kernel/collective_runner.h"

namespace weft::collective {

// What a message between two tasks of a host takes, twice.
inline constexpr absl::Duration kPatience = absl::Microseconds(100);
inline constexpr int kMostRemarks = 10;  // on calls that wait
struct EngineOptions {
  // "/job:worker/replica:0/task:0": who forms groups; empty: this task.
  std::string leader;
  std::vector<std::string> tasks;  // of the cluster, as the leader's name
  ThreadPool* pool = nullptr;      // shares large reductions; may be null
  AlgorithmTable table;            // of the groups that this task leads
  bool open_groups = false;        // whose ranks come and go: needs SetRanks
  bool boards = false;             // tasks of one host meet in shared memory
  // How long a caller looks at them, for each task that it waits for, before messages tell it.
  absl::Duration patience = absl::ZeroDuration();
};

// Thread-safe. A group is formed when its first call comes: every member asks the leader, who tells
// all of them when the last has come. That is an epoch: it ends when a member's task is lost, a
// member's step ends before its result, or members disagree; then all calls in it fail with the
// first cause, a rank that had none hears it at its next, and the one after forms the group again.
// What belongs to another epoch is dropped, so that a collective never mixes two.
class Engine final : public CollectiveRunner {
 public:
  // `network` must outlive the last call of the engine, and may end before it does.
  Engine(EngineOptions options, Network* network);
  void Run(CollectiveCall call, Done done) override;

  // From the network, on any thread. `body` are bytes, not initialized if there are none.
  void Received(const std::string& from, CollectiveMessage message, Tensor body);
  // The task is gone, or another process now, or cannot be reached.
  void TaskLost(const std::string& task, const Status& why);
  // Which tasks, alive now, take part in open groups, in order: the first of them forms these.
  void SetRanks(const std::vector<std::string>& ranks);
  // Of an open group that was formed: who is in it, and whether somebody waits to come in.
  struct View {
    uint64_t epoch = 0;                // 0: it is not formed
    std::vector<std::string> devices;  // by rank
    bool changed = false;
  };
  View ViewOf(int32_t group_key);

 private:
  using ExchangeRef = std::shared_ptr<Exchange>;  // shared with who works on it
  // Numbers the steps that come to an instance, for each device by itself; devices that come in the
  // same step get the same number. A step with loops comes several times.
  struct Instance {
    struct Step {
      const void* session = nullptr;
      int64_t step = 0;
      uint64_t ordinal = 0;
    };
    std::map<std::string, uint64_t> next;  // by device
    std::deque<Step> recent;
  };
  struct Group {
    int32_t size = 0;
    uint64_t epoch = 0;  // 0: not formed
    uint64_t last_epoch = 0;
    bool is_open = false;
    bool changed = false;  // somebody waits for the end of this epoch
    std::string leader;
    int questions = 0;                            // that the leader could not be reached with
    int reminders = 0;                            // since the group was formed last
    bool reminds = false;                         // a reminder is due
    std::shared_ptr<const Membership> members;    // shared with exchanges
    std::shared_ptr<Board> board;                 // shared with members: of this forming
    std::set<std::string> joining;                // devices for which the leader was asked
    std::vector<CallRef> waiting;                 // until it is formed
    std::map<std::string, const void*> sessions;  // of this epoch, by device
    // Of devices that had no call when others ended the epoch: whose next call hears it.
    std::map<std::string, std::pair<const void*, Status>> missed;
    std::map<int32_t, Instance> instances;
    std::map<Exchange::Key, ExchangeRef> exchanges;
    std::set<Exchange::Key> finished;
    std::deque<Exchange::Key> finished_order;
  };
  struct Letter {
    std::string task;
    CollectiveMessage message;
    std::vector<Tensor> body;
  };
  using Ends = std::vector<std::pair<CallRef, StatusOr<Tensor>>>;

  const std::string& self() const { return network_->self().task(); }
  const std::string& LeaderOf(const CollectiveCall& call) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunFixed(int32_t key, Group* group, const CallRef& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunOpen(int32_t key, Group* group, const CallRef& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Schedule(const Leader::Forming& forming);
  void TakeChanged(const CollectiveMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAwaited(const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasStrangers(const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A leader that took us for lost for a moment has forgotten that we asked.
  void RemindLater(int32_t key, Group* group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remind(int32_t key);
  void Ask(int32_t key, Group* group, const CollectiveCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void NoteMissed(Group* group, const Status& why);
  static Status TakeMissed(Group* group, const CollectiveCall& call);
  static uint64_t OrdinalOf(Instance* instance, const CollectiveCall& call);
  void Enter(int32_t key, Group* group, CallRef call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ExchangeRef FindOrMake(Group* group, const Exchange::Key& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailWaiting(Group* group, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the group's epoch: our calls in it fail with `own`, those of the other members, if we
  // `tell` them, with `others`.
  void EndEpoch(int32_t key, Group* group, const Status& own, const Status& others, bool tell)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const CallRef& call, StatusOr<Tensor> result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Post(const std::string& task, CollectiveMessage message, std::vector<Tensor> body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostAll(std::vector<Addressed> messages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeJoin(const CollectiveMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeGroup(const CollectiveMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeAbort(const CollectiveMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeData(const std::string& from, CollectiveMessage message, Tensor body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CallCancelled(const CallRef& call, const Status& why);
  void CallLate(const CallRef& call, bool again);
  void RemarkLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remark();
  void AskAgain(int32_t key, Group* group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Bury(uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Does what can be done, without holding the lock meanwhile; then sends and ends what came of it.
  // Only `own` may end on this thread: the others' steps go on from where their calls end.
  void Work(const PendingCall* own = nullptr);
  void Flush(const PendingCall* own);
  static void Finish(const CallRef& call, StatusOr<Tensor> result);
  // True if the exchange waits for what comes to boards, for `own` to look there.
  bool AfterWork(const ExchangeRef& exchange, const Status& done, const PendingCall* own)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ExchangeRef TakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OfferBoard(Group* group, CollectiveMember* member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenBoards(int32_t key, const Group& group, Membership* members)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeLook(const CollectiveMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes from boards what is there. True if there is something to do now.
  bool Look(int32_t key, Group* group, const ExchangeRef& exchange)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // From now on messages must say that there is something to see.
  void Sleep(int32_t key, Group* group, const ExchangeRef& exchange)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::map<int32_t, Group>::iterator GroupOf(const ExchangeRef& exchange)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ExchangeRef Watch(const ExchangeRef& exchange);

  const EngineOptions options_;
  Network* const network_;
  absl::Mutex mutex_;
  Leader leader_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> ranks_ ABSL_GUARDED_BY(mutex_);  // of open groups, alive now
  std::string open_leader_ ABSL_GUARDED_BY(mutex_);         // empty: not known
  std::set<uint64_t> dead_epochs_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> dead_order_ ABSL_GUARDED_BY(mutex_);
  // What came before the news of its epoch.
  std::map<uint64_t, std::vector<std::pair<std::string, Packet>>> early_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> early_order_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<int32_t, ExchangeRef>> ready_ ABSL_GUARDED_BY(mutex_);
  std::deque<Letter> letters_ ABSL_GUARDED_BY(mutex_);
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  Ends ends_ ABSL_GUARDED_BY(mutex_);
  int64_t remarks_ ABSL_GUARDED_BY(mutex_) = 0;       // looks for calls that wait for long
  int remarks_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;  // that found some
  uint64_t formings_ ABSL_GUARDED_BY(mutex_) = 0;     // before the one that is due; 0: none is
  // Until when callers that look at boards do not yield, as that took long, and how long it was.
  std::atomic<int64_t> crowded_until_ns_{0};
  std::atomic<int64_t> rest_ns_{0};
};

}  // namespace weft::collective
