// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/collective_runner.h"

namespace weft {
namespace {

constexpr char kContainer[] = " collectives";  // clients' containers begin with a letter or a digit

class Offer final : public Resource {
 public:
  explicit Offer(CollectiveRunner* runner) : runner_(runner) {}
  std::string DebugString() const override { return "the way to other ranks"; }
  CollectiveRunner* runner() const { return runner_; }

 private:
  CollectiveRunner* const runner_;
};

}  // namespace

void OfferCollectives(Device* device, CollectiveRunner* runner) {
  device->resources()
      .LookupOrCreate<Offer>(kContainer, "",
                             [&]() -> StatusOr<Ref<Offer>> { return MakeRef<Offer>(runner); })
      .IgnoreError();
}

CollectiveRunner* CollectivesOf(Device* device) {
  StatusOr<Ref<Offer>> found = device->resources().Lookup<Offer>(kContainer, "");
  return found.ok() ? (*found)->runner() : nullptr;
}

}  // namespace weft
