// SPDX-License-Identifier: Apache-2.0
#include "platform/object/training_job_view.h"

#include "platform/object/fields.h"

namespace weft::platform {

bool TrainingJobView::is_v1beta1() const {
  return FindField(json_, {"spec", "cleanPodPolicy"}) != nullptr;
}

bool TrainingJobView::is_suspended() const {
  return BoolField(json_, {"spec", "runPolicy", "suspend"}) ||
         BoolField(json_, {"spec", "suspend"});
}

std::string TrainingJobView::managed_by() const {
  return StringField(json_, {"spec", "runPolicy", "managedBy"});
}

std::optional<absl::Duration> TrainingJobView::time_to_live() const {
  int64_t seconds = IntField(json_, {"spec", "runPolicy", "ttlSecondsAfterFinished"}, -1);
  if (seconds < 0) seconds = IntField(json_, {"spec", "ttlSecondsAfterFinished"}, -1);
  if (seconds < 0) seconds = IntField(json_, {"spec", "ttl_seconds_after_finished"}, -1);
  if (seconds < 0) return std::nullopt;
  return absl::Seconds(seconds);
}

const Json& TrainingJobView::status() const {
  static const auto* const none = new Json(Json::MakeObject());
  const Json* const held = json_.Find("status");
  return held == nullptr || !held->is_object() ? *none : *held;
}

const Json* TrainingJobView::restarts() const { return FindField(status(), {"restarts"}); }
bool TrainingJobView::has_succeeded() const { return IsConditionTrue(json_, "Succeeded"); }
bool TrainingJobView::has_failed() const { return IsConditionTrue(json_, "Failed"); }

std::string TrainingJobView::failure() const {
  const Json* const failed = ConditionOf(json_, "Failed");
  return failed == nullptr ? "" : StringField(*failed, {"message"});
}

}  // namespace weft::platform
