// SPDX-License-Identifier: Apache-2.0
// Where an index goes in a random order of all of them, without making the order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace weft::data {

// A permutation of 0 to `last`, TensorFlow's own for the same key and rounds: the block cipher
// Simon (Beaulieu et al., 2013) on two words of any number of bits. Thread-safe.
class IndexPermutation {
 public:
  using Key = std::array<uint32_t, 3>;
  // `rounds` is even and at least 4.
  IndexPermutation(const Key& key, uint64_t last, int64_t rounds);
  // Of an index of at most `last`.
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t RotateLeft(uint64_t x, int by) const { return (x << by | x >> (bits_ - by)) & mask_; }
  uint64_t RotateRight(uint64_t x, int by) const { return (x >> by | x << (bits_ - by)) & mask_; }
  uint64_t Mix(uint64_t x) const {
    return (RotateLeft(x, 1) & RotateLeft(x, 8)) ^ RotateLeft(x, 2);
  }
  uint64_t Encrypt(uint64_t value) const;

  const uint64_t last_;
  const int bits_;  // of a word
  const uint64_t mask_;
  std::vector<uint64_t> keys_;
};

}  // namespace weft::data
