// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(NearestNameTest, FindsWhatWasMeant) {
  const std::vector<std::string> known = {"run", "server", "inspect", "check"};
  EXPECT_EQ(NearestName("rnu", known), "run");
  EXPECT_EQ(NearestName("RUN", known), "run");
  EXPECT_EQ(NearestName("sever", known), "server");
  EXPECT_EQ(NearestName("chekc", known), "check");
  EXPECT_EQ(NearestName("inspectt", known), "inspect");
  EXPECT_EQ(NearestName("train", known), "");
  EXPECT_EQ(NearestName("", known), "");
  EXPECT_EQ(NearestName(std::string(1000, 'x'), known), "");
  EXPECT_EQ(NearestName("run", {}), "");
}

}  // namespace
}  // namespace weft
