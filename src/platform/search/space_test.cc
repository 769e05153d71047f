// SPDX-License-Identifier: Apache-2.0
#include "platform/search/space.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

TEST(SpaceTest, ReadsAllForms) {
  const auto space = ParseSearchSpace(
      "lr=log(1e-4,1e-1) layers=2..5 width=16..128/16 rate=0.1..0.5 optimizer={sgd, adam,ftrl}");
  ASSERT_TRUE(space.ok()) << space.status();
  const auto& p = space->parameters;
  ASSERT_EQ(p.size(), 5);
  EXPECT_TRUE(p[0].logarithmic);
  EXPECT_EQ(p[0].size(), 0);
  EXPECT_NEAR(p[0].FromUnit(1.0 / 3), 1e-3, 1e-9);
  EXPECT_EQ(p[1].size(), 4);
  EXPECT_EQ(p[1].FromUnit(0), 2);
  EXPECT_EQ(p[1].FromUnit(1), 5);
  EXPECT_EQ(p[2].size(), 8);
  EXPECT_EQ(p[2].FromUnit(0.99), 128);
  EXPECT_EQ(p[3].Format(p[3].FromUnit(0.5)), "0.3");
  EXPECT_EQ(p[4].Format(p[4].FromUnit(0.5)), "adam");
  EXPECT_EQ(p[4].Parse("ftrl").value(), 2);
}

TEST(SpaceTest, EveryValueIsReadBackAsItIsWritten) {
  const auto space = ParseSearchSpace("a=log(1e-8,10) b=-5..5 c=0..1/0.1 d={x,y} e=log(1,1000)");
  ASSERT_TRUE(space.ok()) << space.status();
  for (const SearchParameter& p : space->parameters) {
    for (int i = 0; i <= 100; ++i) {
      const double value = p.FromUnit(i / 100.0);
      const auto back = p.Parse(p.Format(value));
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, value) << p.name;
      EXPECT_NEAR(p.FromUnit(p.ToUnit(value)), value, 1e-9 * std::abs(value)) << p.name;
    }
  }
}

TEST(SpaceTest, WhatIsNotUnderstoodIsNamed) {
  const std::pair<const char*, const char*> texts[] = {{"", "no parameter"},
                                                       {"lr", "'lr' is no parameter"},
                                                       {"lr=3", "no range"},
                                                       {"lr=2..x", "'x' is no number"},
                                                       {"lr=5..2", "larger"},
                                                       {"lr=log(0,1)", "above 0"},
                                                       {"lr=log(1)", "a low and a high"},
                                                       {"o={a,,b}", "empty choice"},
                                                       {"o={a,a}", "twice"},
                                                       {"n=1..5/0", "not positive"},
                                                       {"n=1..1e400", "no number"},
                                                       {"a=1..2 a=1..2", "'a' stands twice"},
                                                       {"n=0..99999999999999999", "2^53"}};
  for (const auto& [text, words] : texts) {
    const auto space = ParseSearchSpace(text);
    ASSERT_FALSE(space.ok()) << text;
    EXPECT_THAT(std::string(space.status().message()), HasSubstr(words));
  }
}

}  // namespace
}  // namespace weft::platform
