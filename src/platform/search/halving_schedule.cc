// SPDX-License-Identifier: Apache-2.0
#include "platform/search/halving_schedule.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace weft::platform {

HalvingSchedule::Bracket HalvingSchedule::BracketOf(size_t n) const {
  const size_t brackets = budget_.rungs.size();
  const size_t rung = n % brackets;
  const auto above = static_cast<double>(brackets - 1 - rung);  // rungs above the first
  const double size =
      std::ceil(static_cast<double>(brackets) / (above + 1) * std::pow(budget_.eta, above) - 1e-9);
  return {rung, static_cast<size_t>(std::max(1.0, size))};
}

StatusOr<NextPoint> HalvingSchedule::Suggest(int64_t number, absl::Span<const TrialPoint> trials,
                                             absl::Span<const int> finished) {
  // Trials without a parent fill the brackets in their order.
  std::vector<std::vector<int>> begun;
  std::set<int64_t> promoted;
  std::vector<std::vector<int>> children(trials.size());
  size_t bracket = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    const int64_t parent = trials[i].parent;
    if (parent >= 0 && parent < static_cast<int64_t>(i)) {
      promoted.insert(parent);
      children[static_cast<size_t>(parent)].push_back(static_cast<int>(i));
      continue;
    }
    if (begun.empty() || begun.back().size() >= BracketOf(bracket).size) {
      bracket = begun.size();
      begun.emplace_back();
    }
    begun.back().push_back(static_cast<int>(i));
  }
  for (size_t b = 0; b < begun.size(); ++b) {
    const Bracket first = BracketOf(b);
    std::vector<int> rung = begun[b];
    auto wanted = static_cast<double>(first.size);
    for (size_t level = first.rung; level + 1 < budget_.rungs.size(); ++level) {
      const bool is_whole = rung.size() >= static_cast<size_t>(wanted);
      const bool has_ended = std::none_of(rung.begin(), rung.end(), [&](int i) {
        return trials[static_cast<size_t>(i)].is_running();
      });
      if (!is_whole || !has_ended) break;
      wanted = std::max(1.0, std::floor(wanted / budget_.eta + 1e-9));
      std::vector<int> best = ByLoss(trials, std::move(rung));
      best.resize(std::min(best.size(), static_cast<size_t>(wanted)));
      wanted = static_cast<double>(best.size());
      rung.clear();
      for (const int i : best) {
        const TrialPoint& trial = trials[static_cast<size_t>(i)];
        if (promoted.count(i) == 0) {
          std::vector<double> position = trial.position;
          position[budget_.parameter] = budget_.rungs[level + 1];
          return NextPoint(std::move(position), i);
        }
        const std::vector<int>& next = children[static_cast<size_t>(i)];
        rung.insert(rung.end(), next.begin(), next.end());
      }
      if (rung.empty()) break;
    }
  }
  const bool is_new = begun.empty() || begun.back().size() >= BracketOf(begun.size() - 1).size;
  const Bracket into = BracketOf(is_new ? begun.size() : begun.size() - 1);
  WEFT_ASSIGN_OR_RETURN(NextPoint next, Fresh(number, trials, finished));
  next.position[budget_.parameter] = budget_.rungs[into.rung];
  next.parent = -1;
  return next;
}

}  // namespace weft::platform
