// SPDX-License-Identifier: Apache-2.0
#include "platform/search/early_stopping.h"

#include <gtest/gtest.h>

namespace weft::platform {
namespace {

const ExperimentObjective kAccuracy{.maximize = true, .metric = "accuracy"};

TEST(EarlyStoppingTest, TheMedianOfMeansOfTheFirstSteps) {
  const ExperimentAlgorithm median{"medianstop",
                                   {{"min_trials_required", "3"}, {"start_step", "2"}}};
  const std::vector<std::vector<double>> two = {{0.1, 0.3, 0.9}, {0.4, 0.6}};
  EXPECT_TRUE(StoppingRules(median, kAccuracy, two, {}).empty());
  const std::vector<std::vector<double>> three = {{0.1, 0.3, 0.9}, {0.4, 0.6}, {0.8, 0.9, 0.9}};
  const auto rules = StoppingRules(median, kAccuracy, three, {});
  ASSERT_EQ(rules.size(), 1);
  EXPECT_EQ(rules[0].value, 0.5);
  EXPECT_FALSE(Stops(rules[0], {0.1}));  // not yet
  EXPECT_TRUE(Stops(rules[0], {0.1, 0.4}));
  EXPECT_FALSE(Stops(rules[0], {0.6, 0.4}));
  EXPECT_TRUE(Stops(rules[0], {0.1, 0.4, 0.9}));
}

TEST(EarlyStoppingTest, HalvingKeepsTheBestOfEachRung) {
  const ExperimentAlgorithm asha{"asha", {{"eta", "2"}, {"min_resource", "1"}}};
  const std::vector<std::vector<double>> all = {{4, 3}, {3, 2}, {2, 1}, {1}};
  const auto rules = StoppingRules(asha, {.maximize = false, .metric = "loss"}, {}, all);
  ASSERT_EQ(rules.size(), 2);
  EXPECT_EQ(rules[0].value, 2);  // two of four go on
  EXPECT_EQ(rules[0].start_step, 1);
  EXPECT_EQ(rules[1].value, 1);  // one of three
  EXPECT_EQ(rules[1].start_step, 2);
  EXPECT_TRUE(Stops(rules[0], {3}));
  EXPECT_FALSE(Stops(rules[0], {2}));
}

TEST(EarlyStoppingTest, OthersAreRefused) {
  EXPECT_FALSE(CheckEarlyStopping({"magic", {}}).ok());
  EXPECT_FALSE(CheckEarlyStopping({"medianstop", {{"start_step", "0"}}}).ok());
  EXPECT_TRUE(CheckEarlyStopping({"medianstop", {}}).ok());
}

}  // namespace
}  // namespace weft::platform
