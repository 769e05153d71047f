// SPDX-License-Identifier: Apache-2.0
// Who will be done soonest goes first, also before those that run: the least mean completion time
// where durations are known.
#include "platform/scheduling/order.h"

namespace weft::platform {
namespace {

class ShortestRemaining : public Order {
 public:
  const char* name() const override { return "srtf"; }
  bool preempts() const override { return true; }
  double drift() const override { return 1; }
  double Rank(const Workload& workload, double now) const override { return LeftAt(workload, now); }
};

}  // namespace

std::unique_ptr<Order> MakeShortestRemaining() { return std::make_unique<ShortestRemaining>(); }

}  // namespace weft::platform
