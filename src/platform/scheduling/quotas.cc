// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/quotas.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/field_reader.h"
#include "platform/object/names.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr const char* kResources[] = {"cpu", "memory", "nvidia.com/gpu"};

// More than any cluster has, and few enough that sums of them do not overflow.
constexpr int64_t kMostOfAll = int64_t{1} << 52;
constexpr double kMostWeight = 1e6;

void ReadAmounts(FieldReader* queue, const char* field, std::array<int64_t, 3>* amounts,
                 Problems* problems) {
  const Json* const held = queue->Find(field);
  if (held == nullptr) return;
  FieldReader reader(*held, queue->PathOf(field), problems);
  for (size_t i = 0; i < amounts->size(); ++i) {
    const Json* const amount = reader.Find(kResources[i]);
    if (amount == nullptr) continue;
    const StatusOr<int64_t> thousandths = ParseQuantity(*amount);
    if (!thousandths.ok()) {
      problems->Add(*amount, reader.PathOf(kResources[i]), thousandths.status().message());
    } else if (*thousandths > kMostOfAll) {
      problems->Add(*amount, reader.PathOf(kResources[i]),
                    HoldsButAllowed(*amount, "less than 4P is allowed"));
    } else if (i == 2 && *thousandths % 1000 != 0) {
      problems->Add(*amount, reader.PathOf(kResources[i]),
                    HoldsButAllowed(*amount, "a whole number is allowed"));
    } else {
      (*amounts)[i] = i == 1 ? *thousandths / 1000 : *thousandths;
    }
  }
  reader.Finish();
}

void ReadWeight(FieldReader* reader, double* weight, Problems* problems) {
  const Json* const held = reader->Find("weight");
  if (held == nullptr) return;
  const double given = held->AsDouble().value_or(0);
  if (!(given > 0 && given <= kMostWeight)) {
    problems->Add(*held, reader->PathOf("weight"),
                  HoldsButAllowed(*held, "a number above 0, and of 1000000 at most, is allowed"));
    return;
  }
  *weight = given;
}

void CheckBorrowing(const FieldReader& reader, const Json& json, const QueueSpec& queue,
                    Problems* problems) {
  const Json* const limit = json.Find("borrowingLimit");
  if (limit == nullptr) return;
  const std::string path = reader.PathOf("borrowingLimit");
  if (queue.cohort.empty())
    problems->Add(*limit, path, "a queue without a cohort borrows from nobody: name its cohort");
  for (size_t i = 0; i < queue.borrowing.size(); ++i) {
    if (queue.borrowing[i] < 0 || queue.quota[i] >= 0) continue;
    problems->Add(*limit, absl::StrCat(path, ".", kResources[i]),
                  "bounds what goes beyond the quota, which the queue does not have of it");
  }
}

QueueSpec ReadQueue(const Json& json, const std::string& path, Problems* problems) {
  QueueSpec queue;
  FieldReader reader(json, path, problems);
  if (reader.Require("name", "each queue has one")) reader.ReadString("name", &queue.name);
  reader.ReadString("cohort", &queue.cohort);
  for (const auto& [field, value] :
       {std::pair{"name", &queue.name}, std::pair{"cohort", &queue.cohort}}) {
    const Json* const held = reader.Find(field);
    if (held == nullptr || !held->is_string()) continue;
    // A label of pods carries it.
    const NameProblems wrong = LabelNameProblems(*value);
    if (!wrong.empty())
      problems->Add(*held, reader.PathOf(field), HoldsButAllowed(*held, wrong.front()));
  }
  ReadWeight(&reader, &queue.weight, problems);
  ReadAmounts(&reader, "quota", &queue.quota, problems);
  ReadAmounts(&reader, "borrowingLimit", &queue.borrowing, problems);
  CheckBorrowing(reader, json, queue, problems);
  for (const char* const field : {"parent", "parentName", "children"}) {
    if (const Json* const held = reader.Find(field)) {
      problems->Add(*held, reader.PathOf(field),
                    "queues stand beside each other here, none in another: those of one cohort "
                    "lend each other what they do not use");
    }
  }
  reader.Finish();
  return queue;
}

}  // namespace

StatusOr<std::vector<QueueSpec>> ReadQueues(const Json& list, const std::string& file) {
  Problems problems(file);
  if (!list.is_array()) {
    problems.Add(list, "", HoldsButAllowed(list, "a list of queues is allowed: - name: research"));
    return problems.ToStatus();
  }
  std::vector<QueueSpec> queues;
  std::map<std::string, int> lines;
  for (const Json& json : list.items()) {
    const std::string path = absl::StrCat("queues[", queues.size(), "]");
    queues.push_back(ReadQueue(json, path, &problems));
    const QueueSpec& queue = queues.back();
    if (queue.name.empty()) continue;
    const auto [known, is_new] = lines.try_emplace(queue.name, json.position().line);
    if (!is_new) {
      problems.Add(
          json, path + ".name",
          absl::StrCat("there is a queue '", queue.name, "' already",
                       known->second > 0 ? absl::StrCat(", in line ", known->second) : ""));
    }
  }
  if (queues.empty()) problems.Add(list, "", "there is no queue in it");
  WEFT_RETURN_IF_ERROR(problems.ToStatus());
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

bool Quotas::Knows(absl::string_view name) const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [&](const Queue& queue) { return queue.spec.name == name; });
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

bool Quotas::MayBorrow(const Queue& queue, const Usage& more) const {
  for (size_t i = 0; i < more.of.size(); ++i) {
    const int64_t quota = queue.spec.quota[i];
    const int64_t beyond = queue.spec.borrowing[i];
    if (quota < 0 || beyond < 0 || more.of[i] <= 0) continue;
    if (queue.used.of[i] + more.of[i] > quota + beyond) return false;
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
  return has_room && MayBorrow(queue, more) ? Verdict::kBorrows : Verdict::kOver;
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
