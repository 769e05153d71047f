// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/batch_job_kind.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/conditions.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_view.h"
#include "platform/object/workload_view.h"
#include "platform/workloads/job_ends.h"
#include "platform/workloads/job_index.h"
#include "platform/workloads/owned_pods.h"

namespace weft::platform {
namespace {

constexpr char kThisController[] = "kubernetes.io/job-controller";
constexpr int64_t kMostAtOnce = 500;
constexpr absl::Duration kFirstWait = absl::Seconds(10);
constexpr absl::Duration kLongestWait = absl::Minutes(10);

class BatchJobPlanner {
 public:
  explicit BatchJobPlanner(const Observation& observation)
      : object_(*observation.object),
        now_(observation.now),
        job_(object_),
        names_(NamesOf(observation.owned[0])) {
    plan_.status = job_.status();
    for (const ObjectPtr& pod : observation.owned[0]) Sort(pod);
    if (job_.is_indexed()) {
      succeeded_ = static_cast<int64_t>(done_.size());
    } else {
      // One that was deleted after its end still counts.
      succeeded_ = std::max(succeeded_, IntField(plan_.status, {"succeeded"}));
    }
    failed_ = std::max(failed_, IntField(plan_.status, {"failed"}));
  }

  Plan MakePlan() {
    if (IsFinished()) {
      PlanTimeToLive();
      return std::move(plan_);
    }
    PlanSuspension();
    const Cause failure = WhyFailed();
    const Cause success = failure.reason.empty() ? WhySucceeded() : Cause();
    if (!failure.reason.empty()) {
      EndPods();
      Finish("FailureTarget", "Failed", failure, "Warning");
    } else if (!success.reason.empty()) {
      EndPods();
      Finish("SuccessCriteriaMet", "Complete", success, "Normal");
      if (Has("Complete")) plan_.status.Set("completionTime", FormatObjectTime(now_));
    } else if (IsComplete()) {
      Finish("SuccessCriteriaMet", "Complete",
             {"CompletionsReached", "Reached expected number of succeeded pods"}, "Normal");
      plan_.status.Set("completionTime", FormatObjectTime(now_));
    } else if (!job_.is_suspended()) {
      PlanPods();
    }
    WriteCounts();
    return std::move(plan_);
  }

 private:
  // Of an end; no reason: there is none yet.
  struct Cause {
    std::string reason;
    std::string message;
  };

  void Sort(const ObjectPtr& pod) {
    const PodView view(*pod);
    if (view.has_succeeded()) {
      ++succeeded_;
      last_success_ = std::max(last_success_, view.finished());
      if (job_.is_indexed() && CompletionIndexOf(*pod) >= 0) done_.insert(CompletionIndexOf(*pod));
    } else if (IsTerminating(*pod)) {
      ++terminating_;
    } else if (view.has_failed()) {
      const FailureRuling ruling = RuleOnFailure(object_, *pod);
      if (ruling.action == FailureAction::kIgnore) return;
      if (ruling.action == FailureAction::kFailJob) ruled_out_ = ruling.message;
      ++failed_;
      failures_.push_back(view.finished());
    } else {
      active_.push_back(pod);
      restarts_ += view.restarts();
      ready_ += view.is_ready() ? 1 : 0;
    }
  }

  bool Has(const char* type) const {
    const Json* const condition = FindCondition(plan_.status, type);
    return condition != nullptr && StringField(*condition, {"status"}) == "True";
  }
  bool IsFinished() const { return Has("Complete") || Has("Failed"); }

  void PlanTimeToLive() {
    if (!job_.time_to_live().has_value()) return;
    const Json* const end = FindCondition(plan_.status, Has("Complete") ? "Complete" : "Failed");
    const absl::Duration left =
        TimeField(*end, {"lastTransitionTime"}) + *job_.time_to_live() - now_;
    plan_.deletes_object = left <= absl::ZeroDuration();
    plan_.look_again = left;
  }

