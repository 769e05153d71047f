// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/katib_calls.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/search/experiment_study.h"
#include "platform/store/api_error.h"
#include "platform/tuning/katib_messages.h"
#include "platform/tuning/trial_view.h"
#include "platform/tuning/tuning_types.h"
#include "proto/katib/api.pb.h"

namespace weft::platform {
namespace {

namespace katib = api::v1::beta1;

constexpr int32_t kMostWanted = 10000;
constexpr char kParentLabel[] = "pbt.suggestion.katib.kubeflow.org/parent";  // Katib's own

StatusOr<ExperimentParameter> ReadParameterSpec(const katib::ParameterSpec& spec) {
  ExperimentParameter p;
  p.name = spec.name();
  const katib::FeasibleSpace& space = spec.feasible_space();
  p.list.assign(space.list().begin(), space.list().end());
  switch (spec.parameter_type()) {
    case katib::DOUBLE:
      p.type = ExperimentParameter::Type::kDouble;
      break;
    case katib::INT:
      p.type = ExperimentParameter::Type::kInt;
      break;
    case katib::DISCRETE:
      p.type = ExperimentParameter::Type::kDiscrete;
      break;
    case katib::CATEGORICAL:
      p.type = ExperimentParameter::Type::kCategorical;
      break;
    default:
      return InvalidArgument("parameter '", p.name, "' has no type");
  }
  const bool is_range =
      p.type == ExperimentParameter::Type::kDouble || p.type == ExperimentParameter::Type::kInt;
  if (!is_range) {
    if (p.list.empty()) return InvalidArgument("parameter '", p.name, "' has no values");
    return p;
  }
  if (!absl::SimpleAtod(space.min(), &p.min) || !absl::SimpleAtod(space.max(), &p.max) ||
      !(p.min <= p.max)) {
    return InvalidArgument("parameter '", p.name, "' goes from '", space.min(), "' to '",
                           space.max(), "': two numbers are needed, the smaller one first");
  }
  (void)absl::SimpleAtod(space.step(), &p.step);
  p.is_logarithmic =
      space.distribution() == katib::LOG_UNIFORM || space.distribution() == katib::LOG_NORMAL;
  if (p.is_logarithmic && p.min <= 0)
    return InvalidArgument("parameter '", p.name, "': a logarithmic range begins above 0");
  return p;
}

StatusOr<Experiment> ReadExperiment(const katib::Experiment& from) {
  Experiment experiment;
  experiment.name = from.name();
  for (const katib::ParameterSpec& spec : from.spec().parameter_specs().parameters()) {
    WEFT_ASSIGN_OR_RETURN(ExperimentParameter p, ReadParameterSpec(spec));
    experiment.parameters.push_back(std::move(p));
  }
  if (experiment.parameters.empty())
    return InvalidArgument("experiment '", from.name(), "' has no parameter");
  experiment.objective.maximize = from.spec().objective().type() == katib::MAXIMIZE;
  experiment.objective.metric = from.spec().objective().objective_metric_name();
  experiment.algorithm.name = from.spec().algorithm().algorithm_name();
  for (const katib::AlgorithmSetting& setting : from.spec().algorithm().algorithm_settings())
    experiment.algorithm.settings.emplace_back(setting.name(), setting.value());
  return experiment;
}

int64_t LabelOf(const katib::Trial& trial, const char* name) {
  const auto found = trial.spec().labels().find(name);
  int64_t number = -1;
  if (found == trial.spec().labels().end() || !absl::SimpleAtoi(found->second, &number)) return -1;
  return number;
}

// The study as the request tells it: its trials by their labels, or in the order of their starts;
// the rest of those that were asked for run now.
Status ReplayTrials(const katib::GetSuggestionsRequest& request, const Experiment& experiment,
                    int64_t count, Study* study) {
  std::vector<const katib::Trial*> sorted;
  for (const katib::Trial& trial : request.trials()) sorted.push_back(&trial);
  std::sort(sorted.begin(), sorted.end(), [](const katib::Trial* a, const katib::Trial* b) {
    return std::tuple(LabelOf(*a, kTrialNumberLabel), a->status().start_time(), a->name()) <
           std::tuple(LabelOf(*b, kTrialNumberLabel), b->status().start_time(), b->name());
  });
  std::vector<std::tuple<std::string, int64_t, double>> ended;
  for (const katib::Trial* const trial : sorted) {
    const int64_t number = LabelOf(*trial, kTrialNumberLabel);
    while (static_cast<int64_t>(study->trials().size()) < std::min(number, count))
      study->ReplayLost();
    const auto at = static_cast<int64_t>(study->trials().size());
    if (at >= count) break;
    Assignments assignments;
    for (const katib::ParameterAssignment& a : trial->spec().parameter_assignments().assignments())
      assignments.emplace_back(a.name(), a.value());
    WEFT_ASSIGN_OR_RETURN(std::vector<double> values, study->space().ReadAssignments(assignments));
    WEFT_RETURN_IF_ERROR(study->Replay(std::move(values), LabelOf(*trial, kTrialParentLabel)));
    const katib::TrialStatus& status = trial->status();
    double value = 0;
    bool has_value = false;
    for (const katib::Metric& metric : status.observation().metrics()) {
      if (metric.name() == experiment.objective.metric)
        has_value = absl::SimpleAtod(metric.value(), &value);
    }
    const bool is_over = status.condition() != katib::TrialStatus::CREATED &&
                         status.condition() != katib::TrialStatus::RUNNING;
    const bool counts = has_value && (status.condition() == katib::TrialStatus::SUCCEEDED ||
                                      status.condition() == katib::TrialStatus::EARLYSTOPPED);
    if (counts) {
      ended.emplace_back(status.completion_time(), at, value);
    } else if (is_over) {
      WEFT_RETURN_IF_ERROR(study->Fail(at));
    }
  }
  std::sort(ended.begin(), ended.end());
  for (const auto& [time, number, value] : ended) WEFT_RETURN_IF_ERROR(study->Tell(number, value));
  while (static_cast<int64_t>(study->trials().size()) < count) study->ReplayLost();
  return absl::OkStatus();
}

StatusOr<katib::GetSuggestionsReply> GetSuggestions(const katib::GetSuggestionsRequest& request) {
  const int32_t wanted = request.current_request_number();
  const int64_t count = std::max(0, request.total_request_number() - wanted);
  if (wanted < 0 || wanted > kMostWanted)
    return InvalidArgument(wanted, " suggestions are wanted: 0 to ", kMostWanted, " are allowed");
  WEFT_ASSIGN_OR_RETURN(const Experiment experiment, ReadExperiment(request.experiment()));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Study> study, StudyOf(experiment));
  WEFT_RETURN_IF_ERROR(ReplayTrials(request, experiment, count, study.get()));
  katib::GetSuggestionsReply reply;
  *reply.mutable_algorithm() = request.experiment().spec().algorithm();
  for (int32_t i = 0; i < wanted; ++i) {
    const StatusOr<SearchTrial> trial = study->Ask();
    // Fewer than wanted: the controller asks again, or sees that this is the end.
    if (absl::IsOutOfRange(trial.status()) || absl::IsUnavailable(trial.status())) break;
    WEFT_RETURN_IF_ERROR(trial.status());
    auto* const given = reply.add_parameter_assignments();
    for (const auto& [name, value] : study->space().Assign(trial->values)) {
      katib::ParameterAssignment* const assignment = given->add_assignments();
      assignment->set_name(name);
      assignment->set_value(value);
    }
    (*given->mutable_labels())[kTrialNumberLabel] = absl::StrCat(trial->number);
    if (trial->parent < 0) continue;
    (*given->mutable_labels())[kTrialParentLabel] = absl::StrCat(trial->parent);
    for (const katib::Trial& other : request.trials()) {
      if (LabelOf(other, kTrialNumberLabel) == trial->parent)
        (*given->mutable_labels())[kParentLabel] = other.name();
    }
  }
  return reply;
}

StatusOr<katib::ValidateAlgorithmSettingsReply> ValidateSettings(
    const katib::ValidateAlgorithmSettingsRequest& request) {
  WEFT_ASSIGN_OR_RETURN(const Experiment experiment, ReadExperiment(request.experiment()));
  const Status status = StudyOf(experiment).status();
  if (!status.ok()) return InvalidArgument(status.message());
  return katib::ValidateAlgorithmSettingsReply();
}

// What programs report of a trial, in the status of its object.
class ReportedLogs {
 public:
  explicit ReportedLogs(ObjectStore* store) : store_(store) {}

