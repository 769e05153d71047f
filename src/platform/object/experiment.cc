// SPDX-License-Identifier: Apache-2.0
#include "platform/object/experiment.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/names.h"
#include "platform/object/trial_template.h"

namespace weft::platform {
namespace {

constexpr int64_t kMostTrials = 10000000;
constexpr size_t kMostValues = 10000;

// Katib writes numbers of a space as texts; plain ones are understood too.
bool ReadSpaceNumber(FieldReader* reader, absl::string_view name, Problems* problems,
                     double* number) {
  const Json* const value = reader->Find(name);
  if (value == nullptr) return false;
  const std::string text = value->is_string()   ? value->AsString().value_or("")
                           : value->is_number() ? value->Dump()
                                                : "";
  if (text.empty() && value->is_string()) return false;
  if (absl::SimpleAtod(text, number) && std::isfinite(*number)) return true;
  problems->Add(*value, reader->PathOf(name), HoldsButAllowed(*value, "a number is allowed"));
  return false;
}

void ReadListOfValues(FieldReader* reader, Problems* problems, std::vector<std::string>* values) {
  size_t index = 0;
  for (const Json& item : reader->ReadList("list")) {
    const std::string path = absl::StrCat(reader->PathOf("list"), "[", index++, "]");
    if (item.is_array() || item.is_object() || item.is_null()) {
      problems->Add(item, path, HoldsButAllowed(item, "a text is allowed"));
      continue;
    }
    std::string text = item.is_string() ? item.AsString().value_or("") : item.Dump();
    if (absl::StrContains(text, ' ')) {
      problems->Add(
          item, path,
          absl::StrCat("holds \"", text,
                       "\": a dash is missing, or a space is in it; each value has a line "
                       "of its own, as in\n    - sgd\n    - adam"));
    }
    if (absl::c_linear_search(*values, text)) problems->Duplicate(item, path, item);
    values->push_back(std::move(text));
  }
  if (values->size() > kMostValues) {
    problems->Add(*reader->Find("list"), reader->PathOf("list"),
                  absl::StrCat("has more than ", kMostValues, " values"));
  }
}

void ReadFeasibleSpace(const Json& value, const std::string& path, Problems* problems,
                       ExperimentParameter* p) {
  FieldReader reader(value, path, problems);
  const bool is_range =
      p->type == ExperimentParameter::Type::kDouble || p->type == ExperimentParameter::Type::kInt;
  const bool has_min = ReadSpaceNumber(&reader, "min", problems, &p->min);
  const bool has_max = ReadSpaceNumber(&reader, "max", problems, &p->max);
  const bool has_step = ReadSpaceNumber(&reader, "step", problems, &p->step);
  ReadListOfValues(&reader, problems, &p->list);
  int distribution = 0;
  reader.ReadChoice("distribution", {"", "uniform", "logUniform", "normal", "logNormal", "unknown"},
                    &distribution);
  // The normal ones say where most good values lie; they are searched as the range that they have.
  p->is_logarithmic = distribution == 2 || distribution == 4;
  reader.Finish();
  if (!value.is_object()) return;
  if (!is_range) {
    if (has_min || has_max || has_step) {
      problems->Invalid(value, path, value,
                        "min, max and step are for parameterType int and double; list is for this");
    }
    if (p->list.empty())
      problems->Required(value, absl::StrCat(path, ".list"), "at least one value");
    return;
  }
  if (!p->list.empty()) {
    problems->Invalid(
        value, absl::StrCat(path, ".list"), value,
        "list is for parameterType categorical and discrete; min and max are for this");
  }
  if (!has_min) problems->Required(value, absl::StrCat(path, ".min"), "the smallest value");
  if (!has_max) problems->Required(value, absl::StrCat(path, ".max"), "the largest value");
  if (!has_min || !has_max) return;
  if (p->min > p->max) problems->Add(value, path, "min is larger than max");
  if (p->step < 0) problems->Add(value, absl::StrCat(path, ".step"), "has to be above 0");
  if (p->is_logarithmic && p->min <= 0)
    problems->Add(value, absl::StrCat(path, ".min"), "a logarithmic range begins above 0");
  if (p->type != ExperimentParameter::Type::kInt) return;
  for (const double number : {p->min, p->max, p->step}) {
    if (number != std::floor(number) || std::abs(number) > 9e15)
      problems->Add(value, path, "an int has whole numbers for min, max and step");
  }
}

void ReadParameterCondition(const Json& value, const std::string& path, Problems* problems,
                            ExperimentParameter* p) {
  FieldReader reader(value, path, problems);
  reader.Require("parameter", "the name of another parameter, which stands before");
  reader.ReadString("parameter", &p->condition_parameter);
  reader.Require("values", "those with which this one is tried");
  reader.ReadStrings("values", &p->condition_values);
  reader.Finish();
}

void CheckParameterCondition(const Json& at, const std::string& path,
                             const std::vector<ExperimentParameter>& before,
                             const ExperimentParameter& p, Problems* problems) {
  const auto other = absl::c_find_if(
      before, [&](const ExperimentParameter& o) { return o.name == p.condition_parameter; });
  if (other == before.end() || other->list.empty()) {
    return problems->Add(
        at, path,
        absl::StrCat("names '", p.condition_parameter,
                     "': a categorical or discrete parameter before this is allowed"));
  }
  for (const std::string& value : p.condition_values) {
    if (!absl::c_linear_search(other->list, value))
      problems->Add(at, path, absl::StrCat("'", value, "' is no value of ", other->name));
  }
}

void ReadParameters(FieldReader* spec, Problems* problems, Experiment* experiment) {
  if (!spec->Require("parameters", "a list of name, parameterType and feasibleSpace")) return;
  size_t index = 0;
  for (const Json& item : spec->ReadList("parameters")) {
    const std::string path = absl::StrCat(spec->PathOf("parameters"), "[", index++, "]");
    FieldReader reader(item, path, problems);
    ExperimentParameter p;
    reader.Require("name", "of the parameter");
    reader.ReadString("name", &p.name);
    int type = 0;
    if (reader.Require("parameterType", "double, int, discrete or categorical"))
      reader.ReadChoice("parameterType", {"double", "int", "discrete", "categorical"}, &type);
    p.type = static_cast<ExperimentParameter::Type>(type);
    if (reader.Require("feasibleSpace", "min and max, or a list"))
      ReadFeasibleSpace(*reader.Find("feasibleSpace"), path + ".feasibleSpace", problems, &p);
    if (const Json* const condition = reader.Find("condition")) {
      ReadParameterCondition(*condition, path + ".condition", problems, &p);
      CheckParameterCondition(*condition, path + ".condition", experiment->parameters, p, problems);
    }
    reader.Finish();
    for (const ExperimentParameter& other : experiment->parameters) {
      if (other.name == p.name) problems->Duplicate(item, path + ".name", p.name);
    }
    experiment->parameters.push_back(std::move(p));
  }
  if (experiment->parameters.empty())
    problems->Add(*spec->Find("parameters"), spec->PathOf("parameters"), "has no parameter");
}

void ReadStrategies(FieldReader* reader, Problems* problems, ExperimentObjective* objective) {
  size_t index = 0;
  for (const Json& item : reader->ReadList("metricStrategies")) {
    FieldReader strategy(item, absl::StrCat(reader->PathOf("metricStrategies"), "[", index++, "]"),
                         problems);
    std::string name;
    int value = 2;
    strategy.Require("name", "of a metric");
    strategy.ReadString("name", &name);
    strategy.ReadChoice("value", {"min", "max", "latest"}, &value);
    strategy.Finish();
    objective->strategies.emplace_back(std::move(name), static_cast<MetricStrategy>(value));
  }
}

// Its value decides, so it has to be noted.
void CheckIsNoted(const Json& at, const std::string& path, const std::string& metric,
                  const ExperimentObjective& objective, Problems* problems) {
  if (absl::c_linear_search(objective.additional, metric)) return;
  problems->Add(at, path + ".metricName",
                absl::StrCat("holds ", metric, ": a name of additionalMetricNames is allowed"));
}

void ReadMoreObjectives(FieldReader* reader, Problems* problems, ExperimentObjective* objective) {
  size_t index = 0;
  for (const Json& item : reader->ReadList("additionalObjectives")) {
    const std::string path =
        absl::StrCat(reader->PathOf("additionalObjectives"), "[", index++, "]");
    FieldReader one(item, path, problems);
    AdditionalObjective more;
    int type = 0;
    one.Require("metricName", "a name of additionalMetricNames");
    one.ReadString("metricName", &more.metric);
    if (one.Require("type", "minimize or maximize"))
      one.ReadChoice("type", {"minimize", "maximize"}, &type);
    more.maximize = type == 1;
    one.Finish();
    CheckIsNoted(item, path, more.metric, *objective, problems);
    objective->more.push_back(std::move(more));
  }
  index = 0;
  for (const Json& item : reader->ReadList("constraints")) {
    const std::string path = absl::StrCat(reader->PathOf("constraints"), "[", index++, "]");
    FieldReader one(item, path, problems);
    MetricConstraint constraint;
    one.Require("metricName", "a name of additionalMetricNames");
    one.ReadString("metricName", &constraint.metric);
    double bound = 0;
    if (ReadSpaceNumber(&one, "min", problems, &bound)) constraint.min = bound;
    if (ReadSpaceNumber(&one, "max", problems, &bound)) constraint.max = bound;
    one.Finish();
    if (!constraint.min.has_value() && !constraint.max.has_value())
      problems->Add(item, path, "has neither min nor max: one of them is needed");
    CheckIsNoted(item, path, constraint.metric, *objective, problems);
    objective->constraints.push_back(std::move(constraint));
  }
}

void ReadObjective(const Json& value, Problems* problems, ExperimentObjective* objective) {
  FieldReader reader(value, "spec.objective", problems);
  int type = 0;
  if (reader.Require("type", "minimize or maximize"))
    reader.ReadChoice("type", {"minimize", "maximize"}, &type);
  objective->maximize = type == 1;
  double goal = 0;
  if (ReadSpaceNumber(&reader, "goal", problems, &goal)) objective->goal = goal;
  reader.Require("objectiveMetricName", "the metric that counts");
  reader.ReadString("objectiveMetricName", &objective->metric);
  const Json* const additional = reader.Find("additionalMetricNames");
  if (additional != nullptr && additional->is_string()) {
    problems->Add(
        *additional, "spec.objective.additionalMetricNames",
        HoldsButAllowed(*additional,
                        absl::StrCat("a list is allowed: write\n    additionalMetricNames:\n"
                                     "    - ",
                                     additional->AsString().value_or(""))));
  } else {
    reader.ReadStrings("additionalMetricNames", &objective->additional);
  }
  if (!objective->metric.empty() &&
      absl::c_linear_search(objective->additional, objective->metric)) {
    problems->Add(value, "spec.objective.additionalMetricNames",
                  absl::StrCat("holds ", objective->metric,
                               ", which is the objective already: leave it out"));
  }
  ReadStrategies(&reader, problems, objective);
  ReadMoreObjectives(&reader, problems, objective);
  reader.Finish();
}

void ReadAlgorithm(const Json& value, const std::string& path, Problems* problems,
                   ExperimentAlgorithm* algorithm) {
  FieldReader reader(value, path, problems);
  reader.Require("algorithmName", "as in random, tpe, bayesianoptimization");
  reader.ReadString("algorithmName", &algorithm->name);
  size_t index = 0;
  for (const Json& item : reader.ReadList("algorithmSettings")) {
    FieldReader setting(item, absl::StrCat(path, ".algorithmSettings[", index++, "]"), problems);
    std::string name, text;
    setting.Require("name", "of the setting");
    setting.ReadString("name", &name);
    setting.ReadString("value", &text);
    setting.Finish();
    algorithm->settings.emplace_back(std::move(name), std::move(text));
  }
  reader.Finish();
}

// source.fileSystemPath of files and events.
void ReadMetricsPath(const Json& value, Problems* problems, MetricsCollector* collector) {
  FieldReader reader(value, "spec.metricsCollectorSpec.source.fileSystemPath", problems);
  reader.ReadString("path", &collector->path);
  reader.Accept({"kind"});
  int format = 0;
  reader.ReadChoice("format", {"TEXT", "JSON", ""}, &format);
  collector->is_json = format == 1;
  reader.Finish();
  if (!absl::StartsWith(collector->path, "/"))
    problems->Add(value, reader.PathOf("path"), "a path from / on is needed");
}

void ReadMetricsSource(const Json& value, Problems* problems, MetricsCollector* collector) {
  const std::string path = "spec.metricsCollectorSpec.source";
  FieldReader reader(value, path, problems);
  if (const Json* const files = reader.Find("fileSystemPath"))
    ReadMetricsPath(*files, problems, collector);
  if (const Json* const page = reader.Find("httpGet")) {
    FieldReader get(*page, path + ".httpGet", problems);
    get.ReadString("path", &collector->path);
    get.ReadInt("port", 1, 65535, &collector->port);
    get.Accept({"host", "scheme", "httpHeaders"});
    get.Finish();
  }
  if (const Json* const filter = reader.Find("filter")) {
    FieldReader formats(*filter, path + ".filter", problems);
    formats.ReadStrings("metricsFormat", &collector->filters);
    formats.Finish();
  }
  reader.Finish();
}

void ReadCollector(const Json& value, Problems* problems, MetricsCollector* collector) {
  FieldReader reader(value, "spec.metricsCollectorSpec", problems);
  int kind = 0;
  if (const Json* const which = reader.Find("collector")) {
    FieldReader inner(*which, "spec.metricsCollectorSpec.collector", problems);
    inner.ReadChoice(
        "kind", {"StdOut", "File", "TensorFlowEvent", "PrometheusMetric", "Push", "None", "Custom"},
        &kind);
    inner.Accept({"customCollector"});
    inner.Finish();
  }
  collector->kind = static_cast<MetricsCollector::Kind>(kind);
  switch (collector->kind) {
    case MetricsCollector::Kind::kFile:
      collector->path = "/var/log/katib/metrics.log";
      break;
    case MetricsCollector::Kind::kTensorFlowEvent:
      collector->path = "/var/log/katib/tfevent/";
      break;
    case MetricsCollector::Kind::kPrometheus:
      collector->path = "/metrics";
      break;
    case MetricsCollector::Kind::kCustom:
      problems->Add(
          value, "spec.metricsCollectorSpec.collector.kind",
          "is Custom: weft starts no collectors of others; a program that has its own way "
          "reports by Push");
      break;
    default:
      break;
  }
  if (const Json* const source = reader.Find("source"))
    ReadMetricsSource(*source, problems, collector);
  reader.Finish();
}

void ReadGoTemplate(const Json& value, Problems* problems, TrialTemplate* out) {
  FieldReader reader(value, "spec.trialTemplate.goTemplate", problems);
  out->is_go_template = true;
  reader.ReadString("rawTemplate", &out->source);
  if (const Json* const place = reader.Find("templateSpec")) {
    FieldReader where(*place, "spec.trialTemplate.goTemplate.templateSpec", problems);
    where.ReadString("configMapName", &out->config_map);
    where.ReadString("configMapNamespace", &out->config_map_namespace);
    where.ReadString("templatePath", &out->config_map_path);
    where.Finish();
  }
  reader.Finish();
}

void ReadTrialParameters(FieldReader* reader, Problems* problems, const Experiment& experiment,
                         TrialTemplate* out) {
  size_t index = 0;
  for (const Json& item : reader->ReadList("trialParameters")) {
    const std::string path = absl::StrCat("spec.trialTemplate.trialParameters[", index++, "]");
    FieldReader parameter(item, path, problems);
    std::string name, reference, description;
    parameter.Require("name", "by which the template names it");
    parameter.ReadString("name", &name);
    parameter.ReadString("description", &description);
    parameter.Require("reference", "the name of a parameter of the search");
    parameter.ReadString("reference", &reference);
    parameter.Finish();
    const bool is_known = absl::StartsWith(reference, "${trialSpec.") ||
                          absl::c_any_of(experiment.parameters, [&](const ExperimentParameter& p) {
                            return p.name == reference;
                          });
    if (!is_known)
      problems->Add(item, path + ".reference",
                    absl::StrCat("names '", reference, "', which is not in spec.parameters"));
    out->parameters.emplace_back(std::move(name), std::move(reference));
  }
}

constexpr char kTemplateHint[] =
    "holds no template: write what a trial runs, as in\n"
    "    trialTemplate:\n"
    "      primaryContainerName: training\n"
    "      trialParameters:\n"
    "      - {name: lr, reference: lr}\n"
    "      trialSpec:\n"
    "        apiVersion: batch/v1\n"
    "        kind: Job\n"
    "        spec: {template: {spec: {restartPolicy: Never, containers: [{name: training, image: "
    "train:1, command: [train, \"--lr=${trialParameters.lr}\"]}]}}}";

void ReadTrialTemplate(const Json* value, const Json& spec, Problems* problems,
                       Experiment* experiment) {
  TrialTemplate& out = experiment->trial_template;
  if (value == nullptr || value->size() == 0) {
    return problems->Add(value == nullptr ? spec : *value, "spec.trialTemplate", kTemplateHint);
  }
  FieldReader reader(*value, "spec.trialTemplate", problems);
  reader.ReadBool("retain", &out.retains);
  if (const Json* const object = reader.Find("trialSpec")) out.spec = *object;
  if (const Json* const go = reader.Find("goTemplate")) ReadGoTemplate(*go, problems, &out);
  if (const Json* const place = reader.Find("configMap")) {
    FieldReader where(*place, "spec.trialTemplate.configMap", problems);
    where.ReadString("configMapName", &out.config_map);
    where.ReadString("configMapNamespace", &out.config_map_namespace);
    where.ReadString("templatePath", &out.config_map_path);
    where.Finish();
  }
  ReadTrialParameters(&reader, problems, *experiment, &out);
  reader.ReadStringMap("primaryPodLabels", &out.primary_pod_labels);
  reader.ReadString("primaryContainerName", &out.primary_container);
  reader.ReadString("successCondition", &out.success_condition);
  reader.ReadString("failureCondition", &out.failure_condition);
  reader.Finish();
  const int sources = !out.spec.is_null() + !out.source.empty() + !out.config_map.empty();
  if (sources == 0) problems->Add(*value, "spec.trialTemplate", kTemplateHint);
  if (sources > 1)
    problems->Add(*value, "spec.trialTemplate", "has more than one template: keep one");
  if (out.spec.is_null()) return;
  if (!out.spec.is_object())
    return problems->Add(out.spec, "spec.trialTemplate.trialSpec", "is no object");
  for (const char* field : {"apiVersion", "kind"}) {
    if (StringField(out.spec, {field}).empty())
      problems->Required(*value, absl::StrCat("spec.trialTemplate.trialSpec.", field));
  }
  const RunConditions known = DefaultConditions(StringField(out.spec, {"kind"}));
  if (out.success_condition.empty()) out.success_condition = known.success;
  if (out.failure_condition.empty()) out.failure_condition = known.failure;
  if (out.success_condition.empty() || out.failure_condition.empty()) {
    problems->Required(*value, "spec.trialTemplate",
                       "successCondition and failureCondition must be specified for this kind");
  }
}

// Whether it gives an object at all, with the values of a first trial.
void CheckTemplate(const Experiment& experiment, const Json& at, Problems* problems) {
  const TrialTemplate& trial_template = experiment.trial_template;
  if (!trial_template.config_map.empty()) return;
  Assignments assignments;
  for (const ExperimentParameter& p : experiment.parameters)
    assignments.emplace_back(p.name, p.list.empty() ? absl::StrCat(p.min) : p.list[0]);
  StatusOr<Json> object = MakeRunObject(
      trial_template, "", {experiment.name, experiment.name + "-bcdfghjk", "default"}, assignments);
  Status status = object.status();
  if (object.ok()) {
    status = PrintFilesAtEnd(experiment.collector, trial_template.primary_container, &*object);
    const RunConditions known = DefaultConditions(StringField(*object, {"kind"}));
    if (trial_template.is_go_template && trial_template.success_condition.empty() &&
        known.success.empty())
      status = InvalidArgument("a successCondition is needed for objects of the kind ",
                               StringField(*object, {"kind"}));
  }
  if (!status.ok()) problems->Add(at, "spec.trialTemplate", status.message());
}

void ReadCounts(FieldReader* spec, const Json& at, Problems* problems, Experiment* experiment) {
  spec->ReadInt("parallelTrialCount", 1, kMostTrials, &experiment->parallel_trials);
  const auto read = [&](const char* name, int64_t min, std::optional<int64_t>* out) {
    if (spec->Find(name) == nullptr) return;
    int64_t count = min;
    spec->ReadInt(name, min, kMostTrials, &count);
    *out = count;
  };
  read("maxTrialCount", 1, &experiment->max_trials);
  read("maxFailedTrialCount", 0, &experiment->max_failed);
  std::optional<int64_t> seconds;
  read("maxSeconds", 1, &seconds);
  if (seconds.has_value()) experiment->longest_run = absl::Seconds(*seconds);
  const auto check = [&](const char* name, int64_t count) {
    if (experiment->max_trials.has_value() && count > *experiment->max_trials)
      problems->Invalid(at, absl::StrCat("spec.", name), count,
                        "should be less than or equal to spec.maxTrialCount");
  };
  if (experiment->max_failed.has_value()) check("maxFailedTrialCount", *experiment->max_failed);
  if (spec->Find("parallelTrialCount") != nullptr)
    check("parallelTrialCount", experiment->parallel_trials);
}

}  // namespace

std::vector<std::string> ExperimentObjective::Metrics() const {
  std::vector<std::string> names = {metric};
  names.insert(names.end(), additional.begin(), additional.end());
  return names;
}

MetricStrategy ExperimentObjective::StrategyOf(absl::string_view name) const {
  for (const auto& [of, strategy] : strategies) {
    if (of == name) return strategy;
  }
  return maximize ? MetricStrategy::kMax : MetricStrategy::kMin;
}

RunConditions DefaultConditions(absl::string_view kind) {
  const auto of = [](const char* success) {
    const auto query = [](absl::string_view type) {
      return absl::StrCat("status.conditions.#(type==\"", type, "\")#|#(status==\"True\")#");
    };
    return RunConditions{query(success), query("Failed")};
  };
  if (kind == "Job" || kind == "TrainJob") return of("Complete");
  for (const char* job : {"TFJob", "PyTorchJob", "XGBoostJob", "MPIJob", "Tensorflow"}) {
    if (kind == job) return of("Succeeded");
  }
  if (kind == "Pod") return {R"(status.#(phase=="Succeeded")#)", R"(status.#(phase=="Failed")#)"};
  return {};
}

Experiment ParseExperiment(const Json& object, Problems* problems) {
  Experiment experiment;
  experiment.name = StringField(object, {"metadata", "name"});
  if (experiment.name.size() > 40 || !ServiceNameProblems(experiment.name).empty()) {
    problems->Invalid(object, "metadata.name", experiment.name,
                      "allowed are 1 to 40 of a-z, 0-9 and '-', a letter first");
  }
  static const Json* const none = new Json(Json::Object());
  const Json* const spec = object.Find("spec");
  FieldReader reader(spec == nullptr ? *none : *spec, "spec", problems);
  if (reader.Require("objective", "type, objectiveMetricName and maybe goal"))
    ReadObjective(*reader.Find("objective"), problems, &experiment.objective);
  if (reader.Require("algorithm", "algorithmName"))
    ReadAlgorithm(*reader.Find("algorithm"), "spec.algorithm", problems, &experiment.algorithm);
  if (const Json* const stopping = reader.Find("earlyStopping")) {
    experiment.early_stopping.emplace();
    ReadAlgorithm(*stopping, "spec.earlyStopping", problems, &*experiment.early_stopping);
  }
  if (const Json* const nas = reader.Find("nasConfig"))
    problems->Add(*nas, "spec.nasConfig", "weft searches parameters, not architectures");
  ReadParameters(&reader, problems, &experiment);
  if (const Json* const collector = reader.Find("metricsCollectorSpec"))
    ReadCollector(*collector, problems, &experiment.collector);
  ReadTrialTemplate(reader.Find("trialTemplate"), spec == nullptr ? object : *spec, problems,
                    &experiment);
  ReadCounts(&reader, spec == nullptr ? object : *spec, problems, &experiment);
  if (problems->empty()) CheckTemplate(experiment, *spec, problems);
  int resume = 0;
  reader.ReadChoice("resumePolicy", {"Never", "LongRunning", "FromVolume"}, &resume);
  experiment.resume = static_cast<ResumePolicy>(resume);
  reader.Finish();
  return experiment;
}

}  // namespace weft::platform
