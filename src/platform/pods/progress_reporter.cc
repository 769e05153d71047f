// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/progress_reporter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/object_time.h"
#include "platform/pods/process_report.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// The rest at the speed since the first line; nothing before a second line.
std::optional<int64_t> SecondsLeft(int64_t first, int64_t step, int64_t steps,
                                   absl::Duration elapsed) {
  if (step <= first || steps < step || elapsed <= absl::ZeroDuration()) return std::nullopt;
  const absl::Duration left =
      elapsed * (static_cast<double>(steps - step) / static_cast<double>(step - first));
  return absl::ToInt64Seconds(absl::Ceil(left, absl::Seconds(1)));
}

}  // namespace

void ProgressReporter::Hear(const Json& pod, const std::vector<std::string>& lines) {
  const std::string uid = UidOf(pod);
  const auto found = pods_.find(uid);
  if (lines.empty()) {
    if (found == pods_.end()) return;
    if (!found->second.is_written) Write(pod, &found->second);
    pods_.erase(found);
    return;
  }
  std::optional<Json> latest;
  ToldStaleness staleness = found == pods_.end() ? ToldStaleness() : found->second.staleness;
  bool has_news = false;
  for (const std::string& line : lines) {
    if (std::optional<Json> progress = ParseProgressLine(line)) latest = std::move(progress);
    has_news = staleness.Hear(line) || has_news;
  }
  if (!latest.has_value() && !has_news) return;
  State* const state = &pods_[uid];
  if (latest.has_value()) HearStep(*std::move(latest), state);
  state->staleness = std::move(staleness);
  state->is_written = false;
  if (clock_->Monotonic() - state->written >= period_) Write(pod, state);
}

void ProgressReporter::HearStep(Json progress, State* state) const {
  const absl::Duration now = clock_->Monotonic();
  const int64_t step = IntField(progress, {"step"});
  if (state->latest.is_null() || step < state->first_step) {
    state->first_step = step;
    state->first_heard = now;
  }
  const std::optional<int64_t> left =
      SecondsLeft(state->first_step, step, IntField(progress, {"steps"}), now - state->first_heard);
  if (left.has_value()) progress.Set("secondsLeft", *left);
  progress.Set("time", FormatObjectTime(clock_->Now()));
  state->latest = std::move(progress);
}

void ProgressReporter::Write(const Json& pod, State* state) {
  state->is_written = true;
  state->written = clock_->Monotonic();
  Json report = state->latest;
  if (!state->staleness.empty()) report.Set("staleness", state->staleness.Describe());
  Json patch;
  SetField(&patch, {"metadata", "annotations", kProgressAnnotation}, report.Dump());
  const Status status =
      store_
          ->Patch(Pods(), {NamespaceOf(pod), NameOf(pod)}, PatchKind::kMerge, patch, WriteOptions())
          .status();
  if (status.ok() || IsObjectNotFound(status)) return;
  WEFT_LOG_EVERY(WARNING, absl::Seconds(30))
      << "The progress of pod " << NameOf(pod) << " is not written: " << status.message();
}

}  // namespace weft::platform
