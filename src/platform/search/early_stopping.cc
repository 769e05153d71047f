// SPDX-License-Identifier: Apache-2.0
#include "platform/search/early_stopping.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "platform/search/sampler.h"

namespace weft::platform {
namespace {

constexpr double kMostSteps = 1e9;

SamplerOptions SettingsOf(const ExperimentAlgorithm& algorithm) {
  SamplerOptions options;
  options.settings.insert(algorithm.settings.begin(), algorithm.settings.end());
  return options;
}

double BestOf(bool maximize, const std::vector<double>& values, size_t steps) {
  const auto end = values.begin() + static_cast<int64_t>(steps);
  return maximize ? *std::max_element(values.begin(), end) : *std::min_element(values.begin(), end);
}

std::vector<StoppingRule> MedianRules(const SamplerOptions& settings,
                                      const ExperimentObjective& objective,
                                      absl::Span<const std::vector<double>> ended) {
  const double least = settings.Number("min_trials_required", 3, 1, kMostSteps).value_or(3);
  const double steps = settings.Number("start_step", 4, 1, kMostSteps).value_or(4);
  std::vector<double> means;
  for (const std::vector<double>& values : ended) {
    if (values.empty()) continue;
    const auto end = values.begin() + static_cast<int64_t>(std::min<size_t>(
                                          values.size(), static_cast<size_t>(steps)));
    means.push_back(std::accumulate(values.begin(), end, 0.0) /
                    static_cast<double>(end - values.begin()));
  }
  if (static_cast<double>(means.size()) < least) return {};
  std::sort(means.begin(), means.end());
  const size_t half = means.size() / 2;
  const double median = means.size() % 2 == 1 ? means[half] : (means[half - 1] + means[half]) / 2;
  return {{objective.metric, median, objective.maximize, static_cast<int64_t>(steps)}};
}

std::vector<StoppingRule> HalvingRules(const SamplerOptions& settings,
                                       const ExperimentObjective& objective,
                                       absl::Span<const std::vector<double>> all) {
  const double eta = settings.Number("eta", 3, 1.1, 1000).value_or(3);
  const double first = settings.Number("min_resource", 1, 1, kMostSteps).value_or(1);
  std::vector<StoppingRule> rules;
  for (double steps = first; steps < kMostSteps; steps = std::ceil(steps * eta)) {
    std::vector<double> reached;
    for (const std::vector<double>& values : all) {
      if (static_cast<double>(values.size()) >= steps)
        reached.push_back(BestOf(objective.maximize, values, static_cast<size_t>(steps)));
    }
    if (static_cast<double>(reached.size()) < eta) break;
    std::sort(reached.begin(), reached.end());
    if (objective.maximize) std::reverse(reached.begin(), reached.end());
    const auto stay = static_cast<size_t>(static_cast<double>(reached.size()) / eta);
    rules.push_back({objective.metric, reached[std::max<size_t>(stay, 1) - 1], objective.maximize,
                     static_cast<int64_t>(steps)});
  }
  return rules;
}

}  // namespace

Status CheckEarlyStopping(const ExperimentAlgorithm& algorithm) {
  const SamplerOptions settings = SettingsOf(algorithm);
  if (algorithm.name == "medianstop") {
    WEFT_RETURN_IF_ERROR(settings.Number("min_trials_required", 3, 1, kMostSteps).status());
    return settings.Number("start_step", 4, 1, kMostSteps).status();
  }
  if (algorithm.name == "asha" || algorithm.name == "successivehalving") {
    WEFT_RETURN_IF_ERROR(settings.Number("eta", 3, 1.1, 1000).status());
    return settings.Number("min_resource", 1, 1, kMostSteps).status();
  }
  return NotFound("there is no early stopping '", algorithm.name,
                  "': medianstop, asha and successivehalving are known");
}

std::vector<StoppingRule> StoppingRules(const ExperimentAlgorithm& algorithm,
                                        const ExperimentObjective& objective,
                                        absl::Span<const std::vector<double>> ended,
                                        absl::Span<const std::vector<double>> all) {
  const SamplerOptions settings = SettingsOf(algorithm);
  if (algorithm.name == "medianstop") return MedianRules(settings, objective, ended);
  return HalvingRules(settings, objective, all);
}

bool Stops(const StoppingRule& rule, const std::vector<double>& values) {
  if (static_cast<int64_t>(values.size()) < rule.start_step || rule.start_step < 1) return false;
  const double best = BestOf(rule.stops_below, values, static_cast<size_t>(rule.start_step));
  return rule.stops_below ? best < rule.value : best > rule.value;
}

}  // namespace weft::platform
