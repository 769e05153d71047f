// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_status.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/jobs/job_progress.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {

const Json* JobStatus::FindCondition(absl::string_view type) const {
  return platform::FindCondition(json_, type);
}

bool JobStatus::IsTrue(absl::string_view type) const {
  const Json* const condition = FindCondition(type);
  return condition != nullptr && StringField(*condition, {"status"}) == "True";
}

void JobStatus::SetCondition(absl::string_view type, bool is_true, absl::string_view word,
                             absl::string_view message) {
  if (IsTrue("Failed")) return;
  const std::string reason = absl::StrCat(kind_, word);
  const std::string value = is_true ? "True" : "False";
  const std::string now = FormatObjectTime(now_);
  std::string transition = now;
  if (const Json* const held = FindCondition(type)) {
    const bool is_same = StringField(*held, {"status"}) == value;
    if (is_same && StringField(*held, {"reason"}) == reason) return;
    if (is_same) transition = StringField(*held, {"lastTransitionTime"});
  }
  Json kept = Json::MakeArray();
  if (const Json* const conditions = json_.Find("conditions")) {
    for (const Json& held : conditions->items()) {
      const std::string held_type = StringField(held, {"type"});
      const bool excludes = (type == "Restarting" && held_type == "Running") ||
                            (type == "Running" && held_type == "Restarting");
      if (held_type == type || excludes) continue;
      Json copy = held;
      const bool ends = type == "Failed" || type == "Succeeded";
      if (ends && held_type == "Running" && StringField(copy, {"status"}) == "True")
        copy.Set("status", "False");
      kept.Append(std::move(copy));
    }
  }
  Json condition;
  condition.Set("type", type);
  condition.Set("status", value);
  condition.Set("reason", reason);
  condition.Set("message", message);
  condition.Set("lastUpdateTime", now);
  condition.Set("lastTransitionTime", transition);
  kept.Append(std::move(condition));
  json_.Set("conditions", std::move(kept));
}

void JobStatus::RemoveCondition(absl::string_view type) {
  if (!HasCondition(type)) return;
  Json kept = Json::MakeArray();
  for (const Json& held : json_.Find("conditions")->items()) {
    if (StringField(held, {"type"}) != type) kept.Append(held);
  }
  json_.Set("conditions", std::move(kept));
}

void JobStatus::SetTime(absl::string_view field) { json_.Set(field, FormatObjectTime(now_)); }

void JobStatus::SetTimeOnce(absl::string_view field) {
  if (StringField(json_, {field}).empty()) SetTime(field);
}

absl::Time JobStatus::Time(absl::string_view field) const {
  return ParseObjectTime(StringField(json_, {field}));
}

void JobStatus::SetCounts(const std::string& type, int64_t active, int64_t succeeded,
                          int64_t failed, const std::string& selector) {
  Json counts = Json::MakeObject();
  if (active > 0) counts.Set("active", active);
  if (succeeded > 0) counts.Set("succeeded", succeeded);
  if (failed > 0) counts.Set("failed", failed);
  if (!selector.empty()) counts.Set("selector", selector);
  SetField(&json_, {"replicaStatuses", type}, std::move(counts));
}

void JobStatus::DropCounts(const std::string& type) {
  EraseField(&json_, {"replicaStatuses", type});
}

int64_t JobStatus::Count(const std::string& type, absl::string_view field) const {
  return IntField(json_, {"replicaStatuses", type, field});
}

void JobStatus::SetProgress(Json progress, Json staleness) {
  const Json* const before = json_.Find("progress");
  if (progress.is_null()) {
    if (!staleness.is_null()) SetField(&json_, {"progress", "staleness"}, std::move(staleness));
    return;
  }
  const int64_t lost = IntField(json_, {"progress", "lostSteps"}) +
                       (before == nullptr ? 0 : LostSteps(*before, progress));
  if (lost > 0) progress.Set("lostSteps", lost);
  if (!staleness.is_null()) progress.Set("staleness", std::move(staleness));
  json_.Set("progress", std::move(progress));
}

void JobStatus::CountRestart(const std::string& task, const std::string& uid,
                             absl::Duration steady_after) {
  if (HasCounted(task, uid)) return;
  Json entry;
  const bool begins = Restarts(task) == 0 || now_ - LastRestart(task) >= steady_after;
  entry.Set("inARow", begins ? int64_t{1} : RestartsInARow(task) + 1);
  entry.Set("count", Restarts(task) + 1);
  entry.Set("podUID", uid);
  entry.Set("time", FormatObjectTime(now_));
  SetField(&json_, {"restarts", task}, std::move(entry));
}

int64_t JobStatus::Restarts(const std::string& task) const {
  return IntField(json_, {"restarts", task, "count"});
}

int64_t JobStatus::RestartsInARow(const std::string& task) const {
  const Json* const row = FindField(json_, {"restarts", task, "inARow"});
  // Jobs of before it was told have the count alone.
  return row != nullptr ? IntField(json_, {"restarts", task, "inARow"}) : Restarts(task);
}

int64_t JobStatus::AllRestarts() const {
  const Json* const tasks = json_.Find("restarts");
  int64_t sum = 0;
  if (tasks == nullptr) return sum;
  for (const JsonMember& task : tasks->members()) sum += IntField(task.value, {"count"});
  return sum;
}

bool JobStatus::HasCounted(const std::string& task, const std::string& uid) const {
  return StringField(json_, {"restarts", task, "podUID"}) == uid;
}

absl::Time JobStatus::NextStart(const std::string& task, absl::Duration first_wait,
                                absl::Duration longest_wait) const {
  const int64_t restarts = RestartsInARow(task);
  if (restarts <= 1) return absl::InfinitePast();
  absl::Duration wait = first_wait;
  for (int64_t i = 2; i < restarts && wait < longest_wait; ++i) wait *= 2;
  return LastRestart(task) + std::min(wait, longest_wait);
}

absl::Time JobStatus::LastRestart(const std::string& task) const {
  return ParseObjectTime(StringField(json_, {"restarts", task, "time"}));
}

}  // namespace weft::platform
