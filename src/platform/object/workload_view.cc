// SPDX-License-Identifier: Apache-2.0
#include "platform/object/workload_view.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr int64_t kUsualHistory = 10;
constexpr int64_t kUsualBackoff = 6;

const Json& MappingAt(const Json& object, FieldPath path) {
  static const auto* const none = new Json(Json::MakeObject());
  const Json* const held = FindField(object, path);
  return held == nullptr ? *none : *held;
}

std::optional<absl::Duration> SecondsAt(const Json& object, FieldPath path) {
  const Json* const seconds = FindField(object, path);
  if (seconds == nullptr) return std::nullopt;
  return absl::Seconds(seconds->AsInt().value_or(0));
}

}  // namespace

int64_t WorkloadView::replicas() const { return IntField(json_, {"spec", "replicas"}, 1); }
int64_t WorkloadView::min_ready_seconds() const {
  return IntField(json_, {"spec", "minReadySeconds"});
}
int64_t WorkloadView::generation() const { return IntField(json_, {"metadata", "generation"}); }
int64_t WorkloadView::history_limit() const {
  return IntField(json_, {"spec", "revisionHistoryLimit"}, kUsualHistory);
}
const Json& WorkloadView::pod_template() const { return MappingAt(json_, {"spec", "template"}); }
const Json& WorkloadView::template_labels() const {
  return MappingAt(json_, {"spec", "template", "metadata", "labels"});
}
const Json& WorkloadView::written_selector() const {
  return MappingAt(json_, {"spec", "selector"});
}
Selector WorkloadView::selector() const {
  return Selector::FromObject(written_selector()).value_or(Selector());
}
const Json& WorkloadView::status() const { return MappingAt(json_, {"status"}); }
int64_t WorkloadView::status_replicas() const { return IntField(status(), {"replicas"}); }
int64_t WorkloadView::ready_replicas() const { return IntField(status(), {"readyReplicas"}); }
int64_t WorkloadView::available_replicas() const {
  return IntField(status(), {"availableReplicas"});
}
std::string WorkloadView::annotation(absl::string_view name) const {
  return StringField(json_, {"metadata", "annotations", name});
}

bool DeploymentView::is_paused() const { return BoolField(json_, {"spec", "paused"}); }
bool DeploymentView::is_recreated() const {
  return StringField(json_, {"spec", "strategy", "type"}) == "Recreate";
}
const Json* DeploymentView::max_surge() const {
  return FindField(json_, {"spec", "strategy", "rollingUpdate", "maxSurge"});
}
const Json* DeploymentView::max_unavailable() const {
  return FindField(json_, {"spec", "strategy", "rollingUpdate", "maxUnavailable"});
}

bool StatefulSetView::is_parallel() const {
  return StringField(json_, {"spec", "podManagementPolicy"}) == "Parallel";
}
bool StatefulSetView::updates_on_delete() const {
  return StringField(json_, {"spec", "updateStrategy", "type"}) == "OnDelete";
}
int64_t StatefulSetView::partition() const {
  return IntField(json_, {"spec", "updateStrategy", "rollingUpdate", "partition"});
}
std::string StatefulSetView::service() const { return StringField(json_, {"spec", "serviceName"}); }
const Json::Array& StatefulSetView::claim_templates() const {
  return ListField(json_, {"spec", "volumeClaimTemplates"});
}
std::string StatefulSetView::current_revision() const {
  return StringField(json_, {"status", "currentRevision"});
}

int64_t BatchJobView::parallelism() const { return IntField(json_, {"spec", "parallelism"}, 1); }
std::optional<int64_t> BatchJobView::completions() const {
  if (FindField(json_, {"spec", "completions"}) == nullptr) return std::nullopt;
  return IntField(json_, {"spec", "completions"});
}
int64_t BatchJobView::backoff_limit() const {
  return IntField(json_, {"spec", "backoffLimit"}, kUsualBackoff);
}
bool BatchJobView::is_suspended() const { return BoolField(json_, {"spec", "suspend"}); }
bool BatchJobView::is_indexed() const {
  return StringField(json_, {"spec", "completionMode"}) == "Indexed";
}
bool BatchJobView::restarts_in_place() const {
  return StringField(pod_template(), {"spec", "restartPolicy"}) == "OnFailure";
}
std::optional<absl::Duration> BatchJobView::time_to_live() const {
  return SecondsAt(json_, {"spec", "ttlSecondsAfterFinished"});
}
std::optional<absl::Duration> BatchJobView::longest_run() const {
  return SecondsAt(json_, {"spec", "activeDeadlineSeconds"});
}
std::string BatchJobView::managed_by() const { return StringField(json_, {"spec", "managedBy"}); }

}  // namespace weft::platform
