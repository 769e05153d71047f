// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/random/philox_kernel.h"

#include <random>

namespace weft::ops {

GuardedPhilox::GuardedPhilox(const KernelConstruction& k) {
  uint64_t seed = static_cast<uint64_t>(k.AttrOr<int64_t>("seed", 0));
  uint64_t seed2 = static_cast<uint64_t>(k.AttrOr<int64_t>("seed2", 0));
  if (seed == 0 && seed2 == 0) {
    std::random_device entropy;
    seed = uint64_t{entropy()} << 32 | entropy();
    seed2 = uint64_t{entropy()} << 32 | entropy();
  }
  generator_ = Philox(seed, seed2);
}

Philox GuardedPhilox::Reserve(uint64_t steps) {
  absl::MutexLock lock(&mutex_);
  const Philox reserved = generator_;
  generator_.Skip(steps);
  return reserved;
}

}  // namespace weft::ops
