// SPDX-License-Identifier: Apache-2.0
// A small world in which users click on items that suit their taste.
#pragma once

#include <random>
#include <vector>

#include "weft/weft.h"

namespace clicks {

inline constexpr int64_t kUsers = 500;
inline constexpr int64_t kItems = 300;

struct Batch {
  std::vector<weft::session::Feed> feeds;  // users, items, clicks
  weft::Tensor clicks;
  int64_t distinct_items = 0;
};

// Every world has the same users and items; the seed says which pairs meet.
class World {
 public:
  explicit World(unsigned seed);
  // `size` meetings of a user with an item.
  Batch Next(int64_t size);

 private:
  std::vector<float> tastes_, looks_;
  std::mt19937 random_;
};

// The part of pairs of a click and no click whose scores are in that order (ties count half).
double Auc(const weft::Tensor& scores, const weft::Tensor& clicks);

}  // namespace clicks
