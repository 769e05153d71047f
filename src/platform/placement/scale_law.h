// SPDX-License-Identifier: Apache-2.0
// How fast a training is expected to be with counts that it never had, by the counts that it had.
#pragma once

#include <vector>

namespace weft::platform {

// One count that ran.
struct MeasuredScale {
  double workers = 1;
  double load =
      0;  // the part of all variables that the busiest place of servers holds; 0: no place
  double rate = 0;  // examples a second
};

// n workers make n / (1 + a(n - 1) + b n load) times what one without servers would: each takes the
// same share from all others (Gunther's law), and waits for the busiest servers, who work for all.
//
// What was never tried is taken for good, so that it is tried: until two numbers of workers ran
// they hardly disturb each other; until two loads ran, fewer places of servers cost nothing, and
// more bring as much as the law of the workers that ran leaves to them.
class ScaleLaw {
 public:
  // `load` is the one that there is now.
  ScaleLaw(const std::vector<MeasuredScale>& measured, double load);

  // Of one worker's with the load that there is now.
  double Rate(double workers, double load) const;

 private:
  double load_ = 0;
  double contention_ = 0;  // a
  double servers_ = 0;     // b
  bool knows_servers_ = false;
};

}  // namespace weft::platform
