// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/log_progress.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"

#include "base/log.h"
#include "platform/jobs/task_objects.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_view.h"

namespace weft::platform {
namespace {

constexpr int64_t kServersAsked = 4;

bool IsFirstServer(const PodView& view) {
  int64_t index = 0;
  return view.label(kTypeLabel) == ReplicaTypeName(ReplicaType::kPs) &&
         absl::SimpleAtoi(view.label(kIndexLabel), &index) && index < kServersAsked;
}

}  // namespace

bool LogProgress::IsWanted(const Json& pod) {
  const PodView view(pod);
  return view.is_running() && view.annotation(kProgressAnnotation).empty() &&
         (!view.label(kRoleLabel).empty() || IsFirstServer(view));
}

bool LogProgress::Look(const Json& pod) {
  StatusOr<Json> report = read_({NamespaceOf(pod), NameOf(pod)});
  if (!report.ok()) {
    WEFT_LOG_EVERY(WARNING, absl::Seconds(60))
        << "The log of pod " << NameOf(pod) << " tells no progress: " << report.status().message();
    return false;
  }
  const int64_t step = IntField(*report, {"step"}, -1);
  const Json* const stale = FindField(*report, {"staleness"});
  if (step < 0 && stale == nullptr) return false;
  const std::string staleness = stale == nullptr ? "" : stale->Dump();
  absl::MutexLock lock(&mutex_);
  State& state = pods_[UidOf(pod)];
  if (step == state.last_step && staleness == state.staleness) return false;
  state.staleness = staleness;
  if (step >= 0) AddTimes(step, &state, &*report);
  state.report = report->Dump();
  return true;
}

void LogProgress::AddTimes(int64_t step, State* state, Json* report) const {
  const absl::Duration now = clock_->Monotonic();
  if (state->last_step < 0 || step < state->first_step) {
    state->first_step = step;
    state->first_seen = now;
  }
  state->last_step = step;
  const int64_t steps = IntField(*report, {"steps"});
  if (step > state->first_step && steps >= step) {
    const double a_step = absl::ToDoubleSeconds(now - state->first_seen) /
                          static_cast<double>(step - state->first_step);
    report->Set("secondsLeft",
                static_cast<int64_t>(std::ceil(a_step * static_cast<double>(steps - step))));
  }
  report->Set("time", FormatObjectTime(clock_->Now()));
}

std::vector<ObjectPtr> LogProgress::Annotate(std::vector<ObjectPtr> pods) const {
  absl::MutexLock lock(&mutex_);
  for (ObjectPtr& pod : pods) {
    const auto found = pods_.find(UidOf(*pod));
    if (found == pods_.end() || found->second.report.empty()) continue;
    Json told = *pod;
    SetField(&told, {"metadata", "annotations", kProgressAnnotation}, found->second.report);
    pod = std::make_shared<const Json>(std::move(told));
  }
  return pods;
}

void LogProgress::Keep(const std::set<std::string>& uids) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(pods_, [&](const auto& entry) { return uids.count(entry.first) == 0; });
}

}  // namespace weft::platform
