// SPDX-License-Identifier: Apache-2.0
// Any node that fits: what the other policies are measured against.
#include <memory>
#include <random>

#include "platform/resources/placement.h"

namespace weft::platform {
namespace {

class RandomPlacement : public PlacementPolicy {
 public:
  explicit RandomPlacement(uint64_t seed) : engine_(seed) {}
  const char* name() const override { return "random"; }
  Walk walk() const override { return Walk::kAll; }
  double Score(const ClusterState& /*state*/, int /*number*/, const PodNeeds& /*needs*/,
               const GangProgress& /*gang*/) override {
    return static_cast<double>(engine_() >> 11) * 0x1p-53;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeRandomPlacement(uint64_t seed) {
  return std::make_unique<RandomPlacement>(seed);
}

}  // namespace weft::platform
