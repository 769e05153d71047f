// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/experiment_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/trial_checkpoint.h"
#include "platform/tuning/experiment_ledger.h"
#include "platform/tuning/trial_object.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

constexpr size_t kMostGiven = 100;  // suggestions that a status keeps
constexpr int64_t kMostAskedAtOnce = 200;
constexpr absl::Duration kAskAgain = absl::Seconds(5);  // a service that is not there
constexpr int64_t kMostTold = 100;                      // trials whose making is told as an event

// One look at one experiment.
class ExperimentPlanner {
 public:
  ExperimentPlanner(const Observation& observation, const Experiment& experiment,
                    std::string template_text, TrialBook* book, const SuggestionServices* services)
      : observation_(observation),
        object_(*observation.object),
        experiment_(experiment),
        template_(std::move(template_text)),
        services_(services),
        now_(observation.now),
        ledger_(experiment, book) {
    const Json* const status = object_.Find("status");
    plan_.status = status == nullptr ? Json::MakeObject() : *status;
    for (const ObjectPtr& suggestion : observation.owned[1]) {
      if (NameOf(*suggestion) == NameOf(object_)) suggestion_ = suggestion;
    }
  }

  std::vector<std::string>& outdated() { return outdated_; }
  Json& rules() { return rules_; }

  StatusOr<Plan> MakePlan() {
    if (FindCondition(plan_.status, "Created") == nullptr) {
      plan_.status.Set("startTime", FormatObjectTime(now_));
      Mark("Created", "ExperimentCreated", "Experiment is created");
    }
    ledger_.WriteTo(&plan_.status);
    if (suggestion_ != nullptr) ReadSuggestion();
    if (IsOver() && !Restart()) {
      CloseSuggestion();
      return std::move(plan_);
    }
    if (suggestion_ == nullptr) {
      Mark("Running", "ExperimentRunning", "Experiment is running");
      CreateSuggestion();
      return std::move(plan_);
    }
    if (Decide()) {
      CloseSuggestion();
      return std::move(plan_);
    }
    WEFT_RETURN_IF_ERROR(Fill());
    WEFT_RETURN_IF_ERROR(CreateTrials());
    WriteSuggestion();
    RenewRules();
    return std::move(plan_);
  }

 private:
  void Mark(const char* type, const char* reason, const std::string& message) {
    MarkCondition(type, true, reason, message, now_, &plan_.status);
  }

  bool IsOver() const { return IsTrue("Succeeded") || IsTrue("Failed"); }
  bool IsTrue(const char* type) const {
    const Json* const condition = FindCondition(plan_.status, type);
    return condition != nullptr && StringField(*condition, {"status"}) == "True";
  }

  // After its end a larger count lets it go on, where its policy says so.
  bool Restart() {
    const Json* const end = FindCondition(plan_.status, "Succeeded");
    const bool may = experiment_.resume != ResumePolicy::kNever && end != nullptr &&
                     StringField(*end, {"reason"}) == "ExperimentMaxTrialsReached";
    const bool wants =
        !experiment_.max_trials.has_value() || ledger_.completed() < *experiment_.max_trials;
    if (!may || !wants) return false;
    MarkCondition("Succeeded", false, "ExperimentRestarting", "Experiment is restarted", now_,
                  &plan_.status);
    Mark("Restarting", "ExperimentRestarting", "Experiment is restarted");
    plan_.status.Erase("completionTime");
    return true;
  }

  void End(const char* type, const char* reason, const std::string& message) {
    if (FindCondition(plan_.status, "Running") != nullptr)
      MarkCondition("Running", false, "ExperimentRunning", "Experiment is running", now_,
                    &plan_.status);
    Mark(type, reason, message);
    plan_.status.Set("completionTime", FormatObjectTime(now_));
    plan_.events.push_back({std::string(type) == "Failed" ? "Warning" : "Normal", reason, message});
  }

  // True when it is over.
  bool Decide() {
    const bool is_late =
        experiment_.longest_run.has_value() && now_ - Started() >= *experiment_.longest_run;
    if (ledger_.reaches_goal()) {
      End("Succeeded", "ExperimentGoalReached",
          "Experiment has succeeded because Objective goal has reached");
    } else if (experiment_.max_failed.has_value() && ledger_.failed() > 0 &&
               ledger_.failed() >= *experiment_.max_failed) {
      End("Failed", "ExperimentFailed",
          "Experiment has failed because max failed count has reached");
    } else if (experiment_.max_trials.has_value() &&
               ledger_.completed() + lost_ >= *experiment_.max_trials && active() == 0) {
      End("Succeeded", "ExperimentMaxTrialsReached",
          "Experiment has succeeded because max trial count has reached");
    } else if (is_late && active() == 0) {
      End("Succeeded", "ExperimentTimeReached",
          "Experiment has succeeded because maxSeconds have passed");
    } else {
      if (!IsTrue("Running")) Mark("Running", "ExperimentRunning", "Experiment is running");
      if (experiment_.longest_run.has_value() && !is_late)
        plan_.look_again = Started() + *experiment_.longest_run - now_;
      is_late_ = is_late;
      return false;
    }
    return true;
  }

