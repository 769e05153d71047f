// SPDX-License-Identifier: Apache-2.0
#include "base/memory_files.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(MemoryFilesTest, WritesReadsListsRenamesAndDeletes) {
  MemoryFileSystem disk;
  EXPECT_TRUE(absl::IsNotFound(WriteFile(disk, "a/one", "1")));
  ASSERT_TRUE(disk.MakeDirectories("/a//b/.").ok());
  ASSERT_TRUE(WriteFile(disk, "a/two", "22").ok());
  ASSERT_TRUE(WriteFile(disk, "/a/one", "1").ok());
  EXPECT_EQ(ReadFile(disk, "a/./one").value(), "1");
  EXPECT_THAT(disk.List("a").value(), ElementsAre("b", "one", "two"));
  EXPECT_THAT(disk.List("/").value(), ElementsAre("a"));
  ASSERT_TRUE(disk.Rename("a/one", "a/two").ok());
  EXPECT_TRUE(absl::IsNotFound(disk.Stat("a/one").status()));
  EXPECT_EQ(disk.Stat("a/two").value().size_bytes, 1u);
  EXPECT_TRUE(disk.Stat("a").value().is_directory);
  EXPECT_EQ(disk.Delete("a").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(disk.Delete("a/two").ok());
  EXPECT_TRUE(disk.Delete("a/b").ok());
  EXPECT_TRUE(disk.Delete("a").ok());
}

TEST(MemoryFilesTest, APowerCutTakesWhatWasNotSynced) {
  MemoryFileSystem disk;
  ASSERT_TRUE(WriteFile(disk, "unsynced", "lost").ok());
  ASSERT_TRUE(WriteFileAtomically(disk, "atomic", "kept").ok());
  auto file = disk.OpenWrite("half", WriteMode::kTruncate).value();
  ASSERT_TRUE(file->Append("kept").ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Append(" lost").ok());
  ASSERT_TRUE(disk.SyncDirectory(".").ok());
  ASSERT_TRUE(disk.Rename("half", "renamed").ok());
  ASSERT_TRUE(WriteFile(disk, "nameless", "lost").ok());
  disk.LosePower();
  EXPECT_THAT(disk.List(".").value(), ElementsAre("atomic", "half", "unsynced"));
  EXPECT_EQ(ReadFile(disk, "atomic").value(), "kept");
  EXPECT_EQ(ReadFile(disk, "half").value(), "kept");
  EXPECT_EQ(ReadFile(disk, "unsynced").value(), "");
}

}  // namespace
}  // namespace weft
