// SPDX-License-Identifier: Apache-2.0
#include "weft/data/index_permutation.h"

#include <algorithm>
#include <cmath>

namespace weft::data {
namespace {

// Half of the bits that hold all numbers up to `last`, 8 at least.
int WordBits(uint64_t last) {
  constexpr int kLeastBits = 16;
  const int bits = static_cast<int>(std::ceil(std::log2(static_cast<double>(last))));
  return std::min(64, std::max(bits + bits % 2, kLeastBits)) / 2;
}

}  // namespace

IndexPermutation::IndexPermutation(const Key& key, uint64_t last, int64_t rounds)
    : last_(last), bits_(WordBits(last)), mask_((uint64_t{1} << bits_) - 1) {
  for (const uint32_t part : key) keys_.push_back(part & mask_);
  constexpr uint64_t kConstant = 0xfffffffc;
  uint64_t sequence = 0x7369f885192c0ef5 & mask_;
  for (size_t i = 3; i < static_cast<size_t>(rounds); ++i, sequence >>= 1) {
    keys_.push_back(((kConstant & mask_) ^ (sequence & 1)) ^ keys_[i - 3] ^
                    RotateRight(keys_[i - 1], 3) ^ RotateRight(keys_[i - 1], 4));
  }
}

uint64_t IndexPermutation::Encrypt(uint64_t value) const {
  uint64_t left = value >> bits_ & mask_, right = value & mask_;
  for (size_t i = 0; i + 1 < keys_.size(); i += 2) {
    left ^= Mix(right) ^ keys_[i];
    right ^= Mix(left) ^ keys_[i + 1];
  }
  return left << bits_ | right;
}

uint64_t IndexPermutation::operator()(uint64_t index) const {
  if (last_ == 0) return 0;
  // Numbers beyond the last one are encrypted again until one is not.
  do {
    index = Encrypt(index);
  } while (index > last_);
  return index;
}

}  // namespace weft::data