  absl::Time Started() const { return TimeField(plan_.status, {"startTime"}); }

  void CreateSuggestion() {
    Json suggestion;
    suggestion.Set("apiVersion", Suggestions().ApiVersion());
    suggestion.Set("kind", Suggestions().kind);
    SetField(&suggestion, {"metadata", "name"}, NameOf(object_));
    if (const Json* const labels = FindField(object_, {"metadata", "labels"}))
      SetField(&suggestion, {"metadata", "labels"}, *labels);
    SetField(&suggestion, {"metadata", "labels", kExperimentLabel}, NameOf(object_));
    SetField(&suggestion, {"metadata", "ownerReferences"},
             Json(Json::Array{ControllerReference(object_)}));
    for (const char* field : {"algorithm", "earlyStopping", "resumePolicy"}) {
      if (const Json* const held = FindField(object_, {"spec", field}))
        SetField(&suggestion, {"spec", field}, *held);
    }
    SetField(&suggestion, {"spec", "requests"},
             experiment_.max_trials.value_or(experiment_.parallel_trials));
    plan_.creations.push_back({&Suggestions(), std::move(suggestion)});
    if (CheckpointFolder(experiment_.algorithm).empty()) return;
    // Goes with the experiment; one that somebody else has made stays.
    Json claim = CheckpointClaim(NameOf(object_), experiment_.algorithm);
    SetField(&claim, {"metadata", "ownerReferences"},
             Json(Json::Array{ControllerReference(object_)}));
    plan_.companions.push_back({FindResource("", "persistentvolumeclaims"), std::move(claim)});
  }

  void ReadSuggestion() {
    for (const Json& json : ListField(*suggestion_, {"status", "suggestions"}))
      given_.push_back(GivenSuggestion::FromJson(json));
    // Somebody may have deleted the Suggestion and not its trials.
    count_ = std::max(IntField(*suggestion_, {"status", "suggestionCount"}), ledger_.next_number());
    for (GivenSuggestion& given : given_) {
      if (ledger_.Has(given.number) || ledger_.HasSeen(given.number)) given.is_created = true;
      if (!given.is_created) pending_.push_back(given);
    }
    // Katib makes others in the place of what was deleted; here they stay deleted, and count.
    lost_ = count_ - ledger_.all() - static_cast<int64_t>(pending_.size());
  }

  int64_t active() const { return ledger_.active() + static_cast<int64_t>(pending_.size()); }

  // Asks for as many as may run now.
  Status Fill() {
    int64_t wanted = experiment_.parallel_trials - active();
    if (experiment_.max_trials.has_value())
      wanted = std::min(wanted, *experiment_.max_trials - count_);
    if (is_late_) wanted = 0;
    if (wanted <= 0) return absl::OkStatus();
    if (services_ != nullptr && services_->Has(experiment_.algorithm.name))
      return AskService(std::min(wanted, kMostAskedAtOnce));
    const StatusOr<Study*> made =
        ledger_.MakeStudy(count_, pending_, IntField(object_, {"metadata", "generation"}, -1));
    if (!made.ok()) return Refuse(made.status());
    Study& study = **made;
    for (int64_t i = 0; i < std::min(wanted, kMostAskedAtOnce); ++i) {
      const StatusOr<SearchTrial> next = study.Ask();
      if (absl::IsUnavailable(next.status())) break;
      if (absl::IsOutOfRange(next.status())) {
        EndWithoutMore();
        return absl::OkStatus();
      }
      if (!next.ok()) return Refuse(next.status());
      GivenSuggestion given;
      given.parent = next->parent;
      given.assignments = study.space().Assign(next->values);
      Give(std::move(given));
    }
    if (wanted > kMostAskedAtOnce) plan_.look_again = absl::Milliseconds(100);
    return absl::OkStatus();
  }

  void Give(GivenSuggestion given) {
    given.number = count_++;
    given.name = TrialName(object_, given.number);
    given_.push_back(given);
    pending_.push_back(std::move(given));
  }

  // Nothing is left to try.
  void EndWithoutMore() {
    if (active() > 0) return;
    End("Succeeded", "ExperimentSuggestionEndReached",
        "Experiment has succeeded because suggestion service has reached the end");
  }

  Status AskService(int64_t wanted) {
    std::map<int64_t, ObjectPtr> trials;
    for (const ObjectPtr& trial : observation_.list(0)) {
      const int64_t number = TrialView(*trial).number();
      if (number >= 0 && !IsTerminating(*trial)) trials.emplace(number, trial);
    }
    auto suggested = services_->Ask(experiment_, trials, count_, wanted);
    if (absl::IsInvalidArgument(suggested.status()) || absl::IsNotFound(suggested.status()))
      return Refuse(suggested.status());
    if (!suggested.ok()) {
      plan_.events.push_back({"Warning", "SuggestionServiceUnavailable",
                              absl::StrCat("No suggestions come from ", experiment_.algorithm.name,
                                           ": ", suggested.status().message())});
      plan_.look_again = kAskAgain;
      return absl::OkStatus();
    }
    for (SuggestionServices::Suggested& one : *suggested) {
      GivenSuggestion given;
      given.assignments = std::move(one.assignments);
      given.labels = std::move(one.labels);
      Give(std::move(given));
    }
    if (suggested->empty()) EndWithoutMore();
    return absl::OkStatus();
  }

