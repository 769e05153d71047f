// SPDX-License-Identifier: Apache-2.0
// Learning rates that change with the number of steps, as Keras's schedules.
#pragma once

#include <functional>
#include <vector>

#include "weft/graph/builder.h"

namespace weft::estimator {

// Adds nodes for the rate at `step`, a float scalar: 0 in the first step. A number is a rate that
// stays (and that callbacks may set).
class Schedule {
 public:
  using Formula = std::function<Endpoint(GraphBuilder& b, Endpoint step)>;
  Schedule(double rate) : rate_(rate) {}  // NOLINT: a number is a schedule
  explicit Schedule(Formula formula) : formula_(std::move(formula)) {}

  bool IsNumber() const { return formula_ == nullptr; }
  double rate() const { return rate_; }
  Endpoint At(GraphBuilder& b, Endpoint step) const { return formula_(b, step); }

 private:
  double rate_ = 0;
  Formula formula_;
};

// initial * rate ^ (step / decay_steps); whole steps only if `staircase`.
Schedule ExponentialDecay(double initial, int64_t decay_steps, double decay_rate,
                          bool staircase = false);
// initial / (1 + rate * step / decay_steps).
Schedule InverseTimeDecay(double initial, int64_t decay_steps, double decay_rate,
                          bool staircase = false);
// (initial - end) * (1 - step / decay_steps) ^ power + end, then `end`; again and again if `cycle`.
Schedule PolynomialDecay(double initial, int64_t decay_steps, double end = 0.0001, double power = 1,
                         bool cycle = false);
// values[i] up to and with step boundaries[i], then the next; one value more than boundaries.
Schedule PiecewiseConstantDecay(std::vector<int64_t> boundaries, std::vector<double> values);
// Half a cosine from `initial` to alpha * initial over decay_steps (Loshchilov and Hutter 2016);
// before that, with warmup_steps, a line from `initial` to `warmup_target`, which then decays.
struct CosineDecayOptions {
  double alpha = 0;
  double warmup_target = -1;
  int64_t warmup_steps = 0;
};
Schedule CosineDecay(double initial, int64_t decay_steps, const CosineDecayOptions& options = {});
// The same again and again, each time over t_mul times as many steps and from m_mul of the height.
struct CosineRestartsOptions {
  double t_mul = 2, m_mul = 1, alpha = 0;
};
Schedule CosineDecayRestarts(double initial, int64_t first_decay_steps,
                             const CosineRestartsOptions& options = {});

}  // namespace weft::estimator
