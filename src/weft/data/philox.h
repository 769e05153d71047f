// SPDX-License-Identifier: Apache-2.0
// The random numbers of datasets, in TensorFlow's order: Philox 4x32 with 10 rounds, word by word.
#pragma once

#include <array>
#include <cstdint>

#include "weft/data/iterator_context.h"

namespace weft::data {

class RandomWords {
 public:
  RandomWords() = default;
  explicit RandomWords(const Seeds& seeds)
      : counter_{0, 0, static_cast<uint32_t>(seeds.second),
                 static_cast<uint32_t>(seeds.second >> 32)},
        key_{static_cast<uint32_t>(seeds.first), static_cast<uint32_t>(seeds.first >> 32)} {}

  uint32_t Next() {
    if (used_ == 4) {
      Fill();
      used_ = 0;
    }
    return words_[used_++];
  }

 private:
  void Fill() {
    words_ = counter_;
    std::array<uint32_t, 2> key = key_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * words_[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * words_[2];
      words_ = {static_cast<uint32_t>(product1 >> 32) ^ words_[1] ^ key[0],
                static_cast<uint32_t>(product1),
                static_cast<uint32_t>(product0 >> 32) ^ words_[3] ^ key[1],
                static_cast<uint32_t>(product0)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    for (uint32_t& digit : counter_) {
      if (++digit != 0) break;
    }
  }

  std::array<uint32_t, 4> counter_{};
  std::array<uint32_t, 2> key_{};
  std::array<uint32_t, 4> words_{};
  size_t used_ = 4;
};

}  // namespace weft::data
