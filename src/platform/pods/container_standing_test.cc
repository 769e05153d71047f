// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_standing.h"

#include <gtest/gtest.h>

namespace weft::platform {
namespace {

ContainerStanding Waits(ContainerKind kind) {
  return {kind, ContainerState::kWaiting, ContainerFate::kRuns, false};
}
ContainerStanding Running(ContainerKind kind) {
  return {kind, ContainerState::kRunning, ContainerFate::kRuns, kind == ContainerKind::kSidecar};
}
ContainerStanding Ended(ContainerKind kind, ContainerFate fate) {
  return {kind, ContainerState::kTerminated, fate, fate == ContainerFate::kSucceeded};
}

TEST(ContainerStandingTest, ThePhaseFollowsFromItsContainers) {
  const ContainerStanding waits = Waits(ContainerKind::kMain);
  const ContainerStanding runs = Running(ContainerKind::kMain);
  const ContainerStanding good = Ended(ContainerKind::kMain, ContainerFate::kSucceeded);
  const ContainerStanding bad = Ended(ContainerKind::kMain, ContainerFate::kFailed);
  const ContainerStanding again = Ended(ContainerKind::kMain, ContainerFate::kWillRestart);
  const ContainerStanding sidecar = Running(ContainerKind::kSidecar);
  const ContainerStanding init = Ended(ContainerKind::kInit, ContainerFate::kSucceeded);
  const ContainerStanding bad_init = Ended(ContainerKind::kInit, ContainerFate::kFailed);
  const std::pair<ContainerStandings, const char*> rows[] = {
      {{waits}, "Pending"},
      {{runs}, "Running"},
      {{runs, waits}, "Running"},
      {{good, runs}, "Running"},
      {{bad, runs}, "Running"},
      {{again}, "Running"},
      {{good}, "Succeeded"},
      {{good, bad}, "Failed"},
      {{Running(ContainerKind::kInit), waits}, "Pending"},
      {{init, waits}, "Pending"},
      {{init, good}, "Succeeded"},
      {{bad_init, waits}, "Failed"},
      {{sidecar, bad_init, waits}, "Pending"},
      {{sidecar, good}, "Running"},
      {{Ended(ContainerKind::kSidecar, ContainerFate::kWillRestart), waits}, "Pending"},
  };
  for (const auto& [all, phase] : rows) EXPECT_EQ(PhaseOf(all, {}), phase);
}

TEST(ContainerStandingTest, WhatIsEndedFromOutsideHasFailed) {
  PodEnd terminating;
  terminating.is_terminating = true;
  EXPECT_EQ(PhaseOf({Waits(ContainerKind::kMain)}, terminating), "Failed");
  EXPECT_EQ(PhaseOf({Running(ContainerKind::kMain)}, terminating), "Running");
  PodEnd overdue;
  overdue.is_overdue = true;
  EXPECT_EQ(PhaseOf({Running(ContainerKind::kMain)}, overdue), "Running");
  EXPECT_EQ(PhaseOf({Ended(ContainerKind::kMain, ContainerFate::kSucceeded)}, overdue), "Failed");
}

TEST(ContainerStandingTest, MainsAreOverWhenNoneComesBack) {
  EXPECT_TRUE(AreMainsOver({Ended(ContainerKind::kMain, ContainerFate::kFailed)}));
  EXPECT_FALSE(AreMainsOver({Ended(ContainerKind::kMain, ContainerFate::kWillRestart)}));
  EXPECT_FALSE(AreMainsOver(
      {Waits(ContainerKind::kInit), Ended(ContainerKind::kMain, ContainerFate::kFailed)}));
  EXPECT_TRUE(Runs({Running(ContainerKind::kSidecar)}, true));
  EXPECT_FALSE(Runs({Running(ContainerKind::kSidecar)}, false));
}

TEST(ContainerStandingTest, PoliciesSayWhoIsStartedAgain) {
  struct Row {
    ContainerKind kind;
    int exit_code;
    const char* policy;
    bool is_restarted;
  };
  for (const Row& row :
       {Row{ContainerKind::kMain, 0, "Always", true},
        Row{ContainerKind::kMain, 0, "OnFailure", false},
        Row{ContainerKind::kMain, 1, "OnFailure", true},
        Row{ContainerKind::kMain, 1, "Never", false}, Row{ContainerKind::kInit, 0, "Always", false},
        Row{ContainerKind::kInit, 1, "Always", true}, Row{ContainerKind::kInit, 1, "Never", false},
        Row{ContainerKind::kSidecar, 0, "Never", true}}) {
    EXPECT_EQ(IsRestarted(row.kind, row.exit_code, row.policy, nullptr), row.is_restarted)
        << row.policy << " " << row.exit_code;
  }
}

TEST(ContainerStandingTest, AContainersOwnPolicyAndRulesComeFirst) {
  const Json own = Json::Parse(R"({"name":"a","restartPolicy":"Never"})").value();
  const ContainerView never(own);
  EXPECT_FALSE(IsRestarted(ContainerKind::kMain, 1, "Always", &never));
  // Of an init container it means a sidecar, which has a kind of its own.
  EXPECT_TRUE(IsRestarted(ContainerKind::kInit, 1, "Always", &never));
  const Json ruled = Json::Parse(R"({"name":"a","restartPolicy":"Never","restartPolicyRules":[
      {"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]})")
                         .value();
  const ContainerView rules(ruled);
  EXPECT_TRUE(IsRestarted(ContainerKind::kMain, 42, "Never", &rules));
  EXPECT_FALSE(IsRestarted(ContainerKind::kMain, 43, "Never", &rules));
}

}  // namespace
}  // namespace weft::platform
