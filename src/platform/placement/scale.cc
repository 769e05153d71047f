// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/scale.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::platform {
namespace {

std::string CountsOf(const ScaleOption& option) {
  return absl::StrCat(
      option.workers, option.workers == 1 ? " worker" : " workers",
      option.servers > 0
          ? absl::StrCat(", ", option.servers, option.servers == 1 ? " server" : " servers")
          : "",
      option.kind.empty() ? "" : absl::StrCat(" of ", option.kind));
}

class Decider {
 public:
  Decider(const std::vector<ScaleOption>& options, const ScaleGoal& goal, const ScaleState& state,
          const ScaleRules& rules)
      : options_(options), goal_(goal), state_(state), rules_(rules) {
    Correct();
    if (!Check().ok()) return;
    if (const auto cheapest = Cheapest())
      per_dollar_ = Rate(*cheapest) / std::max(1e-9, options_[*cheapest].dollars_per_hour);
  }

  Status Check() const {
    if (options_.empty()) return InvalidArgument("There are no counts to choose from");
    if (state_.current && *state_.current >= options_.size()) {
      return InvalidArgument("Option ", *state_.current, " runs, there are ", options_.size());
    }
    for (const ScaleOption& option : options_) {
      const bool is_rate = option.predicted > 0 || option.measured > 0;
      if (!is_rate || !std::isfinite(option.predicted) || !std::isfinite(option.measured) ||
          !(option.dollars_per_hour >= 0) || !std::isfinite(option.dollars_per_hour)) {
        return InvalidArgument(CountsOf(option),
                               ": expected examples a second above 0 and a price");
      }
    }
    if (!(goal_.examples >= 0) || std::isnan(goal_.seconds) || std::isnan(goal_.dollars))
      return InvalidArgument("Examples, deadline and budget must be numbers");
    return absl::OkStatus();
  }

  ScaleDecision Decide() const {
    const size_t wanted = Wanted();
    if (!state_.current || wanted == *state_.current) return Describe(wanted, false);
    const size_t current = *state_.current;
    if (state_.changes >= rules_.most_changes) return Describe(current, false);
    const bool needs = !Keeps(current) || !Affords(current);
    if (needs) {
      // Upwards for certain, or, if it is the money, to what costs less.
      const bool is_up = Low(wanted) > Low(current);
      return is_up || !Affords(current) ? Describe(wanted, false) : Describe(current, false);
    }
    if (state_.since_change < rules_.settle_seconds || state_.savings >= rules_.most_savings ||
        !Saves(wanted, current)) {
      return Describe(current, false);
    }
    return Describe(wanted, true);
  }

 private:
  // What was predicted is off alike for all counts, as far as is known: by as much as those that
  // ran were.
  void Correct() {
    double sum = 0;
    int ran = 0;
    for (const ScaleOption& option : options_) {
      if (option.measured <= 0 || option.predicted <= 0) continue;
      sum += std::log(option.measured / option.predicted);
      ++ran;
    }
    has_run_ = ran > 0;
    if (has_run_) correction_ = std::exp(sum / ran);
  }

  double Rate(size_t i) const {
    const ScaleOption& option = options_[i];
    return option.measured > 0 ? option.measured : option.predicted * correction_;
  }
  // No lower than this.
  double Low(size_t i) const {
    const ScaleOption& option = options_[i];
    if (option.measured > 0) return option.measured * (1 - rules_.measurement_error);
    const double error = has_run_ ? rules_.shape_error : rules_.prediction_error;
    return option.predicted * correction_ * (1 - error);
  }
  double Restart(size_t i) const {
    return state_.current && *state_.current != i ? rules_.restart_seconds : 0;
  }
  double SecondsAt(size_t i, double rate) const { return Restart(i) + goal_.examples / rate; }
  double Seconds(size_t i) const { return SecondsAt(i, Rate(i)); }
  double Dollars(size_t i) const {
    return Seconds(i) * options_[i].dollars_per_hour / kSecondsAnHour;
  }
  bool Keeps(size_t i) const { return SecondsAt(i, Low(i)) <= goal_.seconds; }
  bool Affords(size_t i) const { return Dollars(i) <= goal_.dollars; }

