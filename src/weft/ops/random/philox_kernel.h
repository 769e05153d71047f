// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox 4x32 with 10 rounds (Salmon et al., 2011), and its use in
// TensorFlow's order, so that seeded programs see the numbers they know.
#pragma once

#include <array>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/op_kernel.h"

namespace weft::ops {

// A 128-bit counter under a 64-bit key; each step gives four words. Copies are independent.
class Philox {
 public:
  using Words = std::array<uint32_t, 4>;

  Philox() = default;
  Philox(uint64_t seed, uint64_t seed2)
      : counter_{0, 0, static_cast<uint32_t>(seed2), static_cast<uint32_t>(seed2 >> 32)},
        key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}
  Philox(const Words& counter, const std::array<uint32_t, 2>& key) : counter_(counter), key_(key) {}

  void Skip(uint64_t steps) {
    const uint64_t low = (uint64_t{counter_[1]} << 32 | counter_[0]) + steps;
    if (low < steps && ++counter_[2] == 0) ++counter_[3];
    counter_[0] = static_cast<uint32_t>(low);
    counter_[1] = static_cast<uint32_t>(low >> 32);
  }

  Words Next() {
    Words words = counter_;
    std::array<uint32_t, 2> key = key_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * words[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * words[2];
      words = {static_cast<uint32_t>(product1 >> 32) ^ words[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ words[3] ^ key[1],
               static_cast<uint32_t>(product0)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    Skip(1);
    return words;
  }

 private:
  Words counter_{};
  std::array<uint32_t, 2> key_{};
};

// The words one by one.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& generator) : generator_(generator) {}
  uint32_t Next() {
    if (used_ == 4) {
      words_ = generator_.Next();
      used_ = 0;
    }
    return words_[used_++];
  }

 private:
  Philox generator_;
  Philox::Words words_{};
  int used_ = 4;
};

// A kernel's generator: attributes seed and seed2, both 0 for a seed of its own. Each call reserves
// steps, so that the next call goes on where this one ends. Thread-safe.
class GuardedPhilox {
 public:
  explicit GuardedPhilox(const KernelConstruction& k);
  // The generator as it stands; afterwards it stands `steps` further.
  Philox Reserve(uint64_t steps);

 private:
  absl::Mutex mutex_;
  Philox generator_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::ops
