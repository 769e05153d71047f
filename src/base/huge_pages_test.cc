// SPDX-License-Identifier: Apache-2.0
#include "base/huge_pages.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HugePagesTest : public ::testing::Test {
 protected:
  HugePages With(const std::string& own, const std::string& shared) {
    std::ofstream(::testing::TempDir() + "enabled") << own << "\n";
    std::ofstream(::testing::TempDir() + "shmem_enabled") << shared << "\n";
    return HugePagesHere(::testing::TempDir());
  }
};

TEST_F(HugePagesTest, AsTheSystemTells) {
  const HugePages usual =
      With("always [madvise] never", "always within_size advise [never] deny force");
  EXPECT_TRUE(usual.for_own);
  EXPECT_FALSE(usual.for_shared);
  EXPECT_THAT(Describe(usual), HasSubstr("echo advise > /sys/kernel"));
  const HugePages all = With("[always] madvise never", "always within_size [advise] never");
  EXPECT_TRUE(all.for_own && all.for_shared);
  EXPECT_THAT(Describe(all), Not(HasSubstr("echo")));
  const HugePages none = With("always madvise [never]", "always within_size advise never [deny]");
  EXPECT_FALSE(none.for_own || none.for_shared);
  EXPECT_THAT(Describe(none), HasSubstr("echo madvise"));
}

TEST_F(HugePagesTest, NoneWhereTheSystemDoesNotTell) {
  const HugePages unknown = HugePagesHere("/no/such/folder");
  EXPECT_FALSE(unknown.for_own || unknown.for_shared);
}

}  // namespace
}  // namespace weft