  bool IsCheaper(size_t a, size_t b) const {
    return Dollars(a) != Dollars(b) ? Dollars(a) < Dollars(b) : Seconds(a) < Seconds(b);
  }
  // Examples a second beyond those that its price must bring, by what the cheapest count does.
  double Worth(size_t i) const {
    return Rate(i) - goal_.least_gain * per_dollar_ * options_[i].dollars_per_hour;
  }

  bool Saves(size_t wanted, size_t current) const {
    const bool is_cheaper = Dollars(wanted) <= (1 - rules_.least_saving) * Dollars(current);
    if (goal_.objective == ScaleGoal::Objective::kCost) return is_cheaper;
    // What is about as good both ways would go to and fro: less for less, and more for more.
    const double better = Worth(wanted) - Worth(current);
    return better >= rules_.least_better * Rate(current) &&
           (is_cheaper || Seconds(wanted) <= (1 - rules_.least_saving) * Seconds(current));
  }

  // The best by `less` of those that `is` holds for; none if there are none.
  template <typename Is, typename Less>
  std::optional<size_t> Best(Is is, Less less) const {
    std::optional<size_t> best;
    for (size_t i = 0; i < options_.size(); ++i) {
      if (is(i) && (!best || less(i, *best))) best = i;
    }
    return best;
  }

  std::optional<size_t> Cheapest() const {
    return Best([&](size_t i) { return Affords(i) && Keeps(i); },
                [&](size_t a, size_t b) { return IsCheaper(a, b); });
  }

  size_t Wanted() const {
    const auto faster = [&](size_t a, size_t b) { return Seconds(a) < Seconds(b); };
    if (const auto good = Cheapest()) {
      if (goal_.objective == ScaleGoal::Objective::kCost) return *good;
      // From the cheapest on more and more, as long as what is added brings enough for its price.
      return *Best([&](size_t i) { return Affords(i) && Keeps(i); },
                   [&](size_t a, size_t b) {
                     const double more = Worth(a) - Worth(b);
                     return more != 0 ? more > 0 : Rate(a) > Rate(b);
                   });
    }
    // The deadline is in danger: as fast as the money lets.
    if (const auto fastest = Best([&](size_t i) { return Affords(i); }, faster)) return *fastest;
    return *Best([](size_t) { return true; }, [&](size_t a, size_t b) { return IsCheaper(a, b); });
  }

  ScaleDecision Describe(size_t i, bool is_saving) const {
    ScaleDecision decision{.option = i,
                           .is_change = state_.current && *state_.current != i,
                           .is_saving = is_saving,
                           .seconds = Seconds(i),
                           .dollars = Dollars(i),
                           .keeps_deadline = Keeps(i),
                           .keeps_budget = Affords(i)};
    decision.reason = absl::StrFormat("%s: %.3g examples a second %s, %.4g s and %.4g $ to the end",
                                      CountsOf(options_[i]), Rate(i),
                                      options_[i].measured > 0 ? "measured" : "expected",
                                      decision.seconds, decision.dollars);
    if (!decision.keeps_budget) {
      absl::StrAppend(&decision.reason,
                      absl::StrFormat("; %.4g $ more than the budget, and nothing is cheaper",
                                      decision.dollars - goal_.dollars));
    } else if (!decision.keeps_deadline) {
      absl::StrAppend(&decision.reason,
                      absl::StrFormat("; the deadline in %.4g s is not certain to be kept by any "
                                      "count within the budget",
                                      goal_.seconds));
    }
    return decision;
  }

  const std::vector<ScaleOption>& options_;
  const ScaleGoal& goal_;
  const ScaleState& state_;
  const ScaleRules& rules_;
  bool has_run_ = false;
  double correction_ = 1;
  double per_dollar_ = 0;  // examples a second that the cheapest count brings for a dollar an hour
};

}  // namespace

StatusOr<ScaleDecision> DecideScale(const std::vector<ScaleOption>& options, const ScaleGoal& goal,
                                    const ScaleState& state, const ScaleRules& rules) {
  const Decider decider(options, goal, state, rules);
  WEFT_RETURN_IF_ERROR(decider.Check());
  return decider.Decide();
}

}  // namespace weft::platform
