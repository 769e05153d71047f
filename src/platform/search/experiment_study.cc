// SPDX-License-Identifier: Apache-2.0
#include "platform/search/experiment_study.h"

#include <algorithm>
#include <cmath>

#include "platform/search/budget.h"

namespace weft::platform {
namespace {

constexpr double kLargestSeed = 9007199254740992.0;

SearchParameter ParameterOf(const ExperimentParameter& from) {
  SearchParameter p;
  p.name = from.name;
  p.low = from.min;
  p.high = from.max;
  p.step = from.step;
  p.logarithmic = from.is_logarithmic;
  switch (from.type) {
    case ExperimentParameter::Type::kDouble:
      p.kind = SearchParameter::Kind::kDouble;
      break;
    case ExperimentParameter::Type::kInt:
      p.kind = SearchParameter::Kind::kInt;
      break;
    case ExperimentParameter::Type::kDiscrete:
    case ExperimentParameter::Type::kCategorical:
      p.kind = SearchParameter::Kind::kChoice;
      p.choices = from.list;
      break;
  }
  return p;
}

SamplerOptions OptionsOf(const Experiment& experiment) {
  SamplerOptions options;
  options.settings.insert(experiment.algorithm.settings.begin(),
                          experiment.algorithm.settings.end());
  return options;
}

}  // namespace

StatusOr<SearchSpace> SpaceOf(const Experiment& experiment) {
  SearchSpace space;
  for (const ExperimentParameter& from : experiment.parameters) {
    SearchParameter p = ParameterOf(from);
    if (!from.condition_parameter.empty()) {
      for (size_t i = 0; i < space.parameters.size(); ++i) {
        if (space.parameters[i].name == from.condition_parameter)
          p.depends_on = static_cast<int>(i);
      }
      if (p.depends_on < 0) {
        return InvalidArgument("parameter '", p.name, "' depends on '", from.condition_parameter,
                               "', which does not stand before it");
      }
      for (const std::string& value : from.condition_values) {
        WEFT_ASSIGN_OR_RETURN(const double index,
                              space.parameters[static_cast<size_t>(p.depends_on)].Parse(value));
        p.depends_on_values.push_back(index);
      }
    }
    space.parameters.push_back(std::move(p));
  }
  const BudgetRange range = BudgetRangeOf(OptionsOf(experiment));
  for (SearchParameter& p : space.parameters) {
    if (p.name != range.name || p.kind == SearchParameter::Kind::kChoice || range.high <= 0)
      continue;
    p.low = std::min(p.low, range.low);
    p.high = std::max(p.high, range.high);
  }
  return space;
}

StatusOr<StudyOptions> StudyOptionsOf(const Experiment& experiment) {
  const SamplerOptions options = OptionsOf(experiment);
  StudyOptions study;
  study.algorithm = experiment.algorithm.name;
  study.maximize = experiment.objective.maximize;
  for (const AdditionalObjective& more : experiment.objective.more)
    study.also_maximize.push_back(more.maximize);
  study.settings = options.settings;
  WEFT_ASSIGN_OR_RETURN(const double state, options.Number("random_state", 0, 0, kLargestSeed));
  WEFT_ASSIGN_OR_RETURN(const double seed, options.Number("seed", state, 0, kLargestSeed));
  study.seed = static_cast<uint64_t>(seed);
  return study;
}

StatusOr<std::unique_ptr<Study>> StudyOf(const Experiment& experiment) {
  WEFT_ASSIGN_OR_RETURN(SearchSpace space, SpaceOf(experiment));
  WEFT_ASSIGN_OR_RETURN(const StudyOptions options, StudyOptionsOf(experiment));
  return Study::Create(std::move(space), options);
}

std::optional<double> CountedValue(const ExperimentObjective& objective, const std::string& metric,
                                   const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double counted = values.back();
  for (const double value : values) {
    if (std::isnan(value)) continue;
    switch (objective.StrategyOf(metric)) {
      case MetricStrategy::kMin:
        counted = std::isnan(counted) ? value : std::min(counted, value);
        break;
      case MetricStrategy::kMax:
        counted = std::isnan(counted) ? value : std::max(counted, value);
        break;
      case MetricStrategy::kLatest:
        break;
    }
  }
  return counted;
}

bool ReachesGoal(const ExperimentObjective& objective, double value) {
  if (!objective.goal.has_value()) return false;
  return objective.maximize ? value >= *objective.goal : value <= *objective.goal;
}

}  // namespace weft::platform
