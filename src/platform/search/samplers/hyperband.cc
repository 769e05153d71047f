// SPDX-License-Identifier: Apache-2.0
// Hyperband: brackets of random configurations, halved again and again.
#include "platform/search/halving_schedule.h"

namespace weft::platform {

MadeSampler MakeHyperband(const SearchSpace& space, const SamplerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Budget budget, ReadBudget(space, options));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> fresh, MakeRandom(space, options));
  return std::make_unique<HalvingSchedule>(std::move(budget), std::move(fresh));
}

}  // namespace weft::platform
