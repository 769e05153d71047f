// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/memory_plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace weft::compile {
namespace {

TEST(MemoryPlanTest, NothingNeedsNothing) { EXPECT_EQ(PlanMemory({}).total, 0u); }

TEST(MemoryPlanTest, AChainNeedsTwoBuffers) {
  std::vector<Lifetime> chain;
  for (int i = 0; i < 50; ++i) chain.push_back({i, i + 1, 1000});
  EXPECT_EQ(PlanMemory(chain).total, 2 * 1024u);
}

TEST(MemoryPlanTest, WhatLivesTogetherLiesApart) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(random() % 60);
      lifetimes.push_back({first, first + static_cast<int>(random() % 20), random() % 5000});
    }
    const MemoryPlan plan = PlanMemory(lifetimes);
    size_t most_alive = 0;
    size_t sum = 0;
    for (int at = 0; at < 80; ++at) {
      size_t alive = 0;
      for (const Lifetime& one : lifetimes)
        alive += one.first <= at && at <= one.last ? one.bytes : 0;
      most_alive = std::max(most_alive, alive);
    }
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      sum += (lifetimes[i].bytes + 63) / 64 * 64;
      EXPECT_EQ(plan.offsets[i] % 64, 0u);
      EXPECT_LE(plan.offsets[i] + lifetimes[i].bytes, plan.total);
      for (size_t j = 0; j < i; ++j) {
        if (!lifetimes[i].Meets(lifetimes[j])) continue;
        EXPECT_TRUE(plan.offsets[i] + lifetimes[i].bytes <= plan.offsets[j] ||
                    plan.offsets[j] + lifetimes[j].bytes <= plan.offsets[i]);
      }
    }
    EXPECT_GE(plan.total, most_alive);
    EXPECT_LE(plan.total, sum);
  }
}

}  // namespace
}  // namespace weft::compile
