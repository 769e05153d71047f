// SPDX-License-Identifier: Apache-2.0
// Why pods of a book wait, in words: what is missing where, and when that changes.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "base/nearest_name.h"
#include "platform/object/fields.h"
#include "platform/resources/fit.h"
#include "platform/scheduling/why_pending.h"
#include "platform/scheduling/workload_book.h"

namespace weft::platform {
namespace {

constexpr char kJobLabel[] = "training.kubeflow.org/job-name";
// Nodes on which somebody's end is known are tried one after the other.
constexpr int kMostNodes = 100;

// "about 4 min": as people say it.
std::string FormatWait(double seconds) {
  if (seconds < 90) return absl::StrCat("about ", static_cast<int64_t>(std::ceil(seconds)), " s");
  if (seconds < 5400)
    return absl::StrCat("about ", static_cast<int64_t>(std::round(seconds / 60)), " min");
  return absl::StrCat("about ", static_cast<int64_t>(std::round(seconds / 3600)), " h");
}

}  // namespace

// Who is known to end, by node, the soonest first.
struct WorkloadBook::Ends {
  struct End {
    double left = 0;
    const Entry* entry = nullptr;
  };
  std::map<int, std::vector<End>> by_node;
};

std::string WorkloadBook::WhyGangWaits(const Entry& entry) const {
  const auto found = gangs_.find(entry.gang);
  const int64_t members = found == gangs_.end() ? 0 : found->second.members;
  if (members == 0) return absl::StrCat("its PodGroup ", entry.gang, " is not there (yet)");
  return absl::StrCat("its gang ", entry.gang, " starts when it has ", members,
                      " pods, so far it has ", found->second.pods.size());
}

std::string WorkloadBook::NameForPeople(const Entry& entry) const {
  const std::string job = StringField(*entry.pod, {"metadata", "labels", kJobLabel});
  return job.empty() ? "pod " + NameOf(*entry.pod) : "the job " + job;
}

std::string WorkloadBook::WhyNamesNoQueue(const Entry& entry) const {
  const std::string name = QueueNameOf(entry);
  std::vector<std::string> names;
  for (int i = 0; i < quotas_.count(); ++i) names.push_back(quotas_.spec(i).name);
  const std::string nearest = NearestName(name, names);
  return absl::StrCat("there is no queue '", name, "'",
                      nearest.empty() ? absl::StrCat("; there are ", absl::StrJoin(names, ", "))
                                      : absl::StrCat("; is '", nearest, "' meant?"));
}

// The first resource of which the queue, or its cohort, has not enough.
std::string WorkloadBook::WhyNoQuota(const Workload& workload) const {
  static constexpr const char* kNames[] = {"cpu", "memory", "GPUs"};
  const QueueSpec& queue = quotas_.spec(workload.queue);
  std::string text = absl::StrCat("the quota of queue '", queue.name, "' is used up");
  const auto say = [](size_t i, int64_t amount) { return FormatAmount(i == 2 ? kCpu : i, amount); };
  for (size_t i = 0; i < queue.quota.size(); ++i) {
    const int64_t used = quotas_.used(workload.queue).of[i];
    const int64_t wanted = workload.usage.of[i];
    if (queue.quota[i] < 0 || wanted <= 0 || used + wanted <= queue.quota[i]) continue;
    absl::StrAppend(&text, ": ", say(i, used), " of ", say(i, queue.quota[i]), " ", kNames[i],
                    " are in use, and it needs ", say(i, wanted));
    if (queue.cohort.empty()) {
      if (wanted > queue.quota[i]) absl::StrAppend(&text, ", more than there ever is");
    } else if (queue.borrowing[i] >= 0 && used + wanted > queue.quota[i] + queue.borrowing[i]) {
      absl::StrAppend(&text, "; it may borrow ", say(i, queue.borrowing[i]));
    } else {
      absl::StrAppend(&text, "; the others of cohort '", queue.cohort,
                      "' leave too little to borrow");
    }
    break;
  }
  return text;
}

// On which node it fits soonest when those end whose end is known; empty: on none.
std::string WorkloadBook::WhatWouldHelp(const PodNeeds& needs, const Ends& ends) {
  double soonest = kForever;
  std::string text;
  int nodes = 0;
  for (const auto& [node, list] : ends.by_node) {
    if (++nodes > kMostNodes) break;
    std::vector<std::pair<std::shared_ptr<const PodNeeds>, Place>> lifted;
    for (const Ends::End& end : list) {
      if (end.left >= soonest) break;
      const Workload& workload = dispatcher_.workload(end.entry->id);
      for (size_t i = 0; i < workload.pods.size(); ++i) {
        if (workload.places[i].node != node || workload.pods[i] != end.entry->needs) continue;
        state_.Vacate(workload.pods[i], workload.places[i], false);
        lifted.emplace_back(workload.pods[i], workload.places[i]);
        break;
      }
      if (CheckNode(state_.node(node), needs) != Misfit::kNone) continue;
      soonest = end.left;
      text = absl::StrCat(NameForPeople(*end.entry), " on node ",
                          state_.node(node).description->name, " ends in ", FormatWait(end.left));
      break;
    }
    for (auto& [lost, place] : lifted) state_.Occupy(lost, place);
  }
  return text;
}

// What it lacks where it lacks least, and when that changes: "It needs ...; node b has ..., ...".
std::string WorkloadBook::WhatIsMissing(const PodNeeds& needs, const Ends& ends) {
  std::string missing = NearestNode(state_, names_, needs);
  const std::string help = WhatWouldHelp(needs, ends);
  if (help.empty()) return missing;
  if (missing.empty()) return absl::StrCat("It fits when ", help, ".");
  missing.back() = ',';  // which was its full stop
  return absl::StrCat(missing, " ", help, ".");
}

std::string WorkloadBook::WhyNoRoom(const Entry& entry, const Ends& ends) {
  const std::string why = WhyNoNode(state_, names_, *entry.needs);
  if (why.empty()) return why;
  const std::string missing = WhatIsMissing(*entry.needs, ends);
  return missing.empty() ? why : absl::StrCat(why, " ", missing);
}

// The pods of a gang are placed one after the other, as far as it goes, and taken back.
std::string WorkloadBook::WhyNotWhole(const Entry& entry, const Workload& workload,
                                      const Ends& ends) {
  std::vector<Place> places;
  GangProgress gang;
  gang.placed = &places;
  gang.remaining = static_cast<int64_t>(workload.pods.size());
  std::string why;
  for (const auto& pod : workload.pods) {
    Place place = FindPlace(state_, *pod, gang, {options_.placement, options_.most_candidates});
    if (place.node < 0) break;
    state_.Occupy(pod, place);
    places.push_back(std::move(place));
    --gang.remaining;
  }
  if (places.size() < workload.pods.size()) {
    const Entry& missing = pods_[members_[entry.id][places.size()]];
    const std::string lacks = WhatIsMissing(*missing.needs, ends);
    why = absl::StrCat(places.size(), " of ", workload.pods.size(), " pods of gang ", entry.gang,
                       " fit; ", NameOf(*missing.pod));
    // "It needs 1 GPU; ..." of the pod that is named.
    const absl::string_view rest = absl::StripPrefix(lacks, "It ");
    absl::StrAppend(&why, rest.size() < lacks.size()
                              ? absl::StrCat(" ", rest)
                              : absl::StrCat(": ", WhyNoRoom(missing, ends)));
  }
  for (size_t i = places.size(); i-- > 0;) state_.Vacate(workload.pods[i], places[i], false);
  return why;
}

std::vector<WorkloadBook::Pending> WorkloadBook::ExplainPending(double now) {
  Ends ends;
  for (const auto& [key, entry] : pods_) {
    if (entry.stage != Stage::kPlaced || entry.id < 0) continue;
    const double left = LeftAt(dispatcher_.workload(entry.id), now);
    const int node = state_.FindNode(entry.node);
    if (left < kForever && node >= 0) ends.by_node[node].push_back({std::max(left, 0.0), &entry});
  }
  for (auto& [node, list] : ends.by_node) {
    std::sort(list.begin(), list.end(),
              [](const Ends::End& a, const Ends::End& b) { return a.left < b.left; });
  }
  std::vector<Pending> pending;
  std::map<const PodNeeds*, std::string> known;
  std::map<Dispatcher::Id, std::string> known_gangs;
  for (auto& [key, entry] : pods_) {
    if (entry.stage == Stage::kGated) {
      pending.push_back(
          {entry.pod, true, "Scheduling is blocked due to non-empty scheduling gates"});
      continue;
    }
    if (entry.stage != Stage::kWaiting) continue;
    Pending one = {entry.pod, false, ""};
    if (!entry.problem.ok()) {
      one.why = absl::StrCat("it cannot be placed: ", entry.problem.message());
    } else if (entry.id < 0 && NamesNoQueue(entry)) {
      one.why = WhyNamesNoQueue(entry);
    } else if (entry.id < 0) {
      one.why = WhyGangWaits(entry);
    } else if (const Workload& workload = dispatcher_.workload(entry.id);
               dispatcher_.waiting(entry.id) == Waiting::kQuota) {
      one.why = WhyNoQuota(workload);
    } else if (dispatcher_.waiting(entry.id) == Waiting::kVictims) {
      one.why = "waiting until the pods that make room for it have ended";
    } else if (workload.pods.size() > 1) {
      const auto [at, is_new] = known_gangs.try_emplace(entry.id);
      if (is_new) at->second = WhyNotWhole(entry, workload, ends);
      one.why = at->second;
    } else {
      const auto [at, is_new] = known.try_emplace(entry.needs.get());
      if (is_new) at->second = WhyNoRoom(entry, ends);
      one.why = at->second;
    }
    if (one.why.empty()) one.why = "it waits behind pods that go before it";
    pending.push_back(std::move(one));
  }
  return pending;
}

}  // namespace weft::platform
