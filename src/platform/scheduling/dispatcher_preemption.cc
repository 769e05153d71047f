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
  if (standings_.empty()) return false;
  if (!options_.quotas->spec(of.workload.queue).cohort.empty()) return true;
  const Standing& last = *standings_.rbegin();
  if (last.minus_priority != -of.workload.priority)
    return last.minus_priority > -of.workload.priority;
  return options_.order->preempts() && of.key.rank < RankAt(last, now);
}

// `is_last`: nor has anybody who goes before that one.
bool Dispatcher::MayHaveToGo(const Record& of, Quotas::Verdict verdict, const Standing& standing,
                             double now, bool* is_last) const {
  const Workload& wanting = of.workload;
  const Workload& each = workload(standing.id);
  const bool reclaims =
      (verdict == Quotas::Verdict::kWithin || verdict == Quotas::Verdict::kMustWait) &&
      options_.quotas->MayReclaim(wanting.queue, each.queue);
  const bool outranks = wanting.priority > each.priority ||
                        (options_.order->preempts() && wanting.priority == each.priority &&
                         of.key.rank < RankAt(standing, now));
  *is_last = !outranks && options_.quotas->spec(wanting.queue).cohort.empty();
  if (each.is_leaving || (!outranks && !reclaims)) return false;
  // A borrower displaces nobody else, and quotas are given back by those who borrowed.
  if (each.queue != wanting.queue && !reclaims && verdict != Quotas::Verdict::kWithin) return false;
  return LeftAt(each, now) > options_.spared;
}

bool Dispatcher::HasEnough(const Record& of, const Usage& freed) const {
  for (size_t i = 0; i < freed.of.size(); ++i) {
    const int64_t free =
        i == 2 ? options_.state->free_gpu_thousandths() : capacity_.of[i] - used_.of[i];
    if (of.workload.usage.of[i] > free + freed.of[i]) return false;
  }
  return true;
}

// One more of those that may have to go, who loses least. False: there is none.
bool Dispatcher::FindVictim(const Record& of, Quotas::Verdict verdict, double now) {
  while (next_victim_ != standings_.crend()) {
    const Standing& standing = *next_victim_++;
    bool is_last = false;
    if (MayHaveToGo(of, verdict, standing, now, &is_last)) {
      victims_.push_back(standing.id);
      return true;
    }
    if (is_last) next_victim_ = standings_.crend();
  }
  return false;
}

// As many as would be enough by what they have together; all of them where what they borrowed
// counts, which changes while they are lifted. False when there are not enough.
bool Dispatcher::FindVictims(const Record& of, Quotas::Verdict verdict, double now) {
  victims_.clear();
  next_victim_ = standings_.crbegin();
  const bool wants_all = !options_.quotas->spec(of.workload.queue).cohort.empty();
  Usage all;
  while (FindVictim(of, verdict, now)) {
    AddUsage(workload(victims_.back()).usage, 1, &all);
    if (!wants_all && HasEnough(of, all)) return true;
  }
  return HasEnough(of, all);
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

// True with its places taken.
bool Dispatcher::LiftUntilItFits(Record* of, Quotas::Verdict verdict, double now,
                                 std::vector<Id>* lifted) {
  for (size_t i = 0; i < victims_.size() || FindVictim(*of, verdict, now); ++i) {
    const Id victim = victims_[i];
    Lift(workload(victim));
    lifted->push_back(victim);
    const Quotas::Verdict now_is = options_.quotas->Check(of->workload.queue, of->workload.usage);
    if (now_is != Quotas::Verdict::kWithin && now_is != Quotas::Verdict::kBorrows) continue;
    if (!HasEnough(*of, Usage())) continue;
    if (PlaceGang(of->workload.pods, {options_.placement, options_.most_candidates}, options_.state,
                  &of->workload.places))
      return true;
  }
  return false;
}

bool Dispatcher::MakeRoom(Id id, Quotas::Verdict verdict, double now, Outcome* outcome) {
  Record& of = record(id);
  if (of.vain_freed == options_.state->freed() && of.vain_round == round_ && now < of.vain_until)
    return false;
  if (vain_rooms_freed_ != options_.state->freed() || vain_rooms_round_ != round_ ||
      vain_rooms_at_ != now) {
    vain_rooms_.clear();
    vain_rooms_freed_ = options_.state->freed();
    vain_rooms_round_ = round_;
    vain_rooms_at_ = now;
  }
  const auto alike = std::make_pair(of.workload.pods.front().get(), of.workload.pods.size());
  if (of.is_uniform) {
    // One that goes before it, with more that would have to go, found no room either.
    const auto known = vain_rooms_.find(alike);
    if (known != vain_rooms_.end() && known->second.second == of.workload.queue &&
        known->second.first < of.key)
      return false;
  }
  of.vain_until = NextChange(now);
  std::vector<Id> lifted;
  const bool has_room =
      FindVictims(of, verdict, now) && LiftUntilItFits(&of, verdict, now, &lifted);
  if (!has_room && of.is_uniform)
    vain_rooms_.try_emplace(alike, std::make_pair(of.key, of.workload.queue));
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
