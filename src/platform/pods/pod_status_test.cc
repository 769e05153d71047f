// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_status.h"

#include <gtest/gtest.h>

#include "platform/object/fields.h"
#include "platform/object/pod_view.h"

namespace weft::platform {
namespace {

Json PodOf(PodStatusFacts facts) {
  Json pod;
  pod.Set("status", MakePodStatus(std::move(facts)));
  return pod;
}

TEST(PodStatusTest, ReadyIsWhatRunsAndHasItsContainersReady) {
  PodStatusFacts facts;
  facts.phase = "Running";
  facts.are_inits_done = true;
  facts.started = absl::FromUnixSeconds(1700000000);
  facts.quality = "Burstable";
  EXPECT_FALSE(PodView(PodOf(facts)).is_ready());
  facts.are_containers_ready = true;
  const Json pod = PodOf(facts);
  const PodView view(pod);
  EXPECT_TRUE(view.is_ready());
  EXPECT_EQ(view.ready_since(), facts.started);
  EXPECT_EQ(view.started(), facts.started);
  EXPECT_EQ(view.quality(), "Burstable");
  EXPECT_TRUE(IsConditionTrue(pod, "Initialized"));
  EXPECT_EQ(pod.Find("status")->Find("initContainerStatuses"), nullptr);
  facts.phase = "Succeeded";
  const Json over = PodOf(facts);
  EXPECT_FALSE(PodView(over).is_ready());
  EXPECT_EQ(StringField(*ConditionOf(over, "Ready"), {"reason"}), "PodCompleted");
}

TEST(PodStatusTest, SaysWhyItWasEnded) {
  PodStatusFacts facts;
  facts.phase = "Failed";
  facts.is_overdue = true;
  const Json pod = PodOf(facts);
  EXPECT_EQ(PodView(pod).reason(), "DeadlineExceeded");
  EXPECT_NE(PodView(pod).message(), "");
}

TEST(PodStatusTest, WhatWaitsForItsNextRunKeepsTheEndOfTheLast) {
  const Json ended = Json::Parse(R"({"name":"main","restartCount":2,"lastState":{},
      "state":{"terminated":{"exitCode":3,"reason":"Error"}}})")
                         .value();
  const Json status = WaitingForRestart(ended);
  const ContainerStatusView view(status);
  EXPECT_EQ(view.waiting_reason(), "CrashLoopBackOff");
  EXPECT_FALSE(view.ended().has_value());
  ASSERT_TRUE(view.ended_before().has_value());
  EXPECT_EQ(view.ended_before()->exit_code(), 3);
  EXPECT_EQ(view.restarts(), 2);
}

}  // namespace
}  // namespace weft::platform