  void PlanSuspension() {
    const bool was_suspended = Has("Suspended");
    if (job_.is_suspended()) {
      EndPods();
      plan_.status.Erase("startTime");
      if (!was_suspended) {
        SetCondition("Suspended", true, "JobSuspended", "Job suspended", now_, &plan_.status);
        plan_.events.push_back({"Normal", "Suspended", "Job suspended"});
      }
      return;
    }
    if (was_suspended) {
      SetCondition("Suspended", false, "JobResumed", "Job resumed", now_, &plan_.status);
      plan_.events.push_back({"Normal", "Resumed", "Job resumed"});
    }
    if (!StringField(plan_.status, {"startTime"}).empty()) return;
    plan_.status.Set("startTime", FormatObjectTime(now_));
    if (FindField(object_, {"spec", "backoffLimitPerIndex"}) != nullptr) {
      plan_.events.push_back({"Warning", "NotSupported",
                              "spec.backoffLimitPerIndex and maxFailedIndexes count for nothing "
                              "here: what fails is tried again as backoffLimit says"});
    }
  }

  // What was decided before stays, whatever has become of the pods.
  Cause Decided(const char* target) const {
    if (!Has(target)) return {};
    const Json& condition = *FindCondition(plan_.status, target);
    return {StringField(condition, {"reason"}), StringField(condition, {"message"})};
  }

  Cause WhySucceeded() const {
    if (!job_.is_indexed()) return {};
    if (Cause before = Decided("SuccessCriteriaMet"); before.reason == "SuccessPolicy")
      return before;
    const std::optional<std::string> met = FindMetSuccessRule(object_, done_);
    return met.has_value() ? Cause{"SuccessPolicy", *met} : Cause();
  }

  Cause WhyFailed() {
    const Cause too_often = {"BackoffLimitExceeded", "Job has reached the specified backoff limit"};
    if (Cause before = Decided("FailureTarget"); !before.reason.empty()) return before;
    if (!ruled_out_.empty()) return {"PodFailurePolicy", ruled_out_};
    if (failed_ > job_.backoff_limit()) return too_often;
    if (job_.restarts_in_place() && restarts_ > 0 && restarts_ >= job_.backoff_limit())
      return too_often;
    const absl::Time started = TimeField(plan_.status, {"startTime"});
    if (!job_.longest_run().has_value() || started == absl::InfinitePast()) return {};
    const absl::Duration left = started + *job_.longest_run() - now_;
    if (left <= absl::ZeroDuration())
      return {"DeadlineExceeded", "Job was active longer than specified deadline"};
    plan_.look_again = std::min(plan_.look_again, left);
    return {};
  }

  bool IsComplete() const {
    if (!active_.empty() || terminating_ > 0) return false;
    return job_.completions().has_value() ? succeeded_ >= *job_.completions() : succeeded_ > 0;
  }

  // Before what has failed is tried again, the longer the more often in a row.
  absl::Duration WaitLeft() const {
    int64_t in_a_row = 0;
    absl::Time last = absl::InfinitePast();
    for (const absl::Time& at : failures_) {
      if (at < last_success_) continue;
      ++in_a_row;
      last = std::max(last, at);
    }
    if (in_a_row == 0) return absl::ZeroDuration();
    absl::Duration wait = kFirstWait;
    for (int64_t i = 1; i < in_a_row && wait < kLongestWait; ++i) wait *= 2;
    return last + std::min(wait, kLongestWait) - now_;
  }

