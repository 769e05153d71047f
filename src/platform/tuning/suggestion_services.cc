// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/suggestion_services.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/search/space.h"
#include "platform/tuning/trial_view.h"
#include "proto/katib/api.pb.h"

namespace weft::platform {
namespace {

namespace katib = api::v1::beta1;

constexpr absl::Duration kPatience = absl::Seconds(30);

void WriteParameter(const ExperimentParameter& p, katib::ParameterSpec* spec) {
  using Type = ExperimentParameter::Type;
  spec->set_name(p.name);
  katib::FeasibleSpace* const space = spec->mutable_feasible_space();
  if (p.type == Type::kDiscrete || p.type == Type::kCategorical) {
    spec->set_parameter_type(p.type == Type::kDiscrete ? katib::DISCRETE : katib::CATEGORICAL);
    for (const std::string& value : p.list) space->add_list(value);
    return;
  }
  spec->set_parameter_type(p.type == Type::kInt ? katib::INT : katib::DOUBLE);
  space->set_min(SearchParameter().Format(p.min));
  space->set_max(SearchParameter().Format(p.max));
  if (p.step != 0) space->set_step(SearchParameter().Format(p.step));
  if (p.is_logarithmic) space->set_distribution(katib::LOG_UNIFORM);
}

void WriteExperiment(const Experiment& experiment, katib::Experiment* to) {
  to->set_name(experiment.name);
  katib::ExperimentSpec* const spec = to->mutable_spec();
  for (const ExperimentParameter& p : experiment.parameters)
    WriteParameter(p, spec->mutable_parameter_specs()->add_parameters());
  katib::ObjectiveSpec* const objective = spec->mutable_objective();
  objective->set_type(experiment.objective.maximize ? katib::MAXIMIZE : katib::MINIMIZE);
  objective->set_goal(experiment.objective.goal.value_or(0));
  objective->set_objective_metric_name(experiment.objective.metric);
  for (const std::string& name : experiment.objective.additional)
    objective->add_additional_metric_names(name);
  spec->mutable_algorithm()->set_algorithm_name(experiment.algorithm.name);
  for (const auto& [name, value] : experiment.algorithm.settings) {
    katib::AlgorithmSetting* const setting = spec->mutable_algorithm()->add_algorithm_settings();
    setting->set_name(name);
    setting->set_value(value);
  }
  spec->set_parallel_trial_count(static_cast<int32_t>(experiment.parallel_trials));
  spec->set_max_trial_count(static_cast<int32_t>(experiment.max_trials.value_or(0)));
}

katib::TrialStatus::TrialConditionType ConditionOf(TrialState state) {
  switch (state) {
    case TrialState::kPending:
      return katib::TrialStatus::CREATED;
    case TrialState::kRunning:
      return katib::TrialStatus::RUNNING;
    case TrialState::kSucceeded:
      return katib::TrialStatus::SUCCEEDED;
    case TrialState::kFailed:
      return katib::TrialStatus::FAILED;
    case TrialState::kKilled:
      return katib::TrialStatus::KILLED;
    case TrialState::kEarlyStopped:
      return katib::TrialStatus::EARLYSTOPPED;
    case TrialState::kMetricsUnavailable:
      return katib::TrialStatus::METRICSUNAVAILABLE;
  }
  return katib::TrialStatus::UNKNOWN;
}

// With the value of each metric that counts, as Katib's controller tells it.
void WriteTrial(const Experiment& experiment, const Json& object, katib::Trial* to) {
  const TrialView view(object);
  to->set_name(NameOf(object));
  katib::TrialSpec* const spec = to->mutable_spec();
  spec->mutable_objective()->set_objective_metric_name(experiment.objective.metric);
  spec->mutable_objective()->set_type(experiment.objective.maximize ? katib::MAXIMIZE
                                                                    : katib::MINIMIZE);
  for (const auto& [name, value] : view.assignments()) {
    katib::ParameterAssignment* const assignment =
        spec->mutable_parameter_assignments()->add_assignments();
    assignment->set_name(name);
    assignment->set_value(value);
  }
  if (const Json* const labels = FindField(object, {"metadata", "labels"})) {
    for (const JsonMember& label : labels->members())
      (*spec->mutable_labels())[label.name] = label.value.AsString().value_or("");
  }
  katib::TrialStatus* const status = to->mutable_status();
  status->set_condition(ConditionOf(view.state()));
  status->set_start_time(StringField(object, {"status", "startTime"}));
  status->set_completion_time(StringField(object, {"status", "completionTime"}));
  for (const std::string& name : experiment.objective.Metrics()) {
    ExperimentObjective one = experiment.objective;
    one.metric = name;
    const std::optional<double> value = view.Observed(one);
    if (!value.has_value()) continue;
    katib::Metric* const metric = status->mutable_observation()->add_metrics();
    metric->set_name(name);
    metric->set_value(SearchParameter().Format(*value));
  }
}

}  // namespace

StatusOr<std::unique_ptr<SuggestionServices>> SuggestionServices::Create(
    const std::vector<std::string>& words) {
  std::unique_ptr<SuggestionServices> services(new SuggestionServices());
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const size_t colon = parts.second.rfind(':');
    if (parts.first.empty() || colon == std::string::npos || colon == 0)
      return InvalidArgument("'", word, "' names no service: ALGORITHM=HOST:PORT is needed");
    services->channels_[parts.first] = std::make_unique<KatibChannel>(parts.second);
  }
  return services;
}

StatusOr<std::vector<SuggestionServices::Suggested>> SuggestionServices::Ask(
    const Experiment& experiment, const std::map<int64_t, ObjectPtr>& trials, int64_t count,
    int64_t wanted) const {
  const auto channel = channels_.find(experiment.algorithm.name);
  if (channel == channels_.end())
    return NotFound("there is no service of '", experiment.algorithm.name, "'");
  katib::GetSuggestionsRequest request;
  WriteExperiment(experiment, request.mutable_experiment());
  for (const auto& [number, trial] : trials) WriteTrial(experiment, *trial, request.add_trials());
  request.set_current_request_number(static_cast<int32_t>(wanted));
  request.set_total_request_number(static_cast<int32_t>(count + wanted));
  WEFT_ASSIGN_OR_RETURN(const auto reply,
                        channel->second->Ask<katib::GetSuggestionsReply>(
                            "/api.v1.beta1.Suggestion/GetSuggestions", request, kPatience));
  std::vector<Suggested> suggested;
  for (const auto& given : reply.parameter_assignments()) {
    if (static_cast<int64_t>(suggested.size()) == wanted) break;
    Suggested one;
    for (const katib::ParameterAssignment& assignment : given.assignments())
      one.assignments.emplace_back(assignment.name(), assignment.value());
    one.labels.assign(given.labels().begin(), given.labels().end());
    std::sort(one.labels.begin(), one.labels.end());
    suggested.push_back(std::move(one));
  }
  return suggested;
}

}  // namespace weft::platform
