// SPDX-License-Identifier: Apache-2.0
// Katib's EarlyStopping: its controller asks for rules when it makes trials, and what watches a
// trial tells that it was stopped.
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/search/early_stopping.h"
#include "platform/search/space.h"
#include "platform/store/api_error.h"
#include "platform/tuning/katib_channel.h"
#include "platform/tuning/katib_messages.h"
#include "platform/tuning/trial_view.h"
#include "platform/tuning/tuning_types.h"
#include "proto/katib/api.pb.h"

namespace weft::platform {
namespace {

namespace katib = api::v1::beta1;

constexpr absl::Duration kPatience = absl::Seconds(10);

ExperimentAlgorithm ReadSpec(const katib::EarlyStoppingSpec& spec) {
  ExperimentAlgorithm algorithm;
  algorithm.name = spec.algorithm_name();
  for (const katib::EarlyStoppingSetting& setting : spec.algorithm_settings())
    algorithm.settings.emplace_back(setting.name(), setting.value());
  return algorithm;
}

// Where what trials report lies.
class Reports {
 public:
  Reports(ObjectStore* store, const std::string& database) : store_(store) {
    if (!database.empty()) database_ = std::make_unique<KatibChannel>(database);
  }

  StatusOr<std::vector<double>> Read(const std::string& trial, const std::string& metric) const {
    if (database_ == nullptr && store_ == nullptr)
      return InvalidArgument("a request without db_manager_address cannot be answered here");
    if (database_ == nullptr) {
      WEFT_ASSIGN_OR_RETURN(const ObjectPtr object, FindTrial(store_, trial));
      return TrialView(*object).Reported()[metric];
    }
    katib::GetObservationLogRequest request;
    request.set_trial_name(trial);
    request.set_metric_name(metric);
    WEFT_ASSIGN_OR_RETURN(const auto reply,
                          database_->Ask<katib::GetObservationLogReply>(
                              "/api.v1.beta1.DBManager/GetObservationLog", request, kPatience));
    std::vector<double> values;
    for (const katib::MetricLog& log : reply.observation_log().metric_logs()) {
      const katib::Metric& told = log.metric();
      double value = 0;
      if (told.name() == metric && absl::SimpleAtod(told.value(), &value)) values.push_back(value);
    }
    return values;
  }

 private:
  ObjectStore* const store_;
  std::unique_ptr<KatibChannel> database_;
};

StatusOr<katib::GetEarlyStoppingRulesReply> GetRules(
    ObjectStore* store, const katib::GetEarlyStoppingRulesRequest& request) {
  const katib::ExperimentSpec& spec = request.experiment().spec();
  const ExperimentAlgorithm algorithm = ReadSpec(spec.early_stopping());
  WEFT_RETURN_IF_ERROR(CheckEarlyStopping(algorithm));
  ExperimentObjective objective;
  objective.maximize = spec.objective().type() == katib::MAXIMIZE;
  objective.metric = spec.objective().objective_metric_name();
  const Reports reports(store, request.db_manager_address());
  std::vector<std::vector<double>> ended;
  std::vector<std::vector<double>> all;
  for (const katib::Trial& trial : request.trials()) {
    const auto condition = trial.status().condition();
    const bool has_succeeded = condition == katib::TrialStatus::SUCCEEDED;
    if (!has_succeeded && condition != katib::TrialStatus::RUNNING &&
        condition != katib::TrialStatus::EARLYSTOPPED)
      continue;
    WEFT_ASSIGN_OR_RETURN(std::vector<double> values, reports.Read(trial.name(), objective.metric));
    if (has_succeeded) ended.push_back(values);
    all.push_back(std::move(values));
  }
  katib::GetEarlyStoppingRulesReply reply;
  for (const StoppingRule& rule : StoppingRules(algorithm, objective, ended, all)) {
    katib::EarlyStoppingRule* const made = reply.add_early_stopping_rules();
    made->set_name(rule.metric);
    made->set_value(SearchParameter().Format(rule.value));
    made->set_comparison(rule.stops_below ? katib::LESS : katib::GREATER);
    made->set_start_step(static_cast<int32_t>(rule.start_step));
  }
  return reply;
}

StatusOr<katib::ValidateEarlyStoppingSettingsReply> Validate(
    const katib::ValidateEarlyStoppingSettingsRequest& request) {
  const Status status = CheckEarlyStopping(ReadSpec(request.early_stopping()));
  if (!status.ok()) return InvalidArgument(status.message());
  return katib::ValidateEarlyStoppingSettingsReply();
}

// As Katib's service marks a trial whose watcher has seen a rule hold.
StatusOr<katib::SetTrialStatusReply> MarkStopped(ObjectStore* store,
                                                 const katib::SetTrialStatusRequest& request) {
  constexpr int kTries = 10;  // while others write too
  for (int i = 0; i < kTries; ++i) {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr trial, FindTrial(store, request.trial_name()));
    if (TrialView(*trial).is_over()) return katib::SetTrialStatusReply();
    Json changed = *trial;
    Json* const held = changed.FindMutable("status");
    Json status = held == nullptr ? Json::MakeObject() : *held;
    const absl::Time now = absl::Now();
    MarkCondition("EarlyStopped", true, "TrialEarlyStopped", "Trial is early stopped", now,
                  &status);
    const Json* const spec = trial->Find("spec");
    if (spec != nullptr)
      status.Set("observation", ObservationOf(ObjectiveOf(*spec), TrialView(*trial).Reported()));
    status.Set("completionTime", FormatObjectTime(now));
    changed.Set("status", std::move(status));
    WriteOptions options;
    options.subresource = "status";
    options.is_strict = false;
    const Status written = store->Update(Trials(), std::move(changed), options).status();
    if (IsConflict(written)) continue;
    WEFT_RETURN_IF_ERROR(written);
    return katib::SetTrialStatusReply();
  }
  return Unavailable("trial '", request.trial_name(), "' is written by others all the time");
}

}  // namespace

void AddEarlyStoppingCalls(ObjectStore* store, std::map<std::string, KatibCall>* calls) {
  const std::string service = "/api.v1.beta1.EarlyStopping/";
  (*calls)[service + "GetEarlyStoppingRules"] =
      CallOf<katib::GetEarlyStoppingRulesRequest, katib::GetEarlyStoppingRulesReply>(
          [store](const auto& request) { return GetRules(store, request); });
  (*calls)[service + "ValidateEarlyStoppingSettings"] =
      CallOf<katib::ValidateEarlyStoppingSettingsRequest,
             katib::ValidateEarlyStoppingSettingsReply>(&Validate);
  if (store == nullptr) return;
  (*calls)[service + "SetTrialStatus"] =
      CallOf<katib::SetTrialStatusRequest, katib::SetTrialStatusReply>(
          [store](const auto& request) { return MarkStopped(store, request); });
}

}  // namespace weft::platform
