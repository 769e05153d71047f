// SPDX-License-Identifier: Apache-2.0
#include "platform/search/budget.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"

namespace weft::platform {

size_t Budget::RungOf(const TrialPoint& trial) const {
  size_t nearest = 0;
  for (size_t i = 1; i < rungs.size(); ++i) {
    const double position = trial.position[parameter];
    if (std::abs(rungs[i] - position) < std::abs(rungs[nearest] - position)) nearest = i;
  }
  return nearest;
}

StatusOr<Budget> ReadBudget(const SearchSpace& space, const SamplerOptions& options) {
  if (options.asked != nullptr) options.asked->insert("resource_name");
  const auto name = options.settings.find("resource_name");
  if (name == options.settings.end() || name->second.empty()) {
    return InvalidArgument(
        "the algorithm needs the setting resource_name, as in resource_name=epochs: the "
        "parameter that says how long a trial runs");
  }
  const auto found = absl::c_find_if(
      space.parameters, [&](const SearchParameter& p) { return p.name == name->second; });
  if (found == space.parameters.end() || found->kind == SearchParameter::Kind::kChoice) {
    return InvalidArgument("the setting resource_name of the algorithm is '", name->second,
                           "': a parameter with numbers is allowed");
  }
  Budget budget;
  budget.parameter = static_cast<size_t>(found - space.parameters.begin());
  WEFT_ASSIGN_OR_RETURN(budget.eta, options.Number("eta", 3, 1.1, 1000));
  WEFT_ASSIGN_OR_RETURN(const double most, options.Number("r_l", found->high, 1e-12, 1e15));
  const double floor = found->low > 0 ? found->low : most / std::pow(budget.eta, 4);
  WEFT_ASSIGN_OR_RETURN(const double least,
                        options.Number("r_min", std::min(most, floor), 1e-12, most));
  const int last = static_cast<int>(std::log(most / least) / std::log(budget.eta) + 1e-9);
  for (int i = 0; i <= last; ++i) {
    double value = most * std::pow(budget.eta, i - last);
    if (found->kind == SearchParameter::Kind::kInt) value = std::floor(value + 1e-9);
    value = std::clamp(value, found->low, found->high);
    budget.rungs.push_back(found->ToUnit(found->FromUnit(found->ToUnit(value))));
  }
  return budget;
}

BudgetRange BudgetRangeOf(const SamplerOptions& options) {
  BudgetRange range;
  const auto name = options.settings.find("resource_name");
  if (name == options.settings.end()) return range;
  range.name = name->second;
  range.high = options.Number("r_l", 0, 0, 1e15).value_or(0);
  range.low = options.Number("r_min", range.high > 0 ? 1 : 0, 0, 1e15).value_or(0);
  return range;
}

std::vector<int> ByLoss(absl::Span<const TrialPoint> trials, std::vector<int> candidates) {
  const auto gone = std::remove_if(candidates.begin(), candidates.end(), [&](int i) {
    return !trials[static_cast<size_t>(i)].is_finished;
  });
  candidates.erase(gone, candidates.end());
  std::stable_sort(candidates.begin(), candidates.end(), [&](int a, int b) {
    return trials[static_cast<size_t>(a)].loss < trials[static_cast<size_t>(b)].loss;
  });
  return candidates;
}

}  // namespace weft::platform
