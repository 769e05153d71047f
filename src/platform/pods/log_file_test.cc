// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/log_file.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Time kNow = absl::FromUnixSeconds(1700000000);

class LogFileTest : public ::testing::Test {
 protected:
  LogFileTest() : folder_(absl::StrCat(::testing::TempDir(), "weft-log-", ::getpid())) {
    log_ = LogFile::Open(folder_ + "/a/0.log", [this](const std::string& /*path*/) {
             ++looks_;
             return StatusOr<LogFile::Room>(room_);
           }).value();
  }
  ~LogFileTest() override { std::filesystem::remove_all(folder_); }
  void Print(const std::string& line) { ASSERT_TRUE(log_->Append({line}, kNow).ok()); }
  std::string Text() {
    RealFileSystem files;
    return ReadFile(files, folder_ + "/a/0.log").value();
  }

  const std::string folder_;
  LogFile::Room room_ = {uint64_t{1} << 30, uint64_t{4} << 30};
  int looks_ = 0;
  std::unique_ptr<LogFile> log_;
};

TEST_F(LogFileTest, HasTimes) {
  ASSERT_TRUE(log_->Append({"one", "to be overwritten\r", "two"}, kNow).ok());
  EXPECT_EQ(Text(), "2023-11-14T22:13:20.000000Z one\n2023-11-14T22:13:20.000000Z two\n");
  EXPECT_EQ(looks_, 0);
}

TEST_F(LogFileTest, LeavesRoomOnItsDisk) {
  const std::string much(100 << 10, 'x');
  Print(much);
  EXPECT_EQ(looks_, 1);
  room_.free = uint64_t{63} << 20;
  Print(much);
  Print("unseen");
  EXPECT_THAT(Text(), HasSubstr("[weft] The log stops here until its disk has more room: 63 of "));
  EXPECT_THAT(Text(), Not(HasSubstr("unseen")));
  EXPECT_LT(Text().size(), much.size() + 200);
  // Not by a hair.
  room_.free = uint64_t{65} << 20;
  Print(much);
  EXPECT_THAT(Text(), Not(HasSubstr("are missing here")));
  room_.free = uint64_t{100} << 20;
  Print(much);
  EXPECT_THAT(Text(), HasSubstr("bytes are missing here: the disk had too little room"));
  Print("seen again");
  EXPECT_THAT(Text(), HasSubstr("seen again"));
  EXPECT_GT(Text().size(), 2 * much.size());
}

TEST_F(LogFileTest, LeavesAQuarterOfASmallDisk) {
  room_ = {uint64_t{3} << 20, uint64_t{8} << 20};
  Print(std::string(100 << 10, 'x'));
  EXPECT_THAT(Text(), Not(HasSubstr("[weft]")));
  room_.free = uint64_t{1} << 20;
  Print(std::string(100 << 10, 'x'));
  EXPECT_THAT(Text(), HasSubstr("[weft] The log stops here until its disk has more room: 1 of 8 "));
}

TEST_F(LogFileTest, SeesRealDisks) {
  const StatusOr<LogFile::Room> room = LogFile::FindRoom(folder_);
  ASSERT_TRUE(room.ok()) << room.status();
  EXPECT_GT(room->whole, 0u);
  EXPECT_LE(room->free, room->whole);
  EXPECT_FALSE(LogFile::FindRoom(folder_ + "/none").ok());
}

}  // namespace
}  // namespace weft::platform
