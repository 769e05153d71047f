// SPDX-License-Identifier: Apache-2.0
// Who makes room for whom.
#include <algorithm>

#include "platform/resources/fit.h"
#include "platform/scheduling/dispatcher.h"

namespace weft::platform {

bool Dispatcher::IsWaitingForVictims(const Record& of) const {
  return std::any_of(of.victims.begin(), of.victims.end(), [&](Id id) {
    const Record& victim = records_[static_cast<size_t>(id)];
    return victim.is_used && victim.workload.is_leaving;
  });
}

// Whether anybody runs who would have to make room, found without a look at each of them for each
// that waits.
bool Dispatcher::MayDisplace(const Record& of, double now) {
  if (running_.empty()) return false;
  if (!options_.quotas->spec(of.workload.queue).cohort.empty()) return true;
  if (running_priorities_.begin()->first < of.workload.priority) return true;
  if (!options_.order->preempts()) return false;
  if (worst_round_ != round_ || worst_at_ != now) {
    worst_round_ = round_;
    worst_at_ = now;
    worst_rank_ = -kForever;
    for (const Id id : running_)
      worst_rank_ = std::max(worst_rank_, options_.order->Rank(workload(id), now));
  }
  return of.key.rank < worst_rank_;
}

// Those that may have to go, as a heap of whom the first loses least. `until`: when there may be
// others; `all`: what they have together.
void Dispatcher::FindVictims(const Record& of, Quotas::Verdict verdict, double now, double* until,
                             Usage* all) {
  const Workload& wanting = of.workload;
  const Key key = KeyOf(of.key.id, now);
  victims_.clear();
  *until = NextChange(now);
  for (const Id id : running_) {
    const Workload& each = workload(id);
    if (each.is_leaving) continue;
    const bool is_same_queue = each.queue == wanting.queue;
    const bool reclaims =
        (verdict == Quotas::Verdict::kWithin || verdict == Quotas::Verdict::kMustWait) &&
        options_.quotas->MayReclaim(wanting.queue, each.queue);
    // A borrower displaces nobody else, and quotas are given back by those who borrowed.
    if (!is_same_queue && !reclaims && verdict != Quotas::Verdict::kWithin) continue;
    const Key theirs = KeyOf(id, now);
    const bool outranks =
        wanting.priority > each.priority ||
        (options_.order->preempts() && wanting.priority == each.priority && key.rank < theirs.rank);
    if (!outranks && !reclaims) continue;
    if (LeftAt(each, now) <= options_.spared) continue;
    victims_.push_back({theirs.minus_priority, theirs.rank, each.started, id});
    AddUsage(each.usage, 1, all);
  }
  // Mostly a few of them are enough.
  std::make_heap(victims_.begin(), victims_.end());
}

void Dispatcher::Lift(const Workload& workload) {
  for (size_t i = 0; i < workload.pods.size(); ++i)
    options_.state->Vacate(workload.pods[i], workload.places[i], false);
  Charge(workload, -1);
}

void Dispatcher::PutBack(const Workload& workload) {
  for (size_t i = 0; i < workload.pods.size(); ++i)
    options_.state->Occupy(workload.pods[i], workload.places[i]);
  Charge(workload, 1);
}

// Its places are as free as they were. Pods of one gang on one node count one after the other.
bool Dispatcher::FitsBack(const Workload& workload) const {
  ClusterState* const state = options_.state;
  size_t occupied = 0;
  bool fits = true;
  for (size_t i = 0; fits && i < workload.pods.size(); ++i) {
    const PodNeeds& needs = *workload.pods[i];
    const Place& place = workload.places[i];
    const NodeState& node = state->node(place.node);
    fits = node.description != nullptr && AmountsFit(needs.amounts, node.free) &&
           std::all_of(place.gpus.begin(), place.gpus.end(), [&](int index) {
             const auto at = static_cast<size_t>(index);
             return at < node.gpus.size() &&
                    GpuFits(node.description->gpus[at], node.gpus[at], needs.gpu);
           });
    if (!fits) break;
    state->Occupy(workload.pods[i], place);
    ++occupied;
  }
  for (size_t i = occupied; i-- > 0;) state->Vacate(workload.pods[i], workload.places[i], false);
  return fits;
}

bool Dispatcher::MakeRoom(Id id, Quotas::Verdict verdict, double now, Outcome* outcome) {
  Record& of = record(id);
  if (of.vain_freed == options_.state->freed() && of.vain_round == round_ && now < of.vain_until)
    return false;
  Usage all;
  FindVictims(of, verdict, now, &of.vain_until, &all);
  const auto has_enough = [&](const Usage& freed) {
    for (size_t i = 0; i < freed.of.size(); ++i) {
      const int64_t free =
          i == 2 ? options_.state->free_gpu_thousandths() : capacity_.of[i] - used_.of[i];
      if (of.workload.usage.of[i] > free + freed.of[i]) return false;
    }
    return true;
  };
  bool has_room = false;
  std::vector<Id> lifted;
  if (has_enough(all)) {
    while (!victims_.empty()) {
      std::pop_heap(victims_.begin(), victims_.end());
      const Id victim = victims_.back().id;
      victims_.pop_back();
      Lift(workload(victim));
      lifted.push_back(victim);
      const Quotas::Verdict now_is = options_.quotas->Check(of.workload.queue, of.workload.usage);
      if (now_is != Quotas::Verdict::kWithin && now_is != Quotas::Verdict::kBorrows) continue;
      if (!has_enough(Usage())) continue;
      has_room = PlaceGang(of.workload.pods, {options_.placement, options_.most_candidates},
                           options_.state, &of.workload.places);
      if (has_room) break;
    }
  }
  if (has_room) {
    Charge(of.workload, 1);
    // Whom it does not need after all stays, the first of the order before the others.
    for (size_t i = lifted.size(); i-- > 0;) {
      const Workload& victim = workload(lifted[i]);
      const Quotas::Verdict back = options_.quotas->Check(victim.queue, victim.usage);
      if (back == Quotas::Verdict::kOver || back == Quotas::Verdict::kMustWait) continue;
      if (!FitsBack(victim)) continue;
      PutBack(victim);
      lifted.erase(lifted.begin() + static_cast<ptrdiff_t>(i));
    }
    Charge(of.workload, -1);
  }
  if (!has_room || options_.evicts) {
    if (has_room) {
      for (size_t i = 0; i < of.workload.pods.size(); ++i)
        options_.state->Vacate(of.workload.pods[i], of.workload.places[i], false);
      of.workload.places.clear();
    }
    for (const Id victim : lifted) PutBack(workload(victim));
    if (has_room) {
      of.waiting = Waiting::kVictims;
      of.victims = lifted;
      for (const Id victim : lifted) {
        record(victim).workload.is_leaving = true;
        outcome->displaced.push_back(victim);
      }
      ++round_;
    }
    of.vain_freed = options_.state->freed();
    of.vain_round = round_;
    return false;
  }
  for (const Id victim : lifted) {
    PutBack(workload(victim));
    // Out of its places by the way that counts what it has done.
    Stop(victim, now);
    Enqueue(victim, now);
    outcome->displaced.push_back(victim);
  }
  Start(id, now);
  return true;
}

}  // namespace weft::platform
