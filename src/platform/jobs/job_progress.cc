// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "platform/jobs/task_objects.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/pod_view.h"
#include "platform/object/update_staleness.h"

namespace weft::platform {
namespace {

constexpr size_t kMostMetrics = 20;
constexpr JsonLimits kLimits = {.max_bytes = 16 << 10, .max_depth = 4};

// Null when the pod tells nothing that can be read.
Json TextOf(const Json& pod) {
  const std::string text = PodView(pod).annotation(kProgressAnnotation);
  return text.empty() ? Json() : Json::Parse(text, kLimits).value_or(Json());
}

// Null when the pod tells no step.
Json ReportOf(const Json& pod) {
  Json report = TextOf(pod);
  return IntField(report, {"step"}, -1) < 0 ? Json() : report;
}

Json Describe(const Json& pod, const Json& report) {
  Json progress;
  progress.Set("task",
               absl::StrCat(PodView(pod).label(kTypeLabel), "-", PodView(pod).label(kIndexLabel)));
  const int64_t step = IntField(report, {"step"});
  const int64_t steps = IntField(report, {"steps"});
  progress.Set("step", step);
  if (steps > 0) {
    progress.Set("steps", steps);
    progress.Set("percent", absl::StrCat(std::min<int64_t>(100, step * 100 / steps), "%"));
  }
  const int64_t left = IntField(report, {"secondsLeft"}, -1);
  if (left >= 0) progress.Set("timeLeft", absl::FormatDuration(absl::Seconds(left)));
  Json metrics = Json::MakeObject();
  for (const JsonMember& member : report.members()) {
    const bool is_own =
        member.name == "step" || member.name == "steps" || member.name == "secondsLeft";
    if (!is_own && member.value.is_number() && metrics.size() < kMostMetrics) {
      metrics.Set(member.name, member.value);
    }
  }
  if (metrics.size() > 0) progress.Set("metrics", std::move(metrics));
  const std::string time = StringField(report, {"time"});
  if (!time.empty()) progress.Set("time", time);
  return progress;
}

}  // namespace

Json ProgressOf(const std::vector<ObjectPtr>& pods) {
  Json best;
  int64_t best_step = -1;
  for (const ObjectPtr& pod : pods) {
    const Json report = ReportOf(*pod);
    if (report.is_null()) continue;
    const bool is_chief = !PodView(*pod).label(kRoleLabel).empty();
    if (is_chief) return Describe(*pod, report);
    if (IntField(report, {"step"}) <= best_step) continue;
    best_step = IntField(report, {"step"});
    best = Describe(*pod, report);
  }
  return best;
}

Json StalenessOf(const std::vector<ObjectPtr>& pods) {
  UpdateStaleness all;
  for (const ObjectPtr& pod : pods) {
    const Json text = TextOf(*pod);
    const Json* const told = FindField(text, {"staleness"});
    if (told == nullptr) continue;
    if (const auto staleness = UpdateStaleness::FromJson(*told)) all.Add(*staleness);
  }
  return all.updates == 0 ? Json() : all.Describe();
}

int64_t LostSteps(const Json& before, const Json& progress) {
  if (StringField(before, {"task"}) != StringField(progress, {"task"})) return 0;
  return std::max<int64_t>(0, IntField(before, {"step"}) - IntField(progress, {"step"}));
}

}  // namespace weft::platform
