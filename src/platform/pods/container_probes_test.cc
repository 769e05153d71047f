// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "base/files.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

// Probes that look for a file.
class ContainerProbesTest : public ::testing::Test {
 protected:
  ContainerProbesTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/probes_", ::getpid(), "_",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    EXPECT_TRUE(files_.MakeDirectories(folder_).ok());
  }
  std::unique_ptr<ContainerProbes> Begin(absl::string_view probes) {
    const std::string text =
        absl::StrCat(R"({"name":"main",)", absl::StrReplaceAll(probes, {{"FOLDER", folder_}}), "}");
    return ContainerProbes::Begin(Json::Parse(text).value(), ContainerCommand(), now_);
  }
  void Make(const char* name) {
    ASSERT_TRUE(WriteFile(files_, absl::StrCat(folder_, "/", name), "").ok());
  }
  // Looks once a second of the clock until one look is as wanted.
  template <typename Wanted>
  ContainerProbes::Health Await(ContainerProbes* probes, Wanted is_wanted) {
    ContainerProbes::Health health;
    for (int i = 0; i < 500; ++i) {
      health = probes->Step(nullptr, &pool_, absl::Seconds(30), now_);
      if (is_wanted(health)) return health;
      now_ += absl::Seconds(1);
      absl::SleepFor(absl::Milliseconds(10));
    }
    ADD_FAILURE() << "it never came so far";
    return health;
  }

  RealFileSystem files_;
  const std::string folder_;
  absl::Time now_ = absl::FromUnixSeconds(1700000000);
  ThreadPool pool_{"probes", 2};
};

TEST_F(ContainerProbesTest, AContainerWithoutAnyHasNone) {
  EXPECT_EQ(Begin(R"("image":"i")"), nullptr);
}

TEST_F(ContainerProbesTest, OthersWaitForTheStart) {
  const auto probes = Begin(
      R"("startupProbe":{"exec":{"command":["test","-e","FOLDER/up"]},"periodSeconds":1,
                          "failureThreshold":1000},
         "readinessProbe":{"exec":{"command":["true"]},"periodSeconds":1})");
  ASSERT_NE(probes, nullptr);
  for (int i = 0; i < 5; ++i) {
    const auto health = probes->Step(nullptr, &pool_, absl::Seconds(30), now_);
    EXPECT_FALSE(health.has_started);
    EXPECT_FALSE(health.is_ready);
    now_ += absl::Seconds(1);
  }
  Make("up");
  const auto health = Await(probes.get(), [](const auto& now) { return now.is_ready; });
  EXPECT_TRUE(health.has_started);
  EXPECT_EQ(health.death, "");
}

TEST_F(ContainerProbesTest, WhatIsDeadIsToldOnceAndOverdueAfterItsGrace) {
  const auto probes = Begin(
      R"("livenessProbe":{"exec":{"command":["false"]},"periodSeconds":1,"failureThreshold":2})");
  const auto health = Await(probes.get(), [](const auto& now) { return !now.death.empty(); });
  EXPECT_THAT(health.death, HasSubstr("its liveness probe fails: "));
  EXPECT_TRUE(health.has_started);
  EXPECT_FALSE(probes->is_overdue(now_ + absl::Seconds(29)));
  EXPECT_TRUE(probes->is_overdue(now_ + absl::Seconds(30)));
  EXPECT_EQ(probes->Step(nullptr, &pool_, absl::Seconds(30), now_).death, "");
  EXPECT_LE(probes->due(), now_ + absl::Seconds(30));
}

TEST_F(ContainerProbesTest, UnreadinessIsToldEachTimeItComes) {
  const auto probes = Begin(
      R"("readinessProbe":{"exec":{"command":["test","-e","FOLDER/up"]},"periodSeconds":1,
                            "failureThreshold":1})");
  const auto is_unready = [](const auto& now) { return !now.unready.empty(); };
  Await(probes.get(), is_unready);
  Make("up");
  Await(probes.get(), [](const auto& now) { return now.is_ready; });
  ASSERT_TRUE(files_.Delete(absl::StrCat(folder_, "/up")).ok());
  EXPECT_FALSE(Await(probes.get(), is_unready).is_ready);
}

}  // namespace
}  // namespace weft::platform
