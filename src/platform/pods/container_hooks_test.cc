// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace weft::platform {
namespace {

class ContainerHooksTest : public ::testing::Test {
 protected:
  std::unique_ptr<ContainerHooks> Begin(absl::string_view text) {
    container_ = Json::Parse(text).value();
    return ContainerHooks::Begin(container_, ContainerCommand(), nullptr, &pool_, now_);
  }
  // Looks once a second of the clock until `is_done`.
  template <typename Done>
  ContainerHooks::Outcome Await(ContainerHooks* hooks, Done is_done) {
    ContainerHooks::Outcome outcome;
    for (int i = 0; i < 500; ++i) {
      outcome = hooks->Step(kGrace, now_);
      if (is_done(outcome)) return outcome;
      now_ += absl::Seconds(1);
      absl::SleepFor(absl::Milliseconds(10));
    }
    ADD_FAILURE() << "it never came so far";
    return outcome;
  }

  static constexpr absl::Duration kGrace = absl::Minutes(30);
  Json container_;
  absl::Time now_ = absl::FromUnixSeconds(1700000000);
  ThreadPool pool_{"hooks", 2};
};

TEST_F(ContainerHooksTest, AContainerWithoutAnyHasNone) {
  EXPECT_EQ(Begin(R"({"name":"main"})"), nullptr);
}

TEST_F(ContainerHooksTest, ItIsStartingUntilTheFirstHookIsDone) {
  const auto hooks = Begin(R"({"lifecycle":{"postStart":{"sleep":{"seconds":5}}}})");
  EXPECT_TRUE(hooks->is_starting());
  now_ += absl::Seconds(4);
  EXPECT_EQ(hooks->Step(kGrace, now_).signal, 0);
  EXPECT_TRUE(hooks->is_starting());
  EXPECT_LE(hooks->due(), now_ + absl::Seconds(1));
  now_ += absl::Seconds(1);
  EXPECT_TRUE(hooks->Step(kGrace, now_).post_start.ok());
  EXPECT_FALSE(hooks->is_starting());
  EXPECT_EQ(hooks->due(), absl::InfiniteFuture());
}

TEST_F(ContainerHooksTest, AFailedStartEndsInAKill) {
  const auto hooks = Begin(R"({"lifecycle":{"postStart":{"exec":{"command":["false"]}}}})");
  const auto failed = Await(hooks.get(), [](const auto& now) { return !now.post_start.ok(); });
  EXPECT_EQ(failed.signal, 0);
  EXPECT_EQ(hooks->AskToEnd(container_, SIGTERM, kGrace, now_), SIGTERM);
  EXPECT_EQ(hooks->Step(kGrace, now_).signal, 0);
  EXPECT_EQ(hooks->Step(kGrace, now_ + kGrace).signal, SIGKILL);
}

TEST_F(ContainerHooksTest, TheSignalFollowsTheLastHook) {
  const auto hooks = Begin(R"({"lifecycle":{"preStop":{"sleep":{"seconds":3}}}})");
  EXPECT_FALSE(hooks->is_starting());
  EXPECT_EQ(hooks->AskToEnd(container_, SIGTERM, kGrace, now_), 0);
  // Asked again it still has its time.
  EXPECT_EQ(hooks->AskToEnd(container_, SIGTERM, kGrace, now_), 0);
  EXPECT_EQ(hooks->Step(kGrace, now_ + absl::Seconds(2)).signal, 0);
  EXPECT_EQ(hooks->Step(kGrace, now_ + absl::Seconds(3)).signal, SIGTERM);
  EXPECT_EQ(hooks->AskToEnd(container_, SIGINT, kGrace, now_), SIGINT);
}

TEST_F(ContainerHooksTest, AFailedLastHookIsToldAndTheSignalComes) {
  const auto hooks = Begin(R"({"lifecycle":{"preStop":{"exec":{"command":["false"]}}}})");
  EXPECT_EQ(hooks->AskToEnd(container_, SIGTERM, kGrace, now_), 0);
  const auto outcome = Await(hooks.get(), [](const auto& now) { return now.signal != 0; });
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_FALSE(outcome.pre_stop.ok());
}

}  // namespace
}  // namespace weft::platform
