// SPDX-License-Identifier: Apache-2.0
// Experiments of Katib, versions v1beta1 and v1alpha3: a search for the best parameters, with a
// trial for each try.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

struct ExperimentParameter {
  enum class Type { kDouble, kInt, kDiscrete, kCategorical };
  std::string name;  // as trials get it: "lr", "--num-layers"
  Type type = Type::kDouble;
  double min = 0;
  double max = 0;
  double step = 0;  // 0: none
  bool is_logarithmic = false;
  std::vector<std::string> list;  // of kDiscrete and kCategorical
  // Only tried where another parameter has one of these values. Empty: always.
  std::string condition_parameter;
  std::vector<std::string> condition_values;
};

// Which of the values that a trial has reported counts.
enum class MetricStrategy { kMin, kMax, kLatest };

// One more objective, of a metric that is noted too.
struct AdditionalObjective {
  std::string metric;
  bool maximize = false;
};

// What a trial has to keep to count as good.
struct MetricConstraint {
  std::string metric;
  std::optional<double> min, max;
};

struct ExperimentObjective {
  bool maximize = false;
  std::optional<double> goal;
  std::string metric;
  std::vector<std::string> additional;
  std::vector<std::pair<std::string, MetricStrategy>> strategies;  // by metric
  // Additions of weft's.
  std::vector<AdditionalObjective> more;
  std::vector<MetricConstraint> constraints;
  // The objective first.
  std::vector<std::string> Metrics() const;
  MetricStrategy StrategyOf(absl::string_view metric) const;
};

using NamedSettings = std::vector<std::pair<std::string, std::string>>;

struct ExperimentAlgorithm {
  std::string name;
  NamedSettings settings;
};

struct MetricsCollector {
  enum class Kind { kStdOut, kFile, kTensorFlowEvent, kPrometheus, kPush, kNone, kCustom };
  Kind kind = Kind::kStdOut;
  std::string path;                  // of a file, of a folder of events, of a page
  bool is_json = false;              // the file has a JSON object a line
  std::vector<std::string> filters;  // regular expressions: first group the name, second the value
  int64_t port = 8080;               // of the page
};

struct TrialTemplate {
  bool retains = false;
  Json spec;           // an object with ${trialParameters.name} in its texts; null: none
  std::string source;  // the text of a Go template over .Trial, .NameSpace and .HyperParameters
  // Where the template stands instead.
  std::string config_map, config_map_namespace, config_map_path;
  bool is_go_template = false;
  std::vector<std::pair<std::string, std::string>> parameters;  // name and reference
  std::vector<std::pair<std::string, std::string>> primary_pod_labels;
  std::string primary_container;
  std::string success_condition, failure_condition;  // as GJSON writes it
};

enum class ResumePolicy { kNever, kLongRunning, kFromVolume };

struct Experiment {
  std::string name;
  std::vector<ExperimentParameter> parameters;
  ExperimentObjective objective;
  ExperimentAlgorithm algorithm;
  std::optional<ExperimentAlgorithm> early_stopping;
  MetricsCollector collector;
  TrialTemplate trial_template;
  int64_t parallel_trials = 3;
  std::optional<int64_t> max_trials;
  std::optional<int64_t> max_failed;
  std::optional<absl::Duration> longest_run;  // an addition of weft's: no new trial after it
  ResumePolicy resume = ResumePolicy::kNever;
};

// Everything that is wrong goes into `problems`; what is returned then makes no sense.
Experiment ParseExperiment(const Json& object, Problems* problems);

// Katib's: successCondition and failureCondition of objects of a kind; empty where it has none.
struct RunConditions {
  std::string success;
  std::string failure;
};
RunConditions DefaultConditions(absl::string_view kind);

}  // namespace weft::platform