  void PlanPods() {
    const int64_t active = static_cast<int64_t>(active_.size());
    int64_t wanted = job_.parallelism();
    if (job_.completions().has_value()) {
      wanted = std::min(wanted, std::max<int64_t>(*job_.completions() - succeeded_, 0));
    } else if (succeeded_ > 0) {
      wanted = std::min(wanted, active);
    }
    if (active > wanted) {
      std::vector<ObjectPtr> sorted = active_;
      SortForDeletion(now_, &sorted);
      sorted.resize(static_cast<size_t>(active - wanted));
      for (const ObjectPtr& pod : sorted) plan_.removals.push_back({&Pods(), pod});
      return;
    }
    if (active == wanted) return;
    const absl::Duration left = WaitLeft();
    if (left > absl::ZeroDuration()) {
      plan_.look_again = std::min(plan_.look_again, left);
      return;
    }
    CreatePods(std::min(wanted - active, kMostAtOnce));
  }

  void CreatePods(int64_t count) {
    std::set<int64_t> taken = done_;
    for (const ObjectPtr& pod : active_) taken.insert(CompletionIndexOf(*pod));
    int64_t index = 0;
    const std::string seed = absl::StrCat(UidOf(object_), "/", absl::ToUnixNanos(now_));
    for (int64_t i = 0; i < count; ++i) {
      while (taken.count(index) != 0) ++index;
      const std::string prefix = job_.is_indexed() ? absl::StrCat(NameOf(object_), "-", index, "-")
                                                   : absl::StrCat(NameOf(object_), "-");
      Json pod = MakeOwnedPod(object_, job_.pod_template(), FreshName(prefix, seed, &names_));
      if (job_.is_indexed()) AddCompletionIndex(NameOf(object_), index++, &pod);
      plan_.creations.push_back({&Pods(), std::move(pod)});
    }
  }

  void EndPods() {
    for (const ObjectPtr& pod : active_) plan_.removals.push_back({&Pods(), pod});
  }

  // The first condition says what will come of it, the second that it has, when no pod is left.
  void Finish(const char* target, const char* end, const Cause& cause, const char* event) {
    SetCondition(target, true, cause.reason, cause.message, now_, &plan_.status);
    if (!plan_.removals.empty() || terminating_ > 0) return;
    SetCondition(end, true, cause.reason, cause.message, now_, &plan_.status);
    const bool is_good = absl::string_view(end) == "Complete";
    plan_.events.push_back(
        {event, is_good ? "Completed" : cause.reason, is_good ? "Job completed" : cause.message});
  }

  void WriteCounts() {
    const bool is_over = Has("Complete") || Has("Failed");
    const int64_t active = is_over ? 0 : static_cast<int64_t>(active_.size());
    for (const auto& [field, count] :
         {std::pair{"active", active}, {"succeeded", succeeded_}, {"failed", failed_}}) {
      if (count > 0) {
        plan_.status.Set(field, count);
      } else {
        plan_.status.Erase(field);
      }
    }
    plan_.status.Set("ready", is_over ? 0 : ready_);
    plan_.status.Set("terminating", terminating_);
    plan_.status.Set("uncountedTerminatedPods", Json::MakeObject());
    if (job_.is_indexed() && !done_.empty()) plan_.status.Set("completedIndexes", Ranges(done_));
  }

  const Json& object_;
  const absl::Time now_;
  const BatchJobView job_;
  Plan plan_;
  std::vector<ObjectPtr> active_;
  std::set<std::string> names_;
  std::set<int64_t> done_;  // indices
  std::vector<absl::Time> failures_;
  std::string ruled_out_;  // by a pod's failure, as the job's rules say
  absl::Time last_success_ = absl::InfinitePast();
  int64_t succeeded_ = 0;
  int64_t failed_ = 0;
  int64_t ready_ = 0;
  int64_t restarts_ = 0;
  int64_t terminating_ = 0;
};

}  // namespace

Selector BatchJobKind::AdoptsBy(const Json& object) const {
  return WorkloadView(object).selector();
}

bool BatchJobKind::IsOurs(const Json& object) const {
  const std::string manager = BatchJobView(object).managed_by();
  return manager.empty() || manager == kThisController;
}

StatusOr<Plan> BatchJobKind::MakePlan(const Observation& observation) {
  return BatchJobPlanner(observation).MakePlan();
}

}  // namespace weft::platform
