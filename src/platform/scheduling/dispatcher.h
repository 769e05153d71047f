// SPDX-License-Identifier: Apache-2.0
// Which workloads start now, where, and who makes room for them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"

#include "platform/resources/placement.h"
#include "platform/scheduling/order.h"
#include "platform/scheduling/quotas.h"
#include "platform/scheduling/workload.h"

namespace weft::platform {

// What may go before one that does not fit.
enum class Backfill {
  kStrict,  // nobody of its queue
  kEasy,    // who ends before it could start, or leaves it what it needs
  kGreedy,  // whoever fits
};

// Why a workload waits.
enum class Waiting { kNone, kBehind, kQuota, kRoom, kVictims };

// The decision that the scheduler, `weft up` and the simulator share. All or nothing for each
// workload. Thread-compatible; borrows what its options point to.
class Dispatcher {
 public:
  using Id = int;
  struct Options {
    const Order* order = nullptr;
    PlacementPolicy* placement = nullptr;
    ClusterState* state = nullptr;
    Quotas* quotas = nullptr;
    Backfill backfill = Backfill::kEasy;
    // Who makes room ends later, by the caller, and holds its places until Remove; else it waits
    // again at once.
    bool evicts = false;
    double spared = 60;       // who has no more seconds left than this is not displaced
    int most_candidates = 0;  // PlaceOptions
    int depth = 1000;         // how many are tried behind one that does not fit
  };
  struct Outcome {
    std::vector<Id> started;
    std::vector<Id> displaced;
  };
  explicit Dispatcher(const Options& options) : options_(options) {}

  // It waits; or, with places, it runs already. Ids are used again after Remove.
  Id Add(Workload workload, double now);
  void Remove(Id id, double now);
  const Workload& workload(Id id) const { return records_[static_cast<size_t>(id)].workload; }
  Waiting waiting(Id id) const { return records_[static_cast<size_t>(id)].waiting; }
  // One more pod of a workload that runs; one less, whose place the last one takes in the lists.
  // Without pods it has gone.
  void Join(Id id, const std::shared_ptr<const PodNeeds>& needs, const Place& place, double now);
  void DropPod(Id id, size_t index, double now);
  // It was told to leave, and does not.
  void Keep(Id id) { record(id).workload.is_leaving = false; }
  // When a nearer end becomes known.
  void SetLeft(Id id, double left, double now);

  void Decide(double now, Outcome* outcome);
  // When the ranks of those that run change by themselves, the next time.
  double NextChange(double now);
  // To be called after nodes came, changed or went.
  void CountCapacity();

  int running_count() const { return running_count_; }
  int waiting_count() const { return waiting_count_; }
  const Usage& capacity() const { return capacity_; }
  const Usage& used() const { return used_; }

 private:
  // Who goes first: the greatest priority, the lowest rank, who came first.
  struct Key {
    int64_t minus_priority = 0;
    double rank = 0;
    double submitted = 0;
    Id id = 0;
    auto operator<=>(const Key&) const = default;
  };
  // Of one that runs. The greatest makes room first; of equals, who began last.
  struct Standing {
    int64_t minus_priority = 0;
    double rank = 0;  // as of the moment zero, so that all fall alike
    double started = 0;
    Id id = 0;
    auto operator<=>(const Standing&) const = default;
  };
  // Of one that runs, the soonest first.
  struct Ending {
    double at = 0;
    Id id = 0;
    auto operator<=>(const Ending&) const = default;
  };
  struct Record {
    Workload workload;
    Key key;            // while it waits
    Standing standing;  // while it runs, as it stands in standings_
    double ends = 0;    // as in endings_
    bool is_used = false;
    bool is_uniform = true;  // all its pods ask for the same
    Waiting waiting = Waiting::kNone;
    std::vector<Id> victims;  // told to go, for this one
    // With these the search for victims was in vain; it is again until something changes.
    uint64_t vain_freed = ~uint64_t{0};
    uint64_t vain_round = 0;
    double vain_until = 0;
  };
  struct Queue {
    std::set<Key> waiting;
    std::set<Key>::iterator next;
    bool is_blocked = false;
  };
  // Of one that runs; the soonest goes first. It means nothing when its workload has been started
  // again or has gone.
  struct Change {
    double at = 0;
    double started = 0;
    Id id = 0;
    bool operator<(const Change& other) const { return at > other.at; }
  };
  // The first one that found no room, and when it will.
  struct Reservation {
    bool is_set = false;
    bool is_firm = false;  // nobody goes before it
    size_t resource = 0;   // of Usage
    double at = kForever;
    int64_t spare = 0;  // what is left beside it then
  };

