// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/trial_metrics.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "net/http_client.h"
#include "net/utf8.h"
#include "platform/object/fields.h"
#include "platform/object/trial_template.h"
#include "platform/search/metric_reader.h"
#include "platform/search/trial_output.h"
#include "platform/tuning/trial_view.h"

namespace weft::platform {
namespace {

constexpr size_t kMostLastOutput = 1024;
constexpr char kTrainingJobLabel[] = "training.kubeflow.org/job-name";

bool HasLabels(const Json& pod, const Json* labels) {
  if (labels == nullptr) return true;
  return std::all_of(labels->members().begin(), labels->members().end(), [&](const JsonMember& m) {
    return StringField(pod, {"metadata", "labels", m.name}) == m.value.AsString().value_or("");
  });
}

}  // namespace

MetricsCollector ReadCollectorSpec(const Json& spec) {
  MetricsCollector collector;
  using Source = MetricsCollector::Kind;
  for (const auto& [word, kind, path] :
       {std::tuple{"File", Source::kFile, "/var/log/katib/metrics.log"},
        {"TensorFlowEvent", Source::kTensorFlowEvent, "/var/log/katib/tfevent/"},
        {"PrometheusMetric", Source::kPrometheus, "/metrics"},
        {"Push", Source::kPush, ""},
        {"None", Source::kNone, ""}}) {
    if (StringField(spec, {"collector", "kind"}) != word) continue;
    collector.kind = kind;
    collector.path = path;
  }
  for (const auto& field : {"fileSystemPath", "httpGet"}) {
    const std::string path = StringField(spec, {"source", field, "path"});
    if (!path.empty()) collector.path = path;
  }
  collector.is_json = StringField(spec, {"source", "fileSystemPath", "format"}) == "JSON";
  collector.port = IntField(spec, {"source", "httpGet", "port"}, collector.port);
  for (const Json& filter : ListField(spec, {"source", "filter", "metricsFormat"}))
    collector.filters.push_back(filter.AsString().value_or(""));
  return collector;
}

StatusOr<ObjectPtr> TrialMetricsReader::FindPod(const Json& trial) const {
  const std::string name = NameOf(trial);
  const Json* const labels = FindField(trial, {"spec", "primaryPodLabels"});
  // Templates of pods have the trial's label; a compact job makes its pods without a template.
  for (const char* const label : {kTrialLabel, kTrainingJobLabel}) {
    ListOptions options;
    options.namespace_name = NamespaceOf(trial);
    options.label_selector = absl::StrCat(label, "=", name);
    WEFT_ASSIGN_OR_RETURN(const ObjectList pods, store_->List(Pods(), options));
    // Of several tries the one that succeeded, else the latest.
    ObjectPtr found;
    for (const ObjectPtr& pod : pods.items) {
      if (!HasLabels(*pod, labels)) continue;
      const bool has_succeeded = StringField(*pod, {"status", "phase"}) == "Succeeded";
      if (found == nullptr || has_succeeded || CreationOf(*pod) > CreationOf(*found)) found = pod;
      if (has_succeeded) break;
    }
    if (found != nullptr) return found;
  }
  return Unavailable("no pod of trial '", name, "' is there",
                     labels == nullptr || labels->size() == 0 ? "" : " with its primaryPodLabels");
}

StatusOr<MetricSeries> TrialMetricsReader::ReadPage(const Json& pod,
                                                    const MetricsCollector& collector,
                                                    const std::vector<std::string>& names) const {
  const std::string own = StringField(pod, {"status", "podIP"});
  const std::string& address = own.empty() ? address_ : own;
  if (address.empty()) return Unavailable("pod '", NameOf(pod), "' has no address yet");
  WEFT_ASSIGN_OR_RETURN(
      const auto client,
      HttpClient::Create(absl::StrCat("http://", address, ":", collector.port), {}));
  HttpCall call;
  call.path = collector.path;
  call.timeout = absl::Seconds(5);
  WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Send(call));
  if (answer.status != 200)
    return Unavailable("the page ", collector.path, " of pod '", NameOf(pod), "' answers ",
                       answer.status);
  MetricSeries series;
  for (const auto& [name, value] : ReadPrometheus(answer.body, names)) series[name] = {value};
  return series;
}

StatusOr<MetricSeries> TrialMetricsReader::Read(const Json& trial) const {
  static const Json* const none = new Json(Json::Object());
  const Json* const spec = FindField(trial, {"spec", "metricsCollector"});
  const MetricsCollector collector = ReadCollectorSpec(spec == nullptr ? *none : *spec);
  const Json* const trial_spec = trial.Find("spec");
  const std::vector<std::string> names =
      ObjectiveOf(trial_spec == nullptr ? *none : *trial_spec).Metrics();
  const bool comes_by_itself = collector.kind == MetricsCollector::Kind::kPush ||
                               collector.kind == MetricsCollector::Kind::kNone;
  if (comes_by_itself) return TrialView(trial).Reported();
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr pod, FindPod(trial));
  if (collector.kind == MetricsCollector::Kind::kPrometheus) {
    MetricSeries series = TrialView(trial).Reported();
    const StatusOr<MetricSeries> page = ReadPage(*pod, collector, names);
    if (!page.ok()) return series.empty() ? page.status() : StatusOr<MetricSeries>(series);
    for (const auto& [name, values] : *page) series[name].push_back(values[0]);
    return series;
  }
  WEFT_ASSIGN_OR_RETURN(const std::string output, OutputOf(trial, pod));
  return ReadOutput(collector, names, output);
}

StatusOr<std::string> TrialMetricsReader::OutputOf(const Json& trial, const ObjectPtr& pod) const {
  Json copy = *pod;
  const std::string name = StringField(trial, {"spec", "primaryContainerName"});
  const Json* const container = PrimaryContainer(&copy, name);
  if (container == nullptr)
    return NotFound("pod '", NameOf(*pod), "' has no container '", name, "'");
  return read_(pod, StringField(*container, {"name"}));
}

std::string TrialMetricsReader::LastOutput(const Json& trial) const {
  const StatusOr<ObjectPtr> pod = FindPod(trial);
  if (!pod.ok()) return "";
  const StatusOr<std::string> output = OutputOf(trial, *pod);
  if (!output.ok()) return "";
  absl::string_view text = absl::StripTrailingAsciiWhitespace(*output);
  if (text.size() > kMostLastOutput) {
    text.remove_prefix(text.size() - kMostLastOutput);
    // Whole lines, where they are no longer than that.
    const size_t line = text.find('\n');
    if (line != text.npos) text.remove_prefix(line + 1);
  }
  return EscapeBadUtf8(text);
}

}  // namespace weft::platform