  StatusOr<katib::ReportObservationLogReply> Report(
      const katib::ReportObservationLogRequest& request) const {
    constexpr int kTries = 10;  // while others write too
    for (int i = 0; i < kTries; ++i) {
      const Status status = Append(request);
      if (!IsConflict(status)) {
        WEFT_RETURN_IF_ERROR(status);
        return katib::ReportObservationLogReply();
      }
    }
    return Unavailable("trial '", request.trial_name(), "' is written by others all the time");
  }

  StatusOr<katib::GetObservationLogReply> Get(
      const katib::GetObservationLogRequest& request) const {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr trial, FindTrial(store_, request.trial_name()));
    katib::GetObservationLogReply reply;
    for (const auto& [name, values] : TrialView(*trial).Reported()) {
      if (!request.metric_name().empty() && name != request.metric_name()) continue;
      for (const double value : values) {
        katib::MetricLog* const log = reply.mutable_observation_log()->add_metric_logs();
        log->set_time_stamp(FormatObjectTime(CreationOf(*trial)));
        log->mutable_metric()->set_name(name);
        log->mutable_metric()->set_value(SearchParameter().Format(value));
      }
    }
    return reply;
  }

  // They go with the trial.
  StatusOr<katib::DeleteObservationLogReply> Delete(
      const katib::DeleteObservationLogRequest& /*request*/) const {
    return katib::DeleteObservationLogReply();
  }

