// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/faulty_files.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "weft-files-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string In(const std::string& name) const { return JoinPath(folder_, name); }

  std::string folder_;
  RealFileSystem disk_;
};

TEST_F(FilesTest, WritesReadsListsRenamesAndDeletes) {
  ASSERT_TRUE(disk_.MakeDirectories(In("a/b//c/")).ok());
  ASSERT_TRUE(disk_.MakeDirectories(In("a/b/c")).ok());
  ASSERT_TRUE(WriteFile(disk_, In("a/two"), "22").ok());
  ASSERT_TRUE(WriteFile(disk_, In("a/one"), std::string("1\0x", 3)).ok());
  EXPECT_EQ(ReadFile(disk_, In("a/one")).value(), std::string("1\0x", 3));
  EXPECT_THAT(disk_.List(In("a")).value(), ElementsAre("b", "one", "two"));
  ASSERT_TRUE(disk_.Rename(In("a/one"), In("a/two")).ok());
  EXPECT_EQ(disk_.Stat(In("a/two")).value().size_bytes, 3u);
  EXPECT_TRUE(disk_.Stat(In("a")).value().is_directory);
  EXPECT_EQ(disk_.Delete(In("a")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(disk_.Delete(In("a/two")).ok());
  EXPECT_TRUE(disk_.Delete(In("a/b/c")).ok());
}

TEST_F(FilesTest, AppendsAndReadsAtOffsets) {
  ASSERT_TRUE(WriteFile(disk_, In("f"), "abc").ok());
  auto file = disk_.OpenWrite(In("f"), WriteMode::kAppend).value();
  ASSERT_TRUE(file->Append("def").ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(file->Append("x").code(), absl::StatusCode::kFailedPrecondition);
  char buffer[4];
  const auto reader = disk_.OpenRead(In("f")).value();
  EXPECT_EQ(reader->ReadAt(4, absl::MakeSpan(buffer)).value(), 2u);
  EXPECT_EQ(reader->ReadAt(6, absl::MakeSpan(buffer)).value(), 0u);
  EXPECT_EQ(reader->ReadAt(1000, absl::MakeSpan(buffer)).value(), 0u);
}

TEST_F(FilesTest, ErrorsNameThePath) {
  const Status missing = disk_.OpenRead(In("nothing")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(In("nothing")));
  ASSERT_TRUE(WriteFile(disk_, In("f"), "abc").ok());
  EXPECT_EQ(disk_.MakeDirectories(In("f/g")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadFile(disk_, In("f"), 2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(disk_, In("f"), 3).value(), "abc");
  EXPECT_EQ(ReadFile(disk_, folder_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(FilesTest, AnAtomicWriteThatFailsAnywhereLeavesTheOldFileAndNothingElse) {
  FaultyFileSystem faulty(&disk_);
  ASSERT_TRUE(WriteFileAtomically(faulty, In("f"), "old").ok());
  const int64_t calls = faulty.calls();
  ASSERT_EQ(calls, 6);  // create, append, sync, close, rename, sync of the folder
  for (int64_t nth = 1; nth < calls; ++nth) {
    faulty.FailCall(nth, DataLoss("bad sector"));
    EXPECT_EQ(WriteFileAtomically(faulty, In("f"), "new").code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(ReadFile(disk_, In("f")).value(), "old") << nth;
    EXPECT_THAT(disk_.List(folder_).value(), ElementsAre("f")) << nth;
  }
}

TEST_F(FilesTest, AFullDiskIsResourceExhausted) {
  FaultyFileSystem faulty(&disk_);
  faulty.LimitBytes(2);
  const Status status = WriteFile(faulty, In("f"), "abc");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(disk_, In("f")).value(), "ab");
}

TEST_F(FilesTest, WhatIsWrittenThroughToTheDiskIsWhatWasAppended) {
  // On a disk and where no file goes past the page cache; a piece of the writer has 4 MB.
  for (const std::string& path :
       {In("through"), absl::StrCat("/dev/shm/weft-through-", getpid())}) {
    std::string wanted;
    auto file = disk_.OpenWrite(path, WriteMode::kThrough).value();
    size_t bytes = 1;
    for (int i = 0; i < 40; ++i) {
      std::string part(i == 20 ? 0 : bytes, static_cast<char>('a' + i % 26));
      part.append(absl::StrCat(i));
      ASSERT_TRUE(file->Append(part).ok());
      wanted += part;
      bytes = (bytes * 5 + 3) % 3000017;
      if (i % 11 == 3) {
        ASSERT_TRUE(file->Sync().ok());
        ASSERT_EQ(ReadFile(disk_, path).value(), wanted) << i;
      }
    }
    ASSERT_GT(wanted.size(), size_t{5} << 22);
    ASSERT_TRUE(file->Close().ok());
    EXPECT_TRUE(ReadFile(disk_, path).value() == wanted);
    EXPECT_EQ(file->Append("x").code(), absl::StatusCode::kFailedPrecondition);
    // Shorter now, and given up half way, which waits for nothing.
    ASSERT_TRUE(WriteFile(disk_, path, "short").ok());
    file = disk_.OpenWrite(path, WriteMode::kThrough).value();
    ASSERT_TRUE(file->Append(wanted).ok());
    file = nullptr;
    ASSERT_TRUE(disk_.Delete(path).ok());
  }
}

TEST_F(FilesTest, AFullDiskIsToldByTheFileThatIsWrittenThrough) {
  const std::string much(size_t{30} << 20, 'x');
  auto file = disk_.OpenWrite("/dev/full", WriteMode::kThrough).value();
  Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = file->Append(much);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
  EXPECT_EQ(file->Sync().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(file->Close().code(), absl::StatusCode::kResourceExhausted);
  // A file of a few bytes has no thread; it fails all the same.
  file = disk_.OpenWrite("/dev/full", WriteMode::kThrough).value();
  ASSERT_TRUE(file->Append("x").ok());
  EXPECT_EQ(file->Close().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FilesTest, StickyFaultsStay) {
  FaultyFileSystem faulty(&disk_);
  faulty.FailCall(2, Unavailable("gone"), /*sticky=*/true);
  EXPECT_TRUE(faulty.List(folder_).ok());
  EXPECT_FALSE(faulty.List(folder_).ok());
  EXPECT_FALSE(faulty.Stat(folder_).ok());
}

TEST_F(FilesTest, NobodyWaitsForTheOtherEndOfAPipe) {
  ASSERT_EQ(::mkfifo(In("pipe").c_str(), 0600), 0);
  const std::unique_ptr<FileSystem> rooted = RootedFileSystem::Create(folder_).value();
  for (FileSystem* files : {static_cast<FileSystem*>(&disk_), rooted.get()}) {
    const Status read = ReadFile(*files, In("pipe")).status();
    EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.message()), HasSubstr("it is a pipe"));
    EXPECT_FALSE(files->OpenWrite(In("pipe"), WriteMode::kAppend).ok());
  }
}

TEST_F(FilesTest, ReadsFilesThatDoNotKnowTheirSize) {
  EXPECT_GT(ReadFile(disk_, "/proc/sys/net/ipv4/ip_local_port_range", 64).value().size(), 3u);
}

TEST_F(FilesTest, JoinsAndSplitsPaths) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(ParentPath("a/b"), "a");
  EXPECT_EQ(ParentPath("/b"), "/");
  EXPECT_EQ(ParentPath("b"), ".");
}

// With openat2 and with the walk that stands in for it.
class RootedFilesTest : public FilesTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    FilesTest::SetUp();
    ASSERT_TRUE(disk_.MakeDirectories(In("root/sub")).ok());
    ASSERT_TRUE(WriteFile(disk_, In("secret"), "s").ok());
    std::filesystem::create_symlink(In("secret"), In("root/absolute_link"));
    std::filesystem::create_symlink("../secret", In("root/relative_link"));
    std::filesystem::create_directory_symlink(folder_, In("root/folder_link"));
    rooted_ = RootedFileSystem::Create(In("root"), GetParam()).value();
  }
  std::unique_ptr<RootedFileSystem> rooted_;
};
INSTANTIATE_TEST_SUITE_P(Ways, RootedFilesTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Walk" : "Openat2"; });

TEST_P(RootedFilesTest, WorksInside) {
  ASSERT_TRUE(rooted_->MakeDirectories("x/y").ok());
  ASSERT_TRUE(rooted_->MakeDirectories("x/y").ok());
  ASSERT_TRUE(WriteFileAtomically(*rooted_, "x/y/f", "data").ok());
  EXPECT_EQ(ReadFile(disk_, In("root/x/y/f")).value(), "data");
  EXPECT_EQ(ReadFile(*rooted_, In("root/x/y/f")).value(), "data");
  EXPECT_EQ(ReadFile(*rooted_, "./x//y/f").value(), "data");
  EXPECT_THAT(rooted_->List("x/y").value(), ElementsAre("f"));
  ASSERT_TRUE(rooted_->Rename("x/y/f", "sub/g").ok());
  EXPECT_EQ(rooted_->Stat("sub/g").value().size_bytes, 4u);
  ASSERT_TRUE(rooted_->Delete("sub/g").ok());
  ASSERT_TRUE(rooted_->Delete("x/y").ok());
  EXPECT_THAT(rooted_->List("x").value(), IsEmpty());
  EXPECT_EQ(rooted_->OpenRead("x/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(rooted_->Stat(".").value().is_directory);
}

TEST_P(RootedFilesTest, RefusesEveryWayOut) {
  for (const std::string& path :
       {std::string("../secret"), std::string("sub/../../secret"), In("secret"),
        std::string("/etc/passwd"), std::string("absolute_link"), std::string("relative_link"),
        std::string("folder_link/secret"), In("root/../secret"), In("rootless")}) {
    const Status read = ReadFile(*rooted_, path).status();
    EXPECT_EQ(read.code(), absl::StatusCode::kPermissionDenied) << path << ": " << read;
    EXPECT_THAT(std::string(read.message()), HasSubstr(path));
    EXPECT_FALSE(WriteFile(*rooted_, path, "x").ok()) << path;
    EXPECT_FALSE(rooted_->Stat(path).ok()) << path;
  }
  EXPECT_EQ(rooted_->Rename("sub", "../out").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(rooted_->Rename("folder_link/secret", "mine").ok());
  EXPECT_FALSE(rooted_->Delete("folder_link/secret").ok());
  EXPECT_FALSE(rooted_->MakeDirectories("folder_link/new").ok());
  EXPECT_EQ(rooted_->Delete(".").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(*rooted_, std::string("a\0b", 3)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(disk_, In("secret")).value(), "s");
}

TEST_F(FilesTest, ARootOfSlashIsEverything) {
  const auto rooted = RootedFileSystem::Create("/").value();
  ASSERT_TRUE(WriteFile(*rooted, In("f"), "x").ok());
  EXPECT_EQ(ReadFile(*rooted, In("f")).value(), "x");
}

TEST_F(FilesTest, AMissingRootIsAnError) {
  EXPECT_EQ(RootedFileSystem::Create(In("none")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace weft