  Record& record(Id id) { return records_[static_cast<size_t>(id)]; }
  Key KeyOf(Id id, double now) const;
  void Enqueue(Id id, double now);
  void Start(Id id, double now);
  void Stop(Id id, double now);
  void Charge(const Workload& workload, int64_t sign);
  // Where one that runs stands among the others, before and after anything of it changes.
  void LeaveStanding(const Record& of);
  void TakeStanding(Id id, double now);
  void KeepStandings(const Workload& newcomer, double now);
  double RankAt(const Standing& standing, double now) const {
    return standing.rank - options_.order->drift() * now;
  }
  void AwaitChange(Id id, double now);
  Queue* NextQueue();
  bool TryStart(Id id, double now, Outcome* outcome);
  bool Places(Record* of);
  bool MayBackfill(const Workload& workload, double now) const;
  void Reserve(const Record& head);
  // dispatcher_preemption.cc
  bool MayDisplace(const Record& of, double now);
  bool MayHaveToGo(const Record& of, Quotas::Verdict verdict, const Standing& standing, double now,
                   bool* is_last) const;
  bool HasEnough(const Record& of, const Usage& freed) const;
  bool FindVictim(const Record& of, Quotas::Verdict verdict, double now);
  bool FindVictims(const Record& of, Quotas::Verdict verdict, double now);
  bool LiftUntilItFits(Record* of, Quotas::Verdict verdict, double now, std::vector<Id>* lifted);
  bool MakeRoom(Id id, Quotas::Verdict verdict, double now, Outcome* outcome);
  bool FitsBack(const Workload& workload) const;
  void Lift(const Workload& workload);
  void PutBack(const Workload& workload);
  bool IsWaitingForVictims(const Record& of) const;

  const Options options_;
  std::vector<Record> records_;
  std::vector<Id> free_ids_;
  std::vector<Queue> queues_;
  int waiting_count_ = 0;
  int running_count_ = 0;
  bool has_standings_ = false;  // somebody may have to make room
  std::optional<int64_t> first_priority_;
  absl::btree_set<Standing> standings_;  // of those that run
  absl::btree_set<Ending> endings_;      // the same; of kEasy alone
  std::vector<Change> changes_;          // a heap, of NextChange
  std::vector<Id> victims_;              // of FindVictims, kept for its memory
  absl::btree_set<Standing>::const_reverse_iterator next_victim_;  // in standings_
  uint64_t round_ = 1;  // grows when something starts or is told to leave
  // Uniform workloads that found no room in the cluster as it is since `vain_freed_`: the needs,
  // held so that nobody else gets their address, and how many.
  absl::flat_hash_map<std::pair<const PodNeeds*, size_t>, std::shared_ptr<const PodNeeds>> vain_;
  uint64_t vain_freed_ = 0;
  // The same of MakeRoom, for one round and moment: the first key and its queue.
  absl::flat_hash_map<std::pair<const PodNeeds*, size_t>, std::pair<Key, int>> vain_rooms_;
  uint64_t vain_rooms_freed_ = 0;
  uint64_t vain_rooms_round_ = 0;
  double vain_rooms_at_ = 0;
  Reservation reservation_;
  Usage capacity_;
  Usage used_;
};

}  // namespace weft::platform
