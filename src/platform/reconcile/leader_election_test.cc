// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

class LeaderElectionTest : public ::testing::Test {
 protected:
  LeaderElectionTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
  }
  std::unique_ptr<LeaderElector> Make(const std::string& identity, const Clock* clock = nullptr) {
    LeaderElector::Options options;
    options.store = store_.get();
    options.clock = clock == nullptr ? &clock_ : clock;
    options.namespace_name = "default";
    options.name = "operator";
    options.identity = identity;
    return std::make_unique<LeaderElector>(options);
  }
  Json Lease() { return *store_->Get(Leases(), {"default", "operator"}).value(); }
  Status CreatePodAs(const LeaderElector& elector) {
    FencedStore fenced(store_.get(), &elector);
    Json object = Json::Parse(R"({"apiVersion":"v1","kind":"ConfigMap",
                                  "metadata":{"generateName":"x-"}})")
                      .value();
    return fenced.Create(*FindResource("", "configmaps"), "default", object, {}).status();
  }
  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(LeaderElectionTest, OneLeadsUntilItStopsRenewing) {
  const auto first = Make("first");
  const auto second = Make("second");
  first->Step();
  second->Step();
  EXPECT_TRUE(first->IsLeader());
  EXPECT_FALSE(second->IsLeader());
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(absl::Seconds(2));
    first->Step();
    second->Step();
    ASSERT_TRUE(first->IsLeader());
    ASSERT_FALSE(second->IsLeader());
  }
  // Long before another may lead it begins nothing new.
  clock_.Advance(absl::Seconds(10));
  EXPECT_FALSE(first->IsLeader());
  second->Step();
  EXPECT_FALSE(second->IsLeader());
  clock_.Advance(absl::Seconds(5));
  second->Step();
  EXPECT_TRUE(second->IsLeader());
  EXPECT_EQ(second->transitions(), 1);
  EXPECT_EQ(StringField(Lease(), {"spec", "holderIdentity"}), "second");
  EXPECT_EQ(StringField(Lease(), {"spec", "renewTime"}), "2023-11-14T22:14:35.000000Z");
  first->Step();
  EXPECT_FALSE(first->IsLeader());
}

TEST_F(LeaderElectionTest, ADeposedLeaderWritesNothing) {
  const auto elector = Make("one");
  EXPECT_EQ(CreatePodAs(*elector).code(), absl::StatusCode::kFailedPrecondition);
  elector->Step();
  EXPECT_TRUE(CreatePodAs(*elector).ok());
  // A write that begins late must still end before the lease does.
  clock_.Advance(absl::Milliseconds(9900));
  EXPECT_TRUE(CreatePodAs(*elector).ok());
  EXPECT_LT(elector->WriteDeadline() - clock_.Monotonic(), absl::Milliseconds(5100));
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(CreatePodAs(*elector).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LeaderElectionTest, WallClocksDoNotCount) {
  FakeClock hours_ahead(absl::FromUnixSeconds(1700000000) + absl::Hours(5));
  const auto first = Make("first");
  const auto second = Make("second", &hours_ahead);
  first->Step();
  second->Step();
  EXPECT_FALSE(second->IsLeader());
  hours_ahead.Advance(absl::Seconds(15));
  second->Step();
  EXPECT_TRUE(second->IsLeader());
}

TEST_F(LeaderElectionTest, WhoGivesItUpLeavesNobodyWaiting) {
  const auto first = Make("first");
  const auto second = Make("second");
  first->Step();
  second->Step();
  first->Release();
  EXPECT_FALSE(first->IsLeader());
  second->Step();
  EXPECT_TRUE(second->IsLeader());
  // What is not ours is not given up.
  first->Release();
  EXPECT_EQ(StringField(Lease(), {"spec", "holderIdentity"}), "second");
}

TEST_F(LeaderElectionTest, WorkBeginsAndEndsWithTheLease) {
  RealClock real;
  const auto elector = Make("one", &real);
  absl::Notification started;
  bool ended = false;
  {
    LeaderLoop loop(elector.get(), absl::Milliseconds(20), [&] {
      started.Notify();
      return LeaderLoop::Work(&ended, [](bool* flag) { *flag = true; });
    });
    EXPECT_TRUE(started.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(StringField(Lease(), {"spec", "holderIdentity"}), "");
}

TEST_F(LeaderElectionTest, TimesThatDoNotFitAreRefused) {
  EXPECT_TRUE(
      LeaderElector::CheckTimes(absl::Seconds(15), absl::Seconds(10), absl::Seconds(2)).ok());
  for (const auto& [lease, renew, retry] :
       {std::tuple{15, 15, 2}, std::tuple{15, 10, 6}, std::tuple{0, 10, 2}}) {
    EXPECT_FALSE(
        LeaderElector::CheckTimes(absl::Seconds(lease), absl::Seconds(renew), absl::Seconds(retry))
            .ok());
  }
}

}  // namespace
}  // namespace weft::platform
