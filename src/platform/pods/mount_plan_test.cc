// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/mount_plan.h"

#include <filesystem>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/files.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using Kind = MountStep::Kind;

class MountPlanTest : public ::testing::Test {
 protected:
  MountPlanTest()
      : folder_(std::filesystem::canonical(::testing::TempDir()).string() + "/weft-plan-" +
                std::to_string(::getpid())) {
    for (const char* name : {"source", "there", "real/inner"})
      std::filesystem::create_directories(absl::StrCat(folder_, "/", name));
    std::filesystem::create_symlink(folder_ + "/real", folder_ + "/link");
    RealFileSystem files;
    EXPECT_TRUE(WriteFile(files, folder_ + "/file", "").ok());
  }
  ~MountPlanTest() override { std::filesystem::remove_all(folder_); }

  // Each step as "kind target source", without the folder of the test.
  std::vector<std::string> Plan(const std::vector<Placement>& placements) {
    const auto steps = PlanMounts(placements, "/new");
    if (!steps.ok()) return {std::string(steps.status().message())};
    std::vector<std::string> words;
    static constexpr const char* kNames[] = {"folder", "file", "link", "bind",
                                             "memory", "seal", "hide", "root"};
    for (const MountStep& step : *steps) {
      std::string line =
          absl::StrCat(kNames[static_cast<int>(step.kind)], " ", step.target, " ", step.source);
      for (size_t at; (at = line.find(folder_)) != std::string::npos;)
        line.replace(at, folder_.size(), "T");
      words.push_back(line);
    }
    return words;
  }
  Placement To(const std::string& target, const std::string& source = "source") {
    return {.source = absl::StrCat(folder_, "/", source), .target = target};
  }

  const std::string folder_;
};

TEST_F(MountPlanTest, CoversAFolderThatIsThere) {
  Placement placement = To(folder_ + "/there/");
  placement.is_read_only = true;
  EXPECT_THAT(Plan({placement}),
              ::testing::ElementsAre("bind /new /", "hide /new ", "bind /newT/there T/source",
                                     "seal /newT/there ", "root /new "));
}

TEST_F(MountPlanTest, HollowsTheFolderInWhichAPlaceIsMissing) {
  const auto steps = Plan({To(folder_ + "/link/a/b"), To(folder_ + "/real/a/c")});
  EXPECT_THAT(
      steps, ::testing::ElementsAre(
                 "bind /new /", "hide /new ", "memory /newT/real ", "folder /newT/real/inner ",
                 "bind /newT/real/inner T/real/inner", "folder /newT/real/a ",
                 "folder /newT/real/a/b ", "bind /newT/real/a/b T/source", "folder /newT/real/a/c ",
                 "bind /newT/real/a/c T/source", "root /new "));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/real/a"));
}

TEST_F(MountPlanTest, ShowsTheWholeRootWhereAPlaceInItIsMissing) {
  const auto steps = Plan({To("/weft-no-such-folder")});
  EXPECT_EQ(steps[0], "memory /new ");
  EXPECT_THAT(steps, ::testing::Contains("bind /new/proc /proc"));
  EXPECT_THAT(steps, ::testing::Contains("bind /new/weft-no-such-folder T/source"));
  EXPECT_FALSE(std::filesystem::exists("/weft-no-such-folder"));
}

TEST_F(MountPlanTest, MakesPlacesWithinOtherVolumes) {
  // In whatever order they are written.
  EXPECT_EQ(Plan({To(folder_ + "/there/x/y", "real"), To(folder_ + "/there")}).size(), 5u);
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/source/x/y"));
  Placement sealed = To(folder_ + "/there");
  sealed.is_read_only = true;
  EXPECT_THAT(Plan({To(folder_ + "/there/z", "real"), sealed})[0],
              HasSubstr("it is not there in the volume at"));
}

TEST_F(MountPlanTest, SaysWhatIsInTheWay) {
  EXPECT_THAT(Plan({To("/")})[0], HasSubstr("choose a folder"));
  EXPECT_THAT(Plan({To(folder_ + "/file")})[0], HasSubstr("is a file and"));
  EXPECT_THAT(Plan({To(folder_ + "/file/x")})[0], HasSubstr("/file' is a file"));
  EXPECT_THAT(Plan({To("/proc/none")})[0], HasSubstr("the system alone makes folders in /proc"));
}

}  // namespace
}  // namespace weft::platform
