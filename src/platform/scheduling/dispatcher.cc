// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/dispatcher.h"

#include <algorithm>
#include <cmath>

namespace weft::platform {
namespace {

bool AllTheSame(const Workload& workload) {
  return std::all_of(workload.pods.begin(), workload.pods.end(),
                     [&](const auto& pod) { return pod == workload.pods.front(); });
}

// It asks for more than there is in the whole cluster.
bool IsTooLarge(const Workload& workload, const Usage& capacity) {
  for (size_t i = 0; i < capacity.of.size(); ++i) {
    if (workload.usage.of[i] > capacity.of[i]) return true;
  }
  return false;
}

}  // namespace

Dispatcher::Key Dispatcher::KeyOf(Id id, double now) const {
  const Workload& of = workload(id);
  return {-of.priority, options_.order->Rank(of, now), of.submitted, id};
}

Dispatcher::Id Dispatcher::Add(Workload workload, double now) {
  Id id = static_cast<Id>(records_.size());
  if (free_ids_.empty()) {
    records_.emplace_back();
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
  }
  if (!first_priority_.has_value()) first_priority_ = workload.priority;
  KeepStandings(workload, now);
  Record& of = record(id);  // a new one: Remove left it so
  of.is_used = true;
  of.workload = std::move(workload);
  Measure(&of.workload);
  of.is_uniform = AllTheSame(of.workload);
  if (!of.workload.is_running()) {
    Enqueue(id, now);
    return id;
  }
  for (size_t i = 0; i < of.workload.pods.size(); ++i)
    options_.state->Occupy(of.workload.pods[i], of.workload.places[i]);
  Start(id, of.workload.started);
  return id;
}

void Dispatcher::Enqueue(Id id, double now) {
  Record& of = record(id);
  const auto queue = static_cast<size_t>(of.workload.queue);
  while (queues_.size() <= queue) {
    queues_.emplace_back();
    queues_.back().next = queues_.back().waiting.end();
  }
  of.key = KeyOf(id, now);
  of.waiting = Waiting::kBehind;
  of.vain_freed = ~uint64_t{0};
  queues_[queue].waiting.insert(of.key);
  ++waiting_count_;
}

void Dispatcher::Charge(const Workload& workload, int64_t sign) {
  options_.quotas->Charge(workload.queue, workload.usage, sign);
  AddUsage(workload.usage, sign, &used_);
}

// Where all are of one priority, the order displaces nobody, and nobody borrows, none of those that
// run ever makes room.
void Dispatcher::KeepStandings(const Workload& newcomer, double now) {
  if (has_standings_) return;
  has_standings_ = options_.order->preempts() ||
                   !options_.quotas->spec(newcomer.queue).cohort.empty() ||
                   newcomer.priority != first_priority_;
  if (!has_standings_) return;
  for (size_t i = 0; i < records_.size(); ++i)
    if (records_[i].workload.is_running()) TakeStanding(static_cast<Id>(i), now);
}

void Dispatcher::LeaveStanding(const Record& of) {
  if (has_standings_) standings_.erase(of.standing);
  if (options_.backfill == Backfill::kEasy) endings_.erase({of.ends, of.standing.id});
}

void Dispatcher::TakeStanding(Id id, double now) {
  Record& of = record(id);
  const Order& order = *options_.order;
  of.standing = {-of.workload.priority, order.Rank(of.workload, now) + order.drift() * now,
                 of.workload.started, id};
  if (has_standings_) standings_.insert(of.standing);
  if (options_.backfill != Backfill::kEasy) return;
  of.ends = of.workload.started + of.workload.left;
  endings_.insert({of.ends, id});
}

// Its pods are in their places.
void Dispatcher::Start(Id id, double now) {
  Record& of = record(id);
  of.waiting = Waiting::kNone;
  of.victims.clear();
  of.workload.started = now;
  Charge(of.workload, 1);
  TakeStanding(id, now);
  ++running_count_;
  ++round_;
  AwaitChange(id, now);
}

// Takes it from those that run; its places are free.
void Dispatcher::Stop(Id id, double now) {
  Record& of = record(id);
  LeaveStanding(of);
  --running_count_;
  for (size_t i = 0; i < of.workload.pods.size(); ++i)
    options_.state->Vacate(of.workload.pods[i], of.workload.places[i]);
  const double left = LeftAt(of.workload, now);
  const double service = ServiceAt(of.workload, now);
  of.workload.left = std::max(left, 0.0);
  of.workload.service = service;
  of.workload.places.clear();
  Charge(of.workload, -1);
}

void Dispatcher::Remove(Id id, double now) {
  Record& of = record(id);
  if (of.workload.is_running()) {
    Stop(id, now);
  } else {
    Queue& queue = queues_[static_cast<size_t>(of.workload.queue)];
    const auto at = queue.waiting.find(of.key);
    if (at != queue.waiting.end()) {
      if (queue.next == at) ++queue.next;
      queue.waiting.erase(at);
      --waiting_count_;
    }
  }
  of = Record();
  free_ids_.push_back(id);
}

void Dispatcher::Join(Id id, const std::shared_ptr<const PodNeeds>& needs, const Place& place,
                      double now) {
  Record& of = record(id);
  LeaveStanding(of);
  of.workload.service = ServiceAt(of.workload, now);
  of.workload.left = LeftAt(of.workload, now);
  of.workload.started = now;
  Charge(of.workload, -1);
  of.workload.pods.push_back(needs);
  of.workload.places.push_back(place);
  Measure(&of.workload);
  Charge(of.workload, 1);
  TakeStanding(id, now);
  AwaitChange(id, now);
  options_.state->Occupy(needs, place);
}

void Dispatcher::DropPod(Id id, size_t index, double now) {
  Record& of = record(id);
  if (of.workload.pods.size() == 1) return Remove(id, now);
  LeaveStanding(of);
  options_.state->Vacate(of.workload.pods[index], of.workload.places[index]);
  of.workload.service = ServiceAt(of.workload, now);
  of.workload.left = LeftAt(of.workload, now);
  of.workload.started = now;
  Charge(of.workload, -1);
  std::swap(of.workload.pods[index], of.workload.pods.back());
  std::swap(of.workload.places[index], of.workload.places.back());
  of.workload.pods.pop_back();
  of.workload.places.pop_back();
  Measure(&of.workload);
  Charge(of.workload, 1);
  TakeStanding(id, now);
  AwaitChange(id, now);
}

void Dispatcher::SetLeft(Id id, double left, double now) {
  Record& of = record(id);
  if (!of.workload.is_running()) {
    of.workload.left = left;
    return;
  }
  LeaveStanding(of);
  of.workload.left = left + now - of.workload.started;
  TakeStanding(id, now);
}

void Dispatcher::CountCapacity() {
  capacity_ = Usage();
  for (int i = 0; i < options_.state->node_count(); ++i) {
    const NodeState& node = options_.state->node(i);
    if (node.description == nullptr) continue;
    capacity_.of[0] += AmountOf(node.description->allocatable, kCpu);
    capacity_.of[1] += AmountOf(node.description->allocatable, kMemory);
  }
  capacity_.of[2] = options_.state->gpu_thousandths();
}

double Dispatcher::NextChange(double now) {
  while (!changes_.empty()) {
    const Change next = changes_.front();
    const Record& of = record(next.id);
    const bool is_meant =
        of.is_used && of.workload.is_running() && of.workload.started == next.started;
    if (is_meant && next.at > now) return next.at;
    std::pop_heap(changes_.begin(), changes_.end());
    changes_.pop_back();
    if (!is_meant) continue;
    LeaveStanding(of);
    TakeStanding(next.id, now);
    AwaitChange(next.id, now);
  }
  return kForever;
}

void Dispatcher::AwaitChange(Id id, double now) {
  if (!options_.order->has_changes()) return;
  double at = options_.order->NextChange(workload(id), now);
  if (at == kForever) return;
  // A step that is nearer than the clock can tell is its next moment.
  at = std::max(at, std::nextafter(now, kForever));
  changes_.push_back({at, workload(id).started, id});
  std::push_heap(changes_.begin(), changes_.end());
}

// Of those whose turn it may be, the queue of who goes first. Null: all have been tried.
Dispatcher::Queue* Dispatcher::NextQueue() {
  Queue* best = nullptr;
  double best_share = 0;
  const bool is_fair = options_.order->is_fair();
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue& queue = queues_[i];
    if (queue.is_blocked || queue.next == queue.waiting.end()) continue;
    const double share =
        is_fair ? options_.quotas->DominantShare(static_cast<int>(i), capacity_) : 0;
    const bool is_better =
        best == nullptr || queue.next->minus_priority < best->next->minus_priority ||
        (queue.next->minus_priority == best->next->minus_priority &&
         (share < best_share || (share == best_share && *queue.next < *best->next)));
    if (!is_better) continue;
    best = &queue;
    best_share = share;
  }
  return best;
}

