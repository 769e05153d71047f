// SPDX-License-Identifier: Apache-2.0
// Policies of order: who comes first. One file each in orders/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "platform/scheduling/workload.h"

namespace weft::platform {

// Among workloads of one priority; a higher priority always goes before. Thread-safe: nothing is
// kept.
class Order {
 public:
  virtual ~Order() = default;
  virtual const char* name() const = 0;
  // The lower the sooner; of equal ones who came first. Does not change while a workload waits.
  virtual double Rank(const Workload& workload, double now) const = 0;
  // Those that run make room for those of a lower rank, not only of a higher priority.
  virtual bool preempts() const { return false; }
  // By how much the ranks of all that run fall in a second. Apart from that they stay as they are
  // until NextChange, so that those that run need not be ranked again for each decision.
  virtual double drift() const { return 0; }
  // Whether NextChange is ever not kForever.
  virtual bool has_changes() const { return false; }
  // When the rank of one that runs passes a step, so that others may now go before it.
  virtual double NextChange(const Workload& /*workload*/, double /*now*/) const { return kForever; }
  // The queue with the least dominant share goes first.
  virtual bool is_fair() const { return false; }
};

std::unique_ptr<Order> MakeFifo();
std::unique_ptr<Order> MakeShortestRemaining();
std::unique_ptr<Order> MakeLeastAttained();
std::unique_ptr<Order> MakeFairShare();

// "fifo", "srtf", "las" or "drf"; InvalidArgument names them.
StatusOr<std::unique_ptr<Order>> MakeOrder(absl::string_view name);
std::vector<std::string> OrderNames();

}  // namespace weft::platform
