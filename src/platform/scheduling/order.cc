// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/order.h"

#include "absl/strings/str_join.h"

namespace weft::platform {

std::vector<std::string> OrderNames() { return {"fifo", "srtf", "las", "drf"}; }

StatusOr<std::unique_ptr<Order>> MakeOrder(absl::string_view name) {
  if (name == "fifo") return MakeFifo();
  if (name == "srtf") return MakeShortestRemaining();
  if (name == "las") return MakeLeastAttained();
  if (name == "drf") return MakeFairShare();
  return InvalidArgument("There is no order '", name, "'; there are ",
                         absl::StrJoin(OrderNames(), ", "));
}

}  // namespace weft::platform
