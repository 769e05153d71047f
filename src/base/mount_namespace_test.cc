// SPDX-License-Identifier: Apache-2.0
#include "base/mount_namespace.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/files.h"
#include "base/subprocess.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using Kind = MountStep::Kind;
using Way = MountNamespace::Way;

class MountNamespaceTest : public ::testing::TestWithParam<Way> {
 protected:
  MountNamespaceTest() : folder_(absl::StrCat(::testing::TempDir(), "weft-mounts-", ::getpid())) {
    std::filesystem::create_directories(folder_ + "/new");
    std::filesystem::create_directories(folder_ + "/data");
    RealFileSystem files;
    EXPECT_TRUE(WriteFile(files, folder_ + "/data/file", "content\n").ok());
  }
  ~MountNamespaceTest() override { std::filesystem::remove_all(folder_); }

  // What the script prints, and its exit code, in the namespace.
  std::string Run(const MountNamespace* mounts, const std::string& script,
                  const std::string& directory = "/") {
    SpawnOptions options;
    options.argv = {"sh", "-c",
                    "(" + script + ") >" + folder_ + "/out 2>&1; echo $? >>" + folder_ + "/out"};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.working_directory = directory;
    options.mounts = mounts;
    const auto process = Subprocess::Spawn(options);
    if (!process.ok()) return std::string(process.status().message());
    EXPECT_TRUE((*process)->Wait(absl::Seconds(60)).ok());
    RealFileSystem files;
    return ReadFile(files, folder_ + "/out").value_or("");
  }
  bool IsThere() const {
    // Where even a user namespace is refused there is nothing to hold; doctor tells the person.
    return MountNamespace::Probe().way == Way::kPlain ||
           (GetParam() == Way::kUser && MountNamespace::Probe().way == Way::kUser);
  }

  const std::string folder_;
};

TEST_P(MountNamespaceTest, ShowsAFolderElsewhereToThoseInIt) {
  if (!IsThere()) {
    EXPECT_FALSE(MountNamespace::Make({}, GetParam()).ok());
    return;
  }
  const std::string root = folder_ + "/new";
  const auto mounts = MountNamespace::Make({{Kind::kBind, root, "/"},
                                            {Kind::kHide, root},
                                            {Kind::kBind, root + "/mnt", folder_ + "/data"},
                                            {Kind::kSeal, root + "/mnt"},
                                            {Kind::kRoot, root}},
                                           GetParam());
  ASSERT_TRUE(mounts.ok()) << mounts.status();
  EXPECT_EQ(Run(mounts->get(), "cat file", "/mnt"), "content\n0\n");
  EXPECT_THAT(Run(mounts->get(), "touch /mnt/other"), HasSubstr("Read-only file system"));
  EXPECT_FALSE(std::filesystem::exists("/mnt/file"));
  // A copy of it has what it has.
  const auto copy =
      MountNamespace::Make({{Kind::kBind, "/mnt", folder_ + "/new"}}, GetParam(), mounts->get());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(Run(copy->get(), "ls /mnt"), "0\n");
  EXPECT_EQ(Run(mounts->get(), "ls /mnt"), "file\n0\n");
}

TEST_P(MountNamespaceTest, BoundsMemory) {
  if (!IsThere()) return;
  const auto mounts =
      MountNamespace::Make({{Kind::kMemory, folder_ + "/data", "", 0777, 1 << 20}}, GetParam());
  ASSERT_TRUE(mounts.ok()) << mounts.status();
  EXPECT_THAT(Run(mounts->get(), "head -c 2m /dev/zero >" + folder_ + "/data/big"),
              HasSubstr("No space left"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/data/file"));
}

TEST_P(MountNamespaceTest, NamesTheStepThatFails) {
  if (!IsThere()) return;
  const Status status =
      MountNamespace::Make({{Kind::kBind, folder_ + "/new", folder_ + "/none"}}, GetParam())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_ + "/none' at '"));
  EXPECT_EQ(Run(nullptr, "pwd"), "/\n0\n");
}

TEST_P(MountNamespaceTest, SaysWhatCannotStartInIt) {
  if (!IsThere()) return;
  const auto mounts = MountNamespace::Make({}, GetParam());
  ASSERT_TRUE(mounts.ok()) << mounts.status();
  EXPECT_THAT(Run(mounts->get(), "true", "/no-such-folder"),
              HasSubstr("use the working directory '/no-such-folder'"));
  SpawnOptions options;
  options.argv = {"no-such-program"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.mounts = mounts->get();
  EXPECT_EQ(Subprocess::Spawn(options).status().message(),
            "There is no program 'no-such-program' in PATH /usr/bin:/bin");
}

INSTANTIATE_TEST_SUITE_P(Ways, MountNamespaceTest, ::testing::Values(Way::kPlain, Way::kUser),
                         [](const auto& way) {
                           return way.param == Way::kPlain ? "Plain" : "User";
                         });

TEST(SubprocessOwnerTest, HasTheRightsOfItsOwner) {
  SpawnOptions options;
  options.argv = {"sh", "-c", "test $(id -u):$(id -g) = 1234:1235 && id -G | grep -qw 1236"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.owner = ProcessOwner{1234, 1235, {1236}};
  const auto process = Subprocess::Spawn(options);
  if (::geteuid() != 0) {
    EXPECT_THAT(std::string(process.status().message()), HasSubstr("become 'user 1234'"));
    return;
  }
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ((*process)->Wait(absl::Seconds(60)).value(), (ExitState{0, 0}));
}

}  // namespace
}  // namespace weft
