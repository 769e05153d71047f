// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod_view.h"

#include <algorithm>

#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

constexpr int64_t kGraceOfPods = 30;

const Json* Named(const Json::Array& list, absl::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Json& item) {
    return StringField(item, {"name"}) == name;
  });
  return found == list.end() ? nullptr : &*found;
}

template <typename View>
std::optional<View> ViewOf(const Json* json) {
  return json == nullptr ? std::nullopt : std::optional<View>(View(*json));
}

}  // namespace

int TerminationView::exit_code() const { return static_cast<int>(IntField(json_, {"exitCode"})); }
int TerminationView::signal() const { return static_cast<int>(IntField(json_, {"signal"})); }
std::string TerminationView::reason() const { return StringField(json_, {"reason"}); }
std::string TerminationView::message() const { return StringField(json_, {"message"}); }
absl::Time TerminationView::started() const { return TimeField(json_, {"startedAt"}); }
absl::Time TerminationView::finished() const { return TimeField(json_, {"finishedAt"}); }

std::string ContainerStatusView::name() const { return StringField(json_, {"name"}); }
int64_t ContainerStatusView::restarts() const { return IntField(json_, {"restartCount"}); }
bool ContainerStatusView::is_ready() const { return BoolField(json_, {"ready"}); }
bool ContainerStatusView::has_started() const { return BoolField(json_, {"started"}); }
bool ContainerStatusView::is_running() const {
  return FindField(json_, {"state", "running"}) != nullptr;
}
bool ContainerStatusView::is_waiting() const {
  return FindField(json_, {"state", "waiting"}) != nullptr;
}
std::string ContainerStatusView::waiting_reason() const {
  return StringField(json_, {"state", "waiting", "reason"});
}
std::optional<TerminationView> ContainerStatusView::ended() const {
  return ViewOf<TerminationView>(FindField(json_, {"state", "terminated"}));
}
std::optional<TerminationView> ContainerStatusView::ended_before() const {
  return ViewOf<TerminationView>(FindField(json_, {"lastState", "terminated"}));
}

std::string ContainerView::name() const { return StringField(json_, {"name"}); }
std::string ContainerView::image() const { return StringField(json_, {"image"}); }
std::string ContainerView::restart_policy() const { return StringField(json_, {"restartPolicy"}); }
bool ContainerView::has_hooks() const { return FindField(json_, {"lifecycle"}) != nullptr; }
const Json::Array& ContainerView::mounts() const { return ListField(json_, {"volumeMounts"}); }
const Json* ContainerView::limit(absl::string_view resource) const {
  return FindField(json_, {"resources", "limits", resource});
}

bool ContainerView::IsRestartedAfter(int exit_code) const {
  for (const Json& rule : ListField(json_, {"restartPolicyRules"})) {
    const Json* const values = FindField(rule, {"exitCodes", "values"});
    if (values == nullptr || StringField(rule, {"action"}) != "Restart") continue;
    const bool is_in =
        std::any_of(values->items().begin(), values->items().end(),
                    [&](const Json& value) { return value.AsInt().value_or(-1) == exit_code; });
    if (is_in == (StringField(rule, {"exitCodes", "operator"}) == "In")) return true;
  }
  return false;
}

std::string PodView::label(absl::string_view name) const {
  return StringField(json_, {"metadata", "labels", name});
}
std::string PodView::annotation(absl::string_view name) const {
  return StringField(json_, {"metadata", "annotations", name});
}
absl::Time PodView::created() const { return CreationOf(json_); }

std::string PodView::node() const { return StringField(json_, {"spec", "nodeName"}); }
std::string PodView::scheduler() const {
  const std::string name = StringField(json_, {"spec", "schedulerName"});
  return name.empty() ? "default-scheduler" : name;
}
int64_t PodView::priority() const { return IntField(json_, {"spec", "priority"}); }
bool PodView::has_gates() const { return !ListField(json_, {"spec", "schedulingGates"}).empty(); }
std::string PodView::restart_policy() const {
  return StringField(json_, {"spec", "restartPolicy"});
}
absl::Duration PodView::grace() const {
  return absl::Seconds(IntField(json_, {"spec", "terminationGracePeriodSeconds"}, kGraceOfPods));
}
absl::Duration PodView::longest_run() const {
  const Json* const seconds = FindField(json_, {"spec", "activeDeadlineSeconds"});
  return seconds == nullptr ? absl::InfiniteDuration()
                            : absl::Seconds(seconds->AsInt().value_or(0));
}
const Json::Array& PodView::containers() const { return ListField(json_, {"spec", "containers"}); }
const Json::Array& PodView::init_containers() const {
  return ListField(json_, {"spec", "initContainers"});
}
const Json::Array& PodView::volumes() const { return ListField(json_, {"spec", "volumes"}); }
const Json* PodView::FindContainer(absl::string_view name) const {
  return Named(containers(), name);
}
const Json* PodView::FindInitContainer(absl::string_view name) const {
  return Named(init_containers(), name);
}
const Json* PodView::FindVolume(absl::string_view name) const { return Named(volumes(), name); }

std::string PodView::phase() const { return StringField(json_, {"status", "phase"}); }

bool PodView::is_active() const {
  return !has_succeeded() && !has_failed() && !IsTerminating(json_);
}

bool PodView::is_ready() const { return IsConditionTrue(json_, "Ready"); }

absl::Time PodView::ready_since() const {
  return is_ready() ? TimeField(*ConditionOf(json_, "Ready"), {"lastTransitionTime"})
                    : absl::InfinitePast();
}

bool PodView::is_available(int64_t min_ready_seconds, absl::Time now) const {
  if (!is_ready()) return false;
  return min_ready_seconds == 0 || ready_since() + absl::Seconds(min_ready_seconds) <= now;
}

bool PodView::is_guaranteed() const { return quality() == "Guaranteed"; }
std::string PodView::quality() const { return StringField(json_, {"status", "qosClass"}); }
absl::Time PodView::started() const { return TimeField(json_, {"status", "startTime"}); }

absl::Time PodView::finished() const {
  absl::Time last = absl::InfinitePast();
  for (const Json& status : container_statuses()) {
    const std::optional<TerminationView> end = ContainerStatusView(status).ended();
    if (!end.has_value() || end->finished() == absl::InfinitePast()) return absl::InfinitePast();
    last = std::max(last, end->finished());
  }
  return last;
}

int64_t PodView::restarts() const {
  int64_t count = 0;
  for (const Json& status : container_statuses()) count += ContainerStatusView(status).restarts();
  return count;
}

std::string PodView::reason() const { return StringField(json_, {"status", "reason"}); }
std::string PodView::message() const { return StringField(json_, {"status", "message"}); }
const Json::Array& PodView::container_statuses() const {
  return ListField(json_, {"status", "containerStatuses"});
}
const Json::Array& PodView::init_container_statuses() const {
  return ListField(json_, {"status", "initContainerStatuses"});
}
std::optional<ContainerStatusView> PodView::StatusOf(absl::string_view container) const {
  return ViewOf<ContainerStatusView>(Named(container_statuses(), container));
}
std::optional<ContainerStatusView> PodView::InitStatusOf(absl::string_view container) const {
  return ViewOf<ContainerStatusView>(Named(init_container_statuses(), container));
}

}  // namespace weft::platform