void Dispatcher::Decide(double now, Outcome* outcome) {
  outcome->started.clear();
  outcome->displaced.clear();
  NextChange(now);  // those that are due take their places
  const auto begin_again = [this] {
    reservation_ = Reservation();
    for (Queue& queue : queues_) {
      queue.next = queue.waiting.begin();
      queue.is_blocked = false;
    }
  };
  begin_again();
  int failures = 0;
  while (Queue* const queue = NextQueue()) {
    const Id id = queue->next->id;
    const size_t displaced = outcome->displaced.size();
    if (MayBackfill(workload(id), now) && TryStart(id, now, outcome)) {
      queue->next = queue->waiting.erase(queue->next);
      --waiting_count_;
      outcome->started.push_back(id);
      // Who made room may fit elsewhere.
      if (outcome->displaced.size() != displaced) begin_again();
      continue;
    }
    if (++failures > options_.depth) break;
    const Record& of = record(id);
    ++queue->next;
    if (of.waiting == Waiting::kQuota) continue;  // which holds up nobody else
    // What never fits holds up nobody.
    if (options_.backfill == Backfill::kStrict && !IsTooLarge(of.workload, capacity_))
      queue->is_blocked = true;
    if (!reservation_.is_set && of.waiting != Waiting::kBehind) Reserve(of);
    reservation_.is_firm = reservation_.is_firm || of.waiting == Waiting::kVictims;
  }
  for (Queue& queue : queues_) queue.next = queue.waiting.end();
}

