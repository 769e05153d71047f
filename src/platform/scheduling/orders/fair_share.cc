// SPDX-License-Identifier: Apache-2.0
// The queue goes first whose greatest part of any one resource is the smallest (dominant resource
// fairness, NSDI 2011), by its weight; within a queue by arrival.
#include "platform/scheduling/order.h"

namespace weft::platform {
namespace {

class FairShare : public Order {
 public:
  const char* name() const override { return "drf"; }
  bool is_fair() const override { return true; }
  double Rank(const Workload& workload, double /*now*/) const override {
    return workload.submitted;
  }
};

}  // namespace

std::unique_ptr<Order> MakeFairShare() { return std::make_unique<FairShare>(); }

}  // namespace weft::platform
