// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/cpu_sets.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr int64_t kWholeProcessor = 1000;
constexpr int64_t kMostProcessors = 1 << 14;

bool Has(const std::vector<int>& processors, int processor) {
  return std::find(processors.begin(), processors.end(), processor) != processors.end();
}

void Remove(const std::vector<int>& gone, std::vector<int>* processors) {
  processors->erase(std::remove_if(processors->begin(), processors->end(),
                                   [&](int processor) { return Has(gone, processor); }),
                    processors->end());
}

}  // namespace

ProcessorWish ReadProcessorWish(const Json& pod, const Json& container) {
  ProcessorWish wish;
  const Json* const owner = ControllerOf(pod);
  wish.job = owner == nullptr ? UidOf(pod) : StringField(*owner, {"uid"});
  const std::string text = StringField(pod, {"metadata", "annotations", kJobProcessorsAnnotation});
  int64_t job_own = 0;
  if (absl::SimpleAtoi(text, &job_own) && job_own > 0 && !wish.job.empty()) {
    wish.job_own = std::min(job_own, kMostProcessors);
  } else if (!text.empty()) {
    wish.problem = absl::StrCat("the annotation ", kJobProcessorsAnnotation, " holds \"", text,
                                "\", a number of processors such as \"1\" is allowed");
  }
  const Json* const limit = FindField(container, {"resources", "limits", "cpu"});
  if (limit == nullptr) return wish;
  wish.limit_thousandths = std::max<int64_t>(0, ParseQuantity(*limit).value_or(0));
  const bool is_whole = wish.limit_thousandths % kWholeProcessor == 0;
  if (is_whole && StringField(pod, {"status", "qosClass"}) == "Guaranteed")
    wish.own = wish.limit_thousandths / kWholeProcessor;
  return wish;
}

CpuSets::CpuSets(std::vector<int> processors, ProcessorTopology topology)
    : all_(std::move(processors)), topology_(std::move(topology)), shared_(all_) {}

ProcessorPlace CpuSets::PlaceOf(int processor) const {
  const auto found = topology_.find(processor);
  // Its core is its own.
  return found == topology_.end() ? ProcessorPlace{0, 0, -1 - processor} : found->second;
}

std::vector<int> CpuSets::NumaNodesOf(const std::vector<int>& processors) const {
  std::set<int> nodes;
  for (const int processor : processors) nodes.insert(PlaceOf(processor).numa_node);
  return {nodes.begin(), nodes.end()};
}

std::vector<int> CpuSets::ProcessorsOf(const std::string& job) const {
  std::vector<int> processors;
  if (job.empty()) return processors;
  for (const auto& [id, holder] : holders_) {
    if (holder.job != job) continue;
    const auto group = groups_.find(holder.group);
    for (const auto* const list :
         {&holder.own, &holder.narrowed, group == groups_.end() ? &holder.own : &group->second.own})
      processors.insert(processors.end(), list->begin(), list->end());
  }
  return processors;
}

// Of those who share it, without one of them and without a job; in thousandths of a processor.
int64_t CpuSets::LoadOf(int processor, const Holder* but, const std::string& but_job) const {
  int64_t load = 0;
  for (const auto& [id, holder] : holders_) {
    if (&holder == but || (!but_job.empty() && holder.job == but_job)) continue;
    if (Has(holder.narrowed, processor))
      load += holder.thousandths / static_cast<int64_t>(holder.narrowed.size());
  }
  return load;
}

// Beside what is chosen, or at first beside the job's others, where there is room for all that is
// wanted; else where the most room is.
int CpuSets::BestOwn(size_t wanted, const std::vector<int>& chosen,
                     const std::vector<int>& mates) const {
  std::map<int, size_t> node_room;
  std::map<int, size_t> cache_room;
  std::map<int, size_t> core_room;
  std::map<int, size_t> core_size;
  for (const int processor : all_) ++core_size[PlaceOf(processor).core];
  for (const int processor : shared_) {
    const ProcessorPlace place = PlaceOf(processor);
    ++node_room[place.numa_node];
    ++cache_room[place.cache];
    ++core_room[place.core];
  }
  std::set<int> near_nodes;
  std::set<int> near_caches;
  std::set<int> begun_cores;
  for (const int processor : chosen) begun_cores.insert(PlaceOf(processor).core);
  for (const int processor : chosen.empty() ? mates : chosen) {
    near_nodes.insert(PlaceOf(processor).numa_node);
    near_caches.insert(PlaceOf(processor).cache);
  }
  const auto rank_of = [&](size_t room, bool is_near) {
    const bool is_enough = room >= wanted;
    return is_near && (is_enough || !chosen.empty()) ? 0 : is_enough ? 1 : 2;
  };
  using Rank = std::tuple<int, int, int, size_t, size_t, int64_t, int>;
  Rank best(3, 0, 0, 0, 0, 0, -1);
  for (const int processor : shared_) {
    const ProcessorPlace place = PlaceOf(processor);
    const size_t nodes = node_room[place.numa_node];
    const size_t caches = cache_room[place.cache];
    // What is begun is finished; then cores of which nobody has a part.
    const int core = begun_cores.count(place.core) != 0               ? 0
                     : core_room[place.core] == core_size[place.core] ? 1
                                                                      : 2;
    const Rank rank(rank_of(nodes, near_nodes.count(place.numa_node) != 0),
                    rank_of(caches, near_caches.count(place.cache) != 0), core, all_.size() - nodes,
                    all_.size() - caches, LoadOf(processor, nullptr, ""), processor);
    best = std::min(best, rank);
  }
  return std::get<6>(best);
}