 private:
  Status Append(const katib::ReportObservationLogRequest& request) const {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr trial, FindTrial(store_, request.trial_name()));
    MetricSeries series = TrialView(*trial).Reported();
    for (const katib::MetricLog& log : request.observation_log().metric_logs()) {
      const katib::Metric& metric = log.metric();
      double value = 0;
      if (absl::SimpleAtod(metric.value(), &value)) series[metric.name()].push_back(value);
    }
    Json changed = *trial;
    SetField(&changed, {"status", "reported"}, ReportedJson(series));
    WriteOptions options;
    options.subresource = "status";
    options.is_strict = false;
    return store_->Update(Trials(), std::move(changed), options).status();
  }

  ObjectStore* const store_;
};

}  // namespace

StatusOr<ObjectPtr> FindTrial(ObjectStore* store, const std::string& name) {
  ListOptions options;
  options.field_selector = absl::StrCat("metadata.name=", name);
  WEFT_ASSIGN_OR_RETURN(const ObjectList found, store->List(Trials(), options));
  if (found.items.size() == 1) return found.items[0];
  return NotFound("there are ", found.items.size(), " trials of the name '", name, "'");
}

std::map<std::string, KatibCall> KatibCalls(ObjectStore* store) {
  std::map<std::string, KatibCall> calls;
  const std::string suggestion = "/api.v1.beta1.Suggestion/", database = "/api.v1.beta1.DBManager/";
  calls[suggestion + "GetSuggestions"] =
      CallOf<katib::GetSuggestionsRequest, katib::GetSuggestionsReply>(&GetSuggestions);
  calls[suggestion + "ValidateAlgorithmSettings"] =
      CallOf<katib::ValidateAlgorithmSettingsRequest, katib::ValidateAlgorithmSettingsReply>(
          &ValidateSettings);
  calls["/grpc.health.v1.Health/Check"] =
      CallOf<katib::HealthCheckRequest, katib::HealthCheckResponse>([](const auto&) {
        katib::HealthCheckResponse response;
        response.set_status(1);
        return StatusOr<katib::HealthCheckResponse>(response);
      });
  AddEarlyStoppingCalls(store, &calls);
  if (store == nullptr) return calls;
  const ReportedLogs logs(store);
  calls[database + "ReportObservationLog"] =
      CallOf<katib::ReportObservationLogRequest, katib::ReportObservationLogReply>(
          [logs](const auto& request) { return logs.Report(request); });
  calls[database + "GetObservationLog"] =
      CallOf<katib::GetObservationLogRequest, katib::GetObservationLogReply>(
          [logs](const auto& request) { return logs.Get(request); });
  calls[database + "DeleteObservationLog"] =
      CallOf<katib::DeleteObservationLogRequest, katib::DeleteObservationLogReply>(
          [logs](const auto& request) { return logs.Delete(request); });
  return calls;
}

}  // namespace weft::platform
