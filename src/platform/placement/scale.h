// SPDX-License-Identifier: Apache-2.0
// How many workers and servers a training should have now: the cheapest that keep its deadline
// within its budget, by what was predicted and, where it ran, by what was measured.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace weft::platform {

inline constexpr double kSecondsAnHour = 3600;

// One count that may be had.
struct ScaleOption {
  std::string kind;  // of node, for people
  int workers = 1;
  int servers = 0;
  double dollars_per_hour = 0;
  double predicted = 0;  // examples a second
  double measured = 0;   // 0: it has not run
};

struct ScaleGoal {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double examples = 0;     // that are left
  double seconds = kNone;  // until the deadline
  double dollars = kNone;  // that may still be spent
  // kCost: the cheapest that keeps the deadline. kTime: more workers as long as each brings at
  // least `least_gain` of the examples a dollar that the cheapest count brings.
  enum class Objective { kCost, kTime };
  Objective objective = Objective::kCost;
  double least_gain = 0.5;
};

// How far the numbers are trusted, and what keeps counts from going to and fro.
struct ScaleRules {
  double prediction_error = 0.3;   // a rate that was only predicted may be so much lower
  double measurement_error = 0.1;  // and one that was measured
  // And one that was predicted, when another count was measured: by what is predicted of both.
  double shape_error = 0.15;
  double restart_seconds = 60;  // without work, of a change
  double settle_seconds = 600;  // no change to save money sooner after another change
  double least_saving = 0.1;    // of what is left to pay, for such a change
  // Of the rate, by which other counts must be worth more than these, where more money is to buy
  // more speed: less than that is noise.
  double least_better = 0.04;
  int most_savings = 4;   // such changes of one training
  int most_changes = 12;  // changes of one training, whatever they are for
};

struct ScaleState {
  std::optional<size_t> current;           // none: nothing runs yet
  double since_change = ScaleGoal::kNone;  // seconds
  int savings = 0;                         // changes to save money, so far
  int changes = 0;                         // all of them
};

struct ScaleDecision {
  size_t option = 0;
  bool is_change = false;
  bool is_saving = false;       // a change that only saves money
  double seconds = 0;           // until the end, as expected
  double dollars = 0;           // until the end, as expected
  bool keeps_deadline = false;  // also if rates are as low as they may be
  bool keeps_budget = false;
  std::string reason;  // a sentence for people
};

// Pure: the same input gives the same decision. A budget is never knowingly exceeded where a
// cheaper count is there, and comes before the deadline. A change that the deadline needs goes at
// once to a rate that is higher for certain; one that saves money waits. Whoever runs the training
// counts its changes: there are never more than most_changes. InvalidArgument without options, or
// for numbers that are none.
StatusOr<ScaleDecision> DecideScale(const std::vector<ScaleOption>& options, const ScaleGoal& goal,
                                    const ScaleState& state, const ScaleRules& rules = {});

}  // namespace weft::platform