bool Dispatcher::MayBackfill(const Workload& workload, double now) const {
  if (!reservation_.is_set) return true;
  if (reservation_.is_firm) return false;
  if (options_.backfill != Backfill::kEasy) return true;
  return LeftAt(workload, now) + now <= reservation_.at ||
         workload.usage.of[reservation_.resource] <= reservation_.spare;
}

// When those that run have ended one after the other until there is enough, by sums: that it is
// scattered shows when the time has come.
void Dispatcher::Reserve(const Record& head) {
  reservation_.is_set = true;
  if (options_.backfill != Backfill::kEasy) return;
  const size_t resource = head.workload.usage.of[2] > 0 ? 2 : 0;
  const int64_t needed = head.workload.usage.of[resource];
  int64_t free = capacity_.of[resource] - used_.of[resource];
  reservation_.resource = resource;
  for (const Ending& ending : endings_) {
    reservation_.at = ending.at;
    if (free < needed) free += workload(ending.id).usage.of[resource];
    if (free >= needed) break;
  }
  // What never fits holds up nobody.
  if (free < needed) reservation_.at = kForever;
  reservation_.spare = std::max<int64_t>(free - needed, 0);
}

bool Dispatcher::Places(Record* of) {
  Workload& workload = of->workload;
  const auto key = std::make_pair(workload.pods.front().get(), workload.pods.size());
  if (vain_freed_ != options_.state->freed()) {
    vain_freed_ = options_.state->freed();
    if (!vain_.empty()) vain_.clear();
  }
  if (of->is_uniform && !vain_.empty() && vain_.contains(key)) return false;
  const PlaceOptions options = {options_.placement, options_.most_candidates};
  if (PlaceGang(workload.pods, options, options_.state, &workload.places)) return true;
  if (of->is_uniform) vain_[key] = workload.pods.front();
  return false;
}

bool Dispatcher::TryStart(Id id, double now, Outcome* outcome) {
  Record& of = record(id);
  if (of.workload.pods.empty()) return false;
  const Quotas::Verdict verdict = options_.quotas->Check(of.workload.queue, of.workload.usage);
  of.waiting = Waiting::kQuota;
  if (verdict == Quotas::Verdict::kOver) return false;
  const bool has_quota = verdict != Quotas::Verdict::kMustWait;
  if (has_quota && Places(&of)) {
    Start(id, now);
    return true;
  }
  of.waiting = has_quota ? Waiting::kRoom : Waiting::kQuota;
  if (IsWaitingForVictims(of)) {
    of.waiting = Waiting::kVictims;
    return false;
  }
  return MayDisplace(of, now) && MakeRoom(id, verdict, now, outcome);
}

}  // namespace weft::platform
