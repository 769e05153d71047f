// SPDX-License-Identifier: Apache-2.0
// Who came first goes first.
#include "platform/scheduling/order.h"

namespace weft::platform {
namespace {

class Fifo : public Order {
 public:
  const char* name() const override { return "fifo"; }
  double Rank(const Workload& workload, double /*now*/) const override {
    return workload.submitted;
  }
};

}  // namespace

std::unique_ptr<Order> MakeFifo() { return std::make_unique<Fifo>(); }

}  // namespace weft::platform
