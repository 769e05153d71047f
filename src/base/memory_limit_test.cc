// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limit.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace weft {
namespace {

class MemoryLimitTest : public ::testing::Test {
 protected:
  // Each test has a folder of its own: they run at the same time, each in a process.
  MemoryLimitTest()
      : folder_(::testing::TempDir() + "memory_limit_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
  }
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  uint64_t Limit() const { return ControlGroupMemoryLimit(folder_ + "/fs", folder_ + "/self"); }

  const std::string folder_;
};

TEST_F(MemoryLimitTest, TheLowestOfAGroupAndThoseThatItLiesInCounts) {
  Write("self", "0::/pods/one\n");
  Write("fs/pods/one/memory.max", "max\n");
  EXPECT_EQ(Limit(), UINT64_MAX);
  Write("fs/pods/memory.max", "3000000000\n");
  EXPECT_EQ(Limit(), 3'000'000'000u);
  Write("fs/pods/one/memory.max", "2000000000\n");
  EXPECT_EQ(Limit(), 2'000'000'000u);
}

TEST_F(MemoryLimitTest, AContainerSeesItsOwnGroupAsTheRoot) {
  Write("self", "0::/\n");
  Write("fs/memory.max", "1048576\n");
  EXPECT_EQ(Limit(), 1'048'576u);
}

TEST_F(MemoryLimitTest, VersionOneIsReadToo) {
  Write("self", "12:cpuset:/\n9:memory:/docker/abc\n");
  Write("fs/memory/docker/abc/memory.limit_in_bytes", "5000000\n");
  EXPECT_EQ(Limit(), 5'000'000u);
}

TEST_F(MemoryLimitTest, NothingSaidIsNoLimit) {
  EXPECT_EQ(Limit(), UINT64_MAX);
  EXPECT_GT(MachineMemory(), uint64_t{1} << 20);
}

}  // namespace
}  // namespace weft
