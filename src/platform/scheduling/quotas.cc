// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/quotas.h"

#include <algorithm>
#include <set>
#include <utility>

#include "platform/object/fields.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr const char* kResources[] = {"cpu", "memory", "nvidia.com/gpu"};

Status ReadQuota(const Json& quota, QueueSpec* queue) {
  for (const JsonMember& member : quota.members()) {
    const auto* const found = std::find(std::begin(kResources), std::end(kResources), member.name);
    if (found == std::end(kResources)) {
      return InvalidArgument("quota of '", member.name,
                             "': cpu, memory and nvidia.com/gpu can be bounded");
    }
    const StatusOr<int64_t> thousandths = ParseQuantity(member.value);
    if (!thousandths.ok()) return Annotate(thousandths.status(), "quota: " + member.name);
    const auto at = static_cast<size_t>(found - std::begin(kResources));
    queue->quota[at] = at == 1 ? *thousandths / 1000 : *thousandths;
  }
  return absl::OkStatus();
}

StatusOr<QueueSpec> ReadQueue(const Json& json) {
  QueueSpec queue;
  for (const JsonMember& member : json.members()) {
    if (member.name == "name") {
      WEFT_ASSIGN_OR_RETURN(queue.name, member.value.AsString());
    } else if (member.name == "cohort") {
      WEFT_ASSIGN_OR_RETURN(queue.cohort, member.value.AsString());
    } else if (member.name == "weight") {
      WEFT_ASSIGN_OR_RETURN(queue.weight, member.value.AsDouble());
      if (!(queue.weight > 0))
        return InvalidArgument("weight holds ", member.value.Dump(), ", more than 0 is allowed");
    } else if (member.name == "quota") {
      WEFT_RETURN_IF_ERROR(ReadQuota(member.value, &queue));
    } else {
      return InvalidArgument("holds '", member.name,
                             "', name, cohort, weight and quota are allowed");
    }
  }
  if (queue.name.empty()) return InvalidArgument("has no name");
  return queue;
}

}  // namespace

StatusOr<std::vector<QueueSpec>> ReadQueues(const Json& list) {
  if (!list.is_array())
    return InvalidArgument("A list of queues is needed, found ", list.Describe());
  std::vector<QueueSpec> queues;
  std::set<std::string> names;
  for (const Json& json : list.items()) {
    StatusOr<QueueSpec> queue = ReadQueue(json);
    if (!queue.ok()) {
      return Annotate(queue.status(),
                      absl::StrCat("queue ", queues.size() + 1, " ", json.Describe()));
    }
    if (!names.insert(queue->name).second)
      return InvalidArgument("The queue '", queue->name, "' stands there twice");
    queues.push_back(*std::move(queue));
  }
  return queues;
}

Quotas::Quotas(std::vector<QueueSpec> queues) {
  QueueSpec fallback;
  fallback.name = "default";
  queues_.push_back({fallback, {}});
  for (QueueSpec& queue : queues) {
    if (queue.name == "default") {
      queues_[0].spec = std::move(queue);
    } else {
      queues_.push_back({std::move(queue), {}});
    }
  }
}

int Quotas::NumberOf(absl::string_view name) const {
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].spec.name == name) return static_cast<int>(i);
  }
  return 0;
}

int Quotas::Add(const std::string& name) {
  const int known = NumberOf(name);
  if (known > 0 || name.empty() || name == "default") return known;
  QueueSpec spec;
  spec.name = name;
  queues_.push_back({std::move(spec), {}});
  return count() - 1;
}

bool Quotas::IsWithin(const Queue& queue, const Usage& more) const {
  for (size_t i = 0; i < more.of.size(); ++i) {
    const int64_t quota = queue.spec.quota[i];
    if (quota >= 0 && more.of[i] > 0 && queue.used.of[i] + more.of[i] > quota) return false;
  }
  return true;
}

bool Quotas::CohortHas(const std::string& cohort, const Usage& more) const {
  for (size_t i = 0; i < more.of.size(); ++i) {
    if (more.of[i] <= 0) continue;
    int64_t quota = 0;
    int64_t used = 0;
    bool is_bounded = true;
    for (const Queue& queue : queues_) {
      if (queue.spec.cohort != cohort) continue;
      if (queue.spec.quota[i] < 0) is_bounded = false;
      quota += std::max<int64_t>(queue.spec.quota[i], 0);
      used += queue.used.of[i];
    }
    if (is_bounded && used + more.of[i] > quota) return false;
  }
  return true;
}

Quotas::Verdict Quotas::Check(int number, const Usage& more) const {
  const Queue& queue = queues_[static_cast<size_t>(number)];
  const bool is_within = IsWithin(queue, more);
  if (queue.spec.cohort.empty()) return is_within ? Verdict::kWithin : Verdict::kOver;
  const bool has_room = CohortHas(queue.spec.cohort, more);
  if (is_within) return has_room ? Verdict::kWithin : Verdict::kMustWait;
  return has_room ? Verdict::kBorrows : Verdict::kOver;
}

bool Quotas::MayReclaim(int queue, int other) const {
  const Queue& from = queues_[static_cast<size_t>(other)];
  const std::string& cohort = queues_[static_cast<size_t>(queue)].spec.cohort;
  if (queue == other || cohort.empty() || from.spec.cohort != cohort) return false;
  for (size_t i = 0; i < from.used.of.size(); ++i) {
    if (from.spec.quota[i] >= 0 && from.used.of[i] > from.spec.quota[i]) return true;
  }
  return false;
}

void Quotas::Charge(int queue, const Usage& usage, int64_t sign) {
  AddUsage(usage, sign, &queues_[static_cast<size_t>(queue)].used);
}

double Quotas::DominantShare(int queue, const Usage& capacity) const {
  const Queue& of = queues_[static_cast<size_t>(queue)];
  double share = 0;
  for (size_t i = 0; i < capacity.of.size(); ++i) {
    if (capacity.of[i] <= 0) continue;
    share =
        std::max(share, static_cast<double>(of.used.of[i]) / static_cast<double>(capacity.of[i]));
  }
  return share / of.spec.weight;
}

}  // namespace weft::platform
