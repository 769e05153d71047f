// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/trial_kind.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/search/early_stopping.h"
#include "platform/store/api_error.h"
#include "platform/tuning/json_query.h"
#include "platform/tuning/trial_view.h"

namespace weft::platform {
namespace {

// Between two looks at an object that nobody watches, at an output that may still grow, and at the
// metrics of a trial that runs.
constexpr absl::Duration kLookAtOther = absl::Seconds(2);
constexpr absl::Duration kLookForMetrics = absl::Seconds(1);
constexpr absl::Duration kLookAtRunning = absl::Seconds(2);
// An output that cannot be read so long after the end is not there.
constexpr absl::Duration kLongestWait = absl::Seconds(30);

std::vector<const ResourceType*> WatchedTypes() {
  return {&BatchJobs(), &TfJobs(), &Tensorflows(), &Pods()};
}

// A kind that is not known here may be one of the cluster's.
const ResourceType& RunType(const Json& run_spec) {
  const GroupVersion version = SplitApiVersion(StringField(run_spec, {"apiVersion"}));
  const std::string kind = StringField(run_spec, {"kind"});
  const ResourceType* const known = FindKind(version.group, kind);
  if (known != nullptr) return *known;
  const std::string singular = absl::AsciiStrToLower(kind);
  ResourceType made = MakeResourceType(version.group, version.version, singular + "s", singular,
                                       kind, /*is_namespaced=*/true);
  made.is_custom = true;
  RegisterResource(std::move(made));
  return *FindKind(version.group, kind);
}

// One look at one trial.
class TrialPlanner {
 public:
  TrialPlanner(const Observation& observation, ObjectStore* store,
               const TrialMetricsReader& metrics)
      : observation_(observation),
        trial_(*observation.object),
        now_(observation.now),
        store_(store),
        metrics_(metrics),
        view_(trial_) {
    const Json* const status = trial_.Find("status");
    plan_.status = status == nullptr ? Json::MakeObject() : *status;
  }

  StatusOr<Plan> MakePlan() {
    const Json* const spec = FindField(trial_, {"spec", "runSpec"});
    if (spec == nullptr) {
      Finish("Failed", "TrialFailed", "Trial has no runSpec");
      return std::move(plan_);
    }
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr run, FindRun(*spec));
    if (view_.is_over()) {
      RemoveRun(run);
      return std::move(plan_);
    }
    if (StringField(trial_, {"metadata", "annotations", kStopAnnotation}) == "true") {
      Finish("Killed", "TrialKilled", "Trial was stopped by hand");
      RemoveRun(run);
      return std::move(plan_);
    }
    if (FindCondition(plan_.status, "Created") == nullptr) {
      plan_.status.Set("startTime", FormatObjectTime(now_));
      MarkCondition("Created", true, "TrialCreated", "Trial is created", now_, &plan_.status);
    }
    if (run == nullptr) {
      CreateRun(*spec);
      return std::move(plan_);
    }
    if (IsTerminating(*run)) {  // by hand; made anew when it has gone
      plan_.look_again = kLookAtOther;
      return std::move(plan_);
    }
    WEFT_RETURN_IF_ERROR(Observe(*run));
    if (!is_watched_ && !has_ended_) plan_.look_again = std::min(plan_.look_again, kLookAtOther);
    return std::move(plan_);
  }

 private:
  StatusOr<ObjectPtr> FindRun(const Json& spec) {
    type_ = &RunType(spec);
    const std::vector<const ResourceType*> watched = WatchedTypes();
    for (size_t i = 0; i < watched.size(); ++i) {
      if (!(*watched[i] == *type_)) continue;
      is_watched_ = true;
      for (const ObjectPtr& object : observation_.owned[i]) {
        if (NameOf(*object) == NameOf(trial_)) return object;
      }
      return ObjectPtr();
    }
    StatusOr<ObjectPtr> found = store_->Get(*type_, {NamespaceOf(trial_), NameOf(trial_)});
    if (IsObjectNotFound(found.status())) return ObjectPtr();
    return found;
  }