  // The algorithm does not want it so.
  Status Refuse(const Status& why) {
    End("Failed", "ExperimentFailed", absl::StrCat("Experiment has failed: ", why.message()));
    return absl::OkStatus();
  }

  Status CreateTrials() {
    if (IsOver()) return absl::OkStatus();
    const std::vector<StoppingRule> rules = ledger_.Rules();
    for (const GivenSuggestion& given : pending_) {
      StatusOr<Json> trial = MakeTrial(object_, experiment_, template_, given, rules);
      if (!trial.ok()) return Refuse(trial.status());
      Plan::Change creation{&Trials(), *std::move(trial)};
      creation.is_quiet = given.number >= kMostTold;
      plan_.creations.push_back(std::move(creation));
    }
    return absl::OkStatus();
  }

  void WriteSuggestion() {
    Json changed = *suggestion_;
    const Json* const held = changed.Find("status");
    Json status = held == nullptr ? Json::MakeObject() : *held;
    if (FindCondition(status, "Created") == nullptr) {
      status.Set("startTime", FormatObjectTime(now_));
      MarkCondition("Created", true, "SuggestionCreated", "Suggestion is created", now_, &status);
    }
    for (const char* end : {"Succeeded", "Failed"}) {
      if (FindCondition(status, end) != nullptr)
        MarkCondition(end, false, "SuggestionRunning", "Suggestion is running", now_, &status);
    }
    MarkCondition("Running", true, "SuggestionRunning", "Suggestion is running", now_, &status);
    status.Set("suggestionCount", count_);
    // Those that became trials are only for people to look at.
    size_t spare = given_.size() > kMostGiven ? given_.size() - kMostGiven : 0;
    Json list = Json::MakeArray();
    for (const GivenSuggestion& given : given_) {
      if (given.is_created && spare > 0) {
        --spare;
        continue;
      }
      list.Append(given.ToJson());
    }
    status.Set("suggestions", std::move(list));
    PutSuggestionStatus(std::move(changed), std::move(status));
  }

  void PutSuggestionStatus(Json suggestion, Json status) {
    const Json* const held = suggestion.Find("status");
    if (held != nullptr && SameJson(*held, status)) return;
    suggestion.Set("status", std::move(status));
    plan_.changes.push_back({&Suggestions(), std::move(suggestion), "status"});
  }

  void CloseSuggestion() {
    if (suggestion_ == nullptr) return;
    const Json* const held = suggestion_->Find("status");
    Json status = held == nullptr ? Json::MakeObject() : *held;
    const bool has_failed = IsTrue("Failed");
    const char* const type = has_failed ? "Failed" : "Succeeded";
    if (const Json* const end = FindCondition(status, type);
        end != nullptr && StringField(*end, {"status"}) == "True")
      return;
    MarkCondition("Running", false, "SuggestionRunning", "Suggestion is not running", now_,
                  &status);
    MarkCondition(type, true, has_failed ? "SuggestionFailed" : "SuggestionSucceeded",
                  "Suggestion is over with its experiment", now_, &status);
    PutSuggestionStatus(*suggestion_, std::move(status));
  }

  // What has been found out since a trial began holds for it too.
  void RenewRules() {
    if (!experiment_.early_stopping.has_value() || IsOver()) return;
    Json rules = RulesJson(ledger_.Rules());
    if (rules.size() == 0) return;
    outdated_ = ledger_.Outdated(rules);
    rules_ = std::move(rules);
  }

  const Observation& observation_;
  const Json& object_;
  const Experiment& experiment_;
  const std::string template_;
  const SuggestionServices* const services_;
  const absl::Time now_;
  const ExperimentLedger ledger_;
  ObjectPtr suggestion_;
  std::vector<GivenSuggestion> given_;
  std::vector<GivenSuggestion> pending_;
  int64_t count_ = 0;
  int64_t lost_ = 0;  // trials that somebody deleted
  bool is_late_ = false;
  std::vector<std::string> outdated_;  // trials that do not have rules_ yet
  Json rules_;
  Plan plan_;
};

}  // namespace

StatusOr<ExperimentPlan> PlanExperiment(const Observation& observation,
                                        const Experiment& experiment, std::string text,
                                        TrialBook* book, const SuggestionServices* services) {
  ExperimentPlanner planner(observation, experiment, std::move(text), book, services);
  ExperimentPlan made;
  WEFT_ASSIGN_OR_RETURN(made.plan, planner.MakePlan());
  made.outdated = std::move(planner.outdated());
  made.rules = std::move(planner.rules());
  return made;
}

}  // namespace weft::platform
