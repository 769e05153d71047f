// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

StatusOr<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("Odd: ", x);
  return x / 2;
}

// Both on one line, which no formatter may break: as in a macro.
#define WEFT_ASSIGN_HALVES(x, y)               \
  WEFT_ASSIGN_OR_RETURN(const int a, Half(x)); \
  WEFT_ASSIGN_OR_RETURN(const int b, Half(y))

StatusOr<int> SumOfHalves(int x, int y) {
  WEFT_ASSIGN_HALVES(x, y);
  return a + b;
}

TEST(StatusTest, TwoValuesMayBeAssignedOnOneLine) {
  ASSERT_TRUE(SumOfHalves(4, 6).ok());
  EXPECT_EQ(*SumOfHalves(4, 6), 5);
  EXPECT_EQ(SumOfHalves(3, 6).status(), InvalidArgument("Odd: 3"));
  EXPECT_EQ(SumOfHalves(4, 7).status(), InvalidArgument("Odd: 7"));
}

TEST(StatusTest, AnAnnotationKeepsTheCode) {
  EXPECT_EQ(Annotate(NotFound("no such file"), "a/b"), NotFound("a/b: no such file"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "a/b").ok());
}

}  // namespace
}  // namespace weft