std::vector<int> CpuSets::TakeOwn(int64_t count, const std::string& job) {
  std::vector<int> own;
  if (count <= 0 || count >= static_cast<int64_t>(shared_.size())) return own;
  const std::vector<int> mates = ProcessorsOf(job);
  while (static_cast<int64_t>(own.size()) < count) {
    const size_t wanted = static_cast<size_t>(count) - own.size();
    own.push_back(BestOwn(wanted, own, mates));
    Remove({own.back()}, &shared_);
  }
  std::sort(own.begin(), own.end());
  return own;
}

// Not more than it holds together with those of its job; then where others have the least to do,
// and its job is.
std::tuple<int64_t, int64_t, int, int64_t, int> CpuSets::SharedRank(int processor,
                                                                    const Holder& holder) const {
  const int64_t each = holder.thousandths / static_cast<int64_t>(std::max<size_t>(holder.most, 1));
  const int64_t load = LoadOf(processor, &holder, "");
  const bool has_mates = load > LoadOf(processor, &holder, holder.job);
  return {std::max<int64_t>(0, load + each - kWholeProcessor),
          LoadOf(processor, &holder, holder.job), has_mates ? 0 : 1, load, processor};
}

// After the shared ones have changed: keeps what may be kept, so that little moves.
void CpuSets::Narrow() {
  for (auto& [id, holder] : holders_) {
    auto& narrowed = holder.narrowed;
    for (const int processor : std::vector<int>(narrowed)) {
      if (!Has(shared_, processor)) Remove({processor}, &narrowed);
    }
  }
  for (auto& [id, holder] : holders_) {
    while (holder.narrowed.size() < std::min(holder.most, shared_.size())) {
      int best = -1;
      for (const int processor : shared_) {
        if (Has(holder.narrowed, processor)) continue;
        if (best < 0 || SharedRank(processor, holder) < SharedRank(best, holder)) best = processor;
      }
      holder.narrowed.push_back(best);
    }
    std::sort(holder.narrowed.begin(), holder.narrowed.end());
  }
}

// False when there is no room for the job's own ones.
bool CpuSets::JoinGroup(const ProcessorWish& wish, Holder* holder) {
  Group& group = groups_[wish.job];
  if (group.members == 0) group.own = TakeOwn(wish.job_own, wish.job);
  if (group.own.empty()) {
    groups_.erase(wish.job);
    return false;
  }
  ++group.members;
  holder->group = wish.job;
  return true;
}

void CpuSets::Take(const std::string& id, const ProcessorWish& wish) {
  Release(id);
  Holder holder;
  holder.job = wish.job;
  if (wish.job_own > 0) {
    if (!JoinGroup(wish, &holder)) {
      holder.most = static_cast<size_t>(wish.job_own);
      holder.thousandths = wish.job_own;  // so little that all of the job go together
    }
  } else {
    holder.own = TakeOwn(wish.own, wish.job);
    if (holder.own.empty() && wish.limit_thousandths > 0) {
      holder.most =
          static_cast<size_t>((wish.limit_thousandths + kWholeProcessor - 1) / kWholeProcessor);
      holder.thousandths = wish.limit_thousandths;
    }
  }
  holders_[id] = std::move(holder);
  Narrow();
}

void CpuSets::GiveBack(const std::vector<int>& own) {
  shared_.insert(shared_.end(), own.begin(), own.end());
  std::sort(shared_.begin(), shared_.end());
}

void CpuSets::Release(const std::string& id) {
  const auto found = holders_.find(id);
  if (found == holders_.end()) return;
  GiveBack(found->second.own);
  const auto group = groups_.find(found->second.group);
  if (group != groups_.end() && --group->second.members == 0) {
    GiveBack(group->second.own);
    groups_.erase(group);
  }
  holders_.erase(found);
  Narrow();
}

ProcessorShare CpuSets::ShareOf(const std::string& id) const {
  const auto found = holders_.find(id);
  if (found == holders_.end()) return {shared_, false};
  const Holder& holder = found->second;
  const auto group = groups_.find(holder.group);
  if (group != groups_.end()) return {group->second.own, true};
  if (!holder.own.empty()) return {holder.own, true};
  return {holder.most == 0 ? shared_ : holder.narrowed, false};
}

std::string FormatProcessors(const std::vector<int>& processors) {
  std::string text;
  for (size_t i = 0; i < processors.size();) {
    size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", processors[i]);
    if (last > i) absl::StrAppend(&text, "-", processors[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace weft::platform