  void CreateRun(const Json& spec) {
    Json run = spec;
    SetField(&run, {"metadata", "name"}, NameOf(trial_));
    SetField(&run, {"metadata", "namespace"}, NamespaceOf(trial_));
    SetField(&run, {"metadata", "ownerReferences"}, Json(Json::Array{ControllerReference(trial_)}));
    // Nobody would see one come that is not watched.
    (is_watched_ ? plan_.creations : plan_.companions).push_back({type_, std::move(run)});
    if (!is_watched_) plan_.look_again = kLookAtOther;
    plan_.after_creating = [name = NameOf(trial_), now = now_](const Status& created,
                                                               Json* status) {
      // What the server refuses will not be better next time.
      if (HttpCodeOf(created) == 422 || HttpCodeOf(created) == 400) {
        status->Set("completionTime", FormatObjectTime(now));
        MarkCondition("Failed", true, "TrialFailed",
                      absl::StrCat("Trial has failed: its object is refused: ", created.message()),
                      now, status);
      }
    };
  }

  void RemoveRun(const ObjectPtr& run) {
    if (run == nullptr || IsTerminating(*run) || BoolField(trial_, {"spec", "retainRun"})) return;
    if (is_watched_) {
      plan_.removals.push_back({type_, run});
      return;
    }
    DeleteOptions options;
    options.uid = UidOf(*run);
    (void)store_->Delete(*type_, {NamespaceOf(trial_), NameOf(trial_)}, options);
  }

  Status Observe(const Json& run) {
    for (const auto& [field, has_succeeded] :
         {std::pair{"failureCondition", false}, {"successCondition", true}}) {
      WEFT_ASSIGN_OR_RETURN(const std::optional<Json> found,
                            QueryJson(run, StringField(trial_, {"spec", field})));
      const std::optional<Json> condition = FirstFound(found);
      if (!condition.has_value()) continue;
      has_ended_ = true;
      return has_succeeded ? Succeed(*condition) : Fail(*condition);
    }
    MarkCondition("Running", true, "TrialRunning", "Trial is running", now_, &plan_.status);
    return WatchMetrics();
  }

  static std::string WithWords(const std::string& text, const char* what, const std::string& more) {
    return more.empty() ? text : absl::StrCat(text, ". Job ", what, ": ", more);
  }

  // As Katib words it, with the reason and message of the object's own condition.
  void Finish(const char* type, const std::string& reason, const std::string& message) {
    if (FindCondition(plan_.status, "Running") != nullptr)
      MarkCondition("Running", false, "TrialRunning", "Trial is running", now_, &plan_.status);
    MarkCondition(type, true, reason, message, now_, &plan_.status);
    plan_.status.Set("completionTime", FormatObjectTime(now_));
    plan_.look_again = absl::InfiniteDuration();
  }
  void FinishWith(const Json& condition, const char* type, const char* reason,
                  const char* message) {
    Finish(type, WithWords(reason, "reason", StringField(condition, {"reason"})),
           WithWords(message, "message", StringField(condition, {"message"})));
  }

  // Its pods go with its end, and with them what they printed.
  void KeepLastOutput() {
    const std::string output = metrics_.LastOutput(trial_);
    if (!output.empty()) plan_.status.Set("lastOutput", output);
  }

  Status Fail(const Json& condition) {
    plan_.events.push_back(
        {"Normal", "JobFailed", absl::StrCat("Job ", NameOf(trial_), " has failed")});
    // What it said until then may tell why.
    const StatusOr<MetricSeries> series = metrics_.Read(trial_);
    if (series.ok() && !series->empty()) plan_.status.Set("reported", ReportedJson(*series));
    KeepLastOutput();
    FinishWith(condition, "Failed", "TrialFailed", "Trial has failed");
    return absl::OkStatus();
  }

