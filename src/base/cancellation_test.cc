// SPDX-License-Identifier: Apache-2.0
#include "base/cancellation.h"

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

namespace weft {
namespace {

const absl::Duration kLong = absl::Seconds(60);

TEST(CancellationTest, TellsEachCallbackTheFirstReasonOnce) {
  Cancellation cancellation;
  std::string told;
  Cancellation::Token token;
  ASSERT_TRUE(cancellation.Register(
      &token, [&](const Status& reason) { told += std::string(reason.message()); }));
  cancellation.Cancel(Aborted("first"));
  cancellation.Cancel(Aborted("second"));
  EXPECT_EQ(told, "first");
  EXPECT_EQ(cancellation.status(), Aborted("first"));
  EXPECT_FALSE(cancellation.Deregister(token));
  EXPECT_FALSE(cancellation.Register(&token, [](const Status&) {}));
}

TEST(CancellationTest, NothingIsWaitedForWithoutACallback) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.Deregister(0));
  cancellation.Cancel(Aborted("end"));
  EXPECT_FALSE(cancellation.Deregister(0));
}

TEST(CancellationTest, WhatIsDeregisteredByAnEarlierCallbackDoesNotRun) {
  Cancellation cancellation;
  Cancellation::Token tokens[2];
  int runs = 0;
  for (int i : {0, 1}) {
    ASSERT_TRUE(cancellation.Register(&tokens[i], [&, i](const Status&) {
      ++runs;
      EXPECT_TRUE(cancellation.Deregister(tokens[1 - i]));
    }));
  }
  cancellation.Cancel(Aborted("end"));
  EXPECT_EQ(runs, 1);
}

TEST(CancellationTest, DeregisterWaitsForACallbackThatRuns) {
  Cancellation cancellation;
  absl::Notification runs, may_end;
  std::atomic<bool> ended{false};
  Cancellation::Token token;
  ASSERT_TRUE(cancellation.Register(&token, [&](const Status&) {
    runs.Notify();
    may_end.WaitForNotificationWithTimeout(kLong);
    ended = true;
  }));
  std::thread canceller([&] { cancellation.Cancel(Aborted("end")); });
  runs.WaitForNotification();
  std::thread owner([&] {
    EXPECT_FALSE(cancellation.Deregister(token));
    EXPECT_TRUE(ended);
  });
  may_end.Notify();
  owner.join();
  canceller.join();
}

// Two steps that wait in one queue: the end of a call of either lets a call of the other end.
TEST(CancellationTest, TwoThatEndEachOthersWaitsDoNotWaitForOneAnother) {
  Cancellation steps[2];
  absl::Notification in[2];
  Cancellation::Token own[2], ended[2];
  for (int i : {0, 1}) {
    ASSERT_TRUE(steps[i].Register(&ended[i], [](const Status&) {}));
    ASSERT_TRUE(steps[i].Deregister(ended[i]));
    ASSERT_TRUE(steps[i].Register(&own[i], [&, i](const Status&) {
      in[i].Notify();
      ASSERT_TRUE(in[1 - i].WaitForNotificationWithTimeout(kLong));
      EXPECT_FALSE(steps[1 - i].Deregister(ended[1 - i]));
    }));
  }
  std::thread first([&] { steps[0].Cancel(Aborted("first")); });
  std::thread second([&] { steps[1].Cancel(Aborted("second")); });
  first.join();
  second.join();
}

TEST(CancellationTest, AChildMayDieInItsOwnCancel) {
  auto parent = std::make_unique<Cancellation>();
  auto child = std::make_unique<Cancellation>(parent.get());
  Cancellation::Token tokens[2];
  int runs = 0;
  for (Cancellation::Token& token : tokens) {
    ASSERT_TRUE(child->Register(&token, [&](const Status&) {
      ++runs;
      child.reset();
      parent.reset();
    }));
  }
  parent->Cancel(Aborted("end"));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(child, nullptr);
}

TEST(CancellationTest, AChildOfACancelledParentIsCancelled) {
  Cancellation parent;
  parent.Cancel(Aborted("end"));
  Cancellation child(&parent);
  EXPECT_EQ(child.status(), Aborted("end"));
}

}  // namespace
}  // namespace weft
