// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/collective_runner.h"

#include "weft/kernel/device_offer.h"

namespace weft {
namespace {

constexpr char kContainer[] = " collectives";

}  // namespace

void OfferCollectives(Device* device, CollectiveRunner* runner) {
  DeviceOffer<CollectiveRunner>::Make(device, kContainer, "the way to other ranks", runner);
}

CollectiveRunner* CollectivesOf(Device* device) {
  return DeviceOffer<CollectiveRunner>::Find(device, kContainer);
}

}  // namespace weft