  Status Succeed(const Json& condition) {
    const StatusOr<MetricSeries> series = metrics_.Read(trial_);
    const bool may_come = absl::IsUnavailable(series.status()) ||
                          absl::IsFailedPrecondition(series.status()) ||
                          absl::IsDeadlineExceeded(series.status());
    if (may_come) {
      if (StringField(plan_.status, {"runCompletionTime"}).empty())
        plan_.status.Set("runCompletionTime", FormatObjectTime(now_));
      if (now_ - TimeField(plan_.status, {"runCompletionTime"}) < kLongestWait) {
        plan_.look_again = kLookForMetrics;
        return absl::OkStatus();
      }
    }
    const ExperimentObjective objective = ObjectiveOf(*trial_.Find("spec"));
    const auto found =
        series.ok() ? series->find(objective.metric) : MetricSeries::const_iterator();
    if (series.ok()) {
      plan_.status.Set("observation", ObservationOf(objective, *series));
      plan_.status.Set("reported", ReportedJson(*series));
    }
    if (!series.ok() || found == series->end() || found->second.empty()) {
      KeepLastOutput();
      const std::string why = series.ok() ? absl::StrCat("it reported no ", objective.metric)
                                          : std::string(series.status().message());
      plan_.events.push_back(
          {"Warning", "MetricsUnavailable",
           absl::StrCat("Metrics are not available for Job ", NameOf(trial_), ": ", why)});
      Finish("MetricsUnavailable",
             WithWords("MetricsUnavailable", "reason", StringField(condition, {"reason"})),
             absl::StrCat("Metrics are not available: ", why));
      return absl::OkStatus();
    }
    plan_.events.push_back(
        {"Normal", "JobSucceeded", absl::StrCat("Job ", NameOf(trial_), " has succeeded")});
    FinishWith(condition, "Succeeded", "TrialSucceeded", "Trial has succeeded");
    return absl::OkStatus();
  }

  // Of a trial that runs: what early stopping, pages and those who look want to know.
  Status WatchMetrics() {
    const Json::Array& rules = ListField(trial_, {"spec", "earlyStoppingRules"});
    const bool is_page = StringField(trial_, {"spec", "metricsCollector", "collector", "kind"}) ==
                         "PrometheusMetric";
    const bool is_stoppable = BoolField(trial_, {"spec", "isStoppable"});
    if (rules.empty() && !is_page && !is_stoppable) return absl::OkStatus();
    plan_.look_again = kLookAtRunning;
    const StatusOr<MetricSeries> series = metrics_.Read(trial_);
    if (!series.ok() || series->empty()) return absl::OkStatus();
    plan_.status.Set("reported", ReportedJson(*series));
    for (const Json& json : rules) {
      StoppingRule rule;
      rule.metric = StringField(json, {"name"});
      (void)absl::SimpleAtod(StringField(json, {"value"}), &rule.value);
      rule.stops_below = StringField(json, {"comparison"}) == "less";
      rule.start_step = IntField(json, {"startStep"}, 1);
      const auto values = series->find(rule.metric);
      if (values == series->end() || !Stops(rule, values->second)) continue;
      plan_.status.Set("observation", ObservationOf(ObjectiveOf(*trial_.Find("spec")), *series));
      Finish("EarlyStopped", "TrialEarlyStopped",
             absl::StrCat("Trial is early stopped: ", rule.metric, " is ",
                          rule.stops_below ? "less" : "greater", " than ", rule.value, " at step ",
                          rule.start_step));
      break;
    }
    return absl::OkStatus();
  }

  const Observation& observation_;
  const Json& trial_;
  const absl::Time now_;
  ObjectStore* const store_;
  const TrialMetricsReader& metrics_;
  const TrialView view_;
  const ResourceType* type_ = nullptr;
  bool is_watched_ = false;
  bool has_ended_ = false;
  Plan plan_;
};

}  // namespace

std::vector<Kind::Owned> TrialKind::Owns() const {
  std::vector<Owned> owned;
  for (const ResourceType* const type : WatchedTypes())
    owned.push_back({type, kTrialLabel, nullptr});
  return owned;
}

StatusOr<Plan> TrialKind::MakePlan(const Observation& observation) {
  return TrialPlanner(observation, store_, *metrics_).MakePlan();
}

StatusOr<Kind::Permit> TrialKind::Allow(const Json& known, const Json& live,
                                        const Plan& plan) const {
  if (TrialView(live).is_over() && !TrialView(known).is_over()) return Permit::kNothing;
  (void)plan;
  return Permit::kAll;
}

}  // namespace weft::platform
