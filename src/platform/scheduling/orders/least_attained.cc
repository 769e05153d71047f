// SPDX-License-Identifier: Apache-2.0
// Who has had least goes first, where nobody knows how long anything takes: GPUs times seconds in
// few steps, within a step by arrival, so that equals do not displace each other in turns (the
// discretised two-dimensional service of Tiresias, NSDI 2019).
#include <iterator>

#include "platform/scheduling/order.h"

namespace weft::platform {
namespace {

// GPU-seconds; beyond the last one all are equal.
constexpr double kSteps[] = {3250};
// More than any time of arrival on a clock of seconds.
constexpr double kStepRank = 1e12;

class LeastAttained : public Order {
 public:
  const char* name() const override { return "las"; }
  bool preempts() const override { return true; }
  bool has_changes() const override { return true; }

  double Rank(const Workload& workload, double now) const override {
    // What reached a step by arithmetic alone has reached it.
    const double service = ServiceAt(workload, now) * (1 + 1e-12) + 1e-9;
    double step = 0;
    for (const double bound : kSteps) step += service >= bound ? 1 : 0;
    return step * kStepRank + workload.submitted;
  }

  double NextChange(const Workload& workload, double now) const override {
    if (workload.width <= 0) return kForever;
    const double service = ServiceAt(workload, now) * (1 + 1e-12) + 1e-9;
    for (const double bound : kSteps) {
      if (service < bound) return now + (bound - service) / workload.width;
    }
    return kForever;
  }
};

}  // namespace

std::unique_ptr<Order> MakeLeastAttained() { return std::make_unique<LeastAttained>(); }

}  // namespace weft::platform
