// SPDX-License-Identifier: Apache-2.0
// The first elements of a row in the order from the largest down: what the ops that pick the best
// of each row share.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/ops/math/functors.h"

namespace weft::ops::math {

// A number that is smaller where `value` is larger. NaN comes after all numbers; both zeros are
// equal.
template <typename T>
auto DescendingKey(T value) {
  if constexpr (kIsInteger<T>) {
    using Bits = std::make_unsigned_t<T>;
    const Bits sign = std::is_signed_v<T> ? Bits(Bits(1) << (8 * sizeof(T) - 1)) : Bits(0);
    return static_cast<Bits>(~(static_cast<Bits>(value) ^ sign));
  } else {
    using Bits = std::conditional_t<sizeof(Wide<T>) == 4, uint32_t, uint64_t>;
    const Wide<T> wide = value;
    if (wide != wide) return static_cast<Bits>(~Bits(0));
    const Bits bits = std::bit_cast<Bits>(wide + Wide<T>(0));  // the sum has one zero only
    const Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
    return static_cast<Bits>((bits & sign) != 0 ? bits : ~(bits ^ sign));
  }
}

// An element of a row: `key` orders it, and of equal ones the first comes first.
struct WideRank {
  uint64_t key;
  int64_t place;
  int64_t index() const { return place; }
  static WideRank Of(uint64_t key, int64_t place) { return {key, place}; }
  auto operator<=>(const WideRank&) const = default;
};
// The same in one word, for keys and places of 32 bits.
struct NarrowRank {
  uint64_t word;
  int64_t index() const { return static_cast<int64_t>(word & 0xffffffff); }
  static NarrowRank Of(uint32_t key, int64_t place) {
    return {static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(place)};
  }
  auto operator<=>(const NarrowRank&) const = default;
};

// Sorts by the key, a byte at a time from the lowest; elements that are equal keep their order.
inline void SortByBytes(std::vector<NarrowRank>& ranks, std::vector<NarrowRank>& spare) {
  std::array<std::array<uint32_t, 256>, 4> counts{};
  for (const NarrowRank& rank : ranks) {
    for (int byte = 0; byte < 4; ++byte) ++counts[byte][rank.word >> (32 + 8 * byte) & 0xff];
  }
  spare.resize(ranks.size());
  for (int byte = 0; byte < 4; ++byte) {
    const int shift = 32 + 8 * byte;
    std::array<uint32_t, 256>& starts = counts[byte];
    if (starts[ranks[0].word >> shift & 0xff] == ranks.size()) continue;  // all have this byte
    uint32_t start = 0;
    for (uint32_t& count : starts) start += std::exchange(count, start);
    for (const NarrowRank& rank : ranks) spare[starts[rank.word >> shift & 0xff]++] = rank;
    ranks.swap(spare);
  }
}

// Ranks the elements of rows, one row after the other, in memory that it keeps.
class Ranking {
 public:
  // Calls each(i, index) for i below `k`, at most `columns`, with the places of the elements whose
  // keys, key(place), are the least; the least first, of equal ones the first.
  template <typename Key, typename Each>
  void First(int64_t columns, int64_t k, Key&& key, Each&& each) {
    if constexpr (sizeof(key(int64_t{0})) <= 4) {
      if (columns <= int64_t{1} << 32) return Pick(narrow_, columns, k, key, each);
    }
    Pick(wide_, columns, k, key, each);
  }

 private:
  template <typename Rank, typename Key, typename Each>
  void Pick(std::vector<Rank>& ranks, int64_t columns, int64_t k, Key&& key, Each&& each) {
    ranks.resize(static_cast<size_t>(columns));
    for (int64_t i = 0; i < columns; ++i) ranks[i] = Rank::Of(key(i), i);
    Sort(ranks, k);
    for (int64_t i = 0; i < k; ++i) each(i, ranks[i].index());
  }
  template <typename Rank>
  void Sort(std::vector<Rank>& ranks, int64_t k) {
    const auto begin = ranks.begin(), end = ranks.end();
    const auto columns = static_cast<int64_t>(ranks.size());
    if (k < columns / 16) return std::partial_sort(begin, begin + k, end);
    if constexpr (std::is_same_v<Rank, NarrowRank>) {
      // From this size on moving all four times takes less than comparing.
      if (columns >= 256 && columns < int64_t{1} << 32 && k >= columns / 4) {
        return SortByBytes(ranks, spare_);
      }
    }
    if (k < columns) std::nth_element(begin, begin + k, end);
    std::sort(begin, begin + k);
  }

  std::vector<NarrowRank> narrow_, spare_;
  std::vector<WideRank> wide_;
};

}  // namespace weft::ops::math
