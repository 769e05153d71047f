// SPDX-License-Identifier: Apache-2.0
#include "platform/model_servers/rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/model_servers/autoscale.h"
#include "platform/model_servers/load_book.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A rollout from `old` to `new`, whose servers are ready as soon as they are wanted.
class RolloutTest : public ::testing::Test {
 protected:
  RolloutTest() {
    rollout_.steps = {10, 50, 100};
    rollout_.step = absl::Seconds(60);
    rollout_.most_errors = 1;
    question_.state.trusted = "old";
    question_.revision = "new";
    question_.replicas = 4;
    question_.revisions["old"] = {4, 4};
    question_.now = absl::FromUnixSeconds(1000000);
    question_.counts = [this](const std::string& revision) { return counts_[revision]; };
  }

  RolloutAnswer Look(absl::Duration later = absl::ZeroDuration()) {
    question_.now += later;
    RolloutAnswer answer = DecideRollout(rollout_, question_);
    question_.state = answer.state;
    std::map<std::string, RevisionFacts> next;
    for (const auto& [revision, count] : answer.replicas)
      next[revision] = {count, are_ready_ ? count : question_.revisions[revision].available};
    question_.revisions = next;
    for (const PlannedEvent& event : answer.events) told_.push_back(event.reason);
    return answer;
  }

  ServerRollout rollout_;
  RolloutQuestion question_;
  std::map<std::string, ServerCounts> counts_;
  std::vector<std::string> told_;
  bool are_ready_ = true;
};

TEST_F(RolloutTest, TakesOverStepByStep) {
  EXPECT_THAT(Look().replicas, UnorderedElementsAre(Pair("old", 4), Pair("new", 1)));
  // Ready: fewer of the others, and the watch begins.
  RolloutAnswer answer = Look(absl::Seconds(1));
  EXPECT_THAT(answer.replicas, UnorderedElementsAre(Pair("old", 3), Pair("new", 1)));
  EXPECT_EQ(answer.share, "1 of 4");
  Look(absl::Seconds(59));
  EXPECT_EQ(question_.state.step, 0);
  EXPECT_THAT(Look(absl::Seconds(1)).replicas,
              UnorderedElementsAre(Pair("old", 3), Pair("new", 2)));
  EXPECT_THAT(Look().replicas, UnorderedElementsAre(Pair("old", 2), Pair("new", 2)));
  EXPECT_THAT(Look(absl::Seconds(60)).replicas,
              UnorderedElementsAre(Pair("old", 2), Pair("new", 4)));
  EXPECT_THAT(Look().replicas, UnorderedElementsAre(Pair("old", 0), Pair("new", 4)));
  EXPECT_THAT(Look(absl::Seconds(60)).replicas, UnorderedElementsAre(Pair("new", 4)));
  EXPECT_EQ(question_.state.trusted, "new");
  EXPECT_EQ(question_.state.candidate, "");
  EXPECT_THAT(told_, testing::ElementsAre("RolloutStarted", "RolloutAdvanced", "RolloutAdvanced",
                                          "RolloutFinished"));
  // Nothing more.
  const RolloutState before = question_.state;
  answer = Look(absl::Hours(1));
  EXPECT_EQ(answer.state, before);
  EXPECT_THAT(answer.events, IsEmpty());
  EXPECT_EQ(answer.look_again, absl::InfiniteDuration());
}

TEST_F(RolloutTest, MoreErrorsThanBeforeTakeItBack) {
  Look();
  Look();
  counts_["old"].requests = 900;
  counts_["old"].errors = 90;  // its clients ask wrong things
  counts_["new"].requests = 100;
  counts_["new"].errors = 11;
  Look(absl::Seconds(1));
  EXPECT_EQ(question_.state.candidate, "new");
  counts_["new"].errors = 12;
  const RolloutAnswer answer = Look(absl::Seconds(1));
  EXPECT_THAT(answer.problem, HasSubstr("12.0% of its 100 requests failed, of the others' 900 it "
                                        "was 10.0%: at most 1% more are allowed"));
  EXPECT_THAT(answer.replicas, UnorderedElementsAre(Pair("old", 4)));
  EXPECT_EQ(question_.state.failed, "new");
  // It is not tried again, another one is.
  EXPECT_THAT(Look(absl::Hours(1)).replicas, UnorderedElementsAre(Pair("old", 4)));
  question_.revision = "newer";
  EXPECT_THAT(Look().replicas, UnorderedElementsAre(Pair("old", 4), Pair("newer", 1)));
  EXPECT_EQ(question_.state.failed, "");
}

TEST_F(RolloutTest, SlowerThanStatedTakesItBack) {
  rollout_.most_latency = absl::Milliseconds(20);
  Look();
  Look();
  counts_["new"].requests = 100;
  counts_["new"].latencies = {{10000, 95}, {40000, 100}};
  EXPECT_THAT(Look(absl::Seconds(1)).problem, HasSubstr("took up to 34.0 ms, at most 20 ms"));
}

TEST_F(RolloutTest, ServersThatDoNotComeTakeItBack) {
  are_ready_ = false;
  rollout_.deadline = absl::Seconds(100);
  Look();
  EXPECT_THAT(Look(absl::Seconds(99)).replicas,
              UnorderedElementsAre(Pair("old", 4), Pair("new", 1)));
  EXPECT_THAT(Look(absl::Seconds(1)).problem, HasSubstr("0 of 1 servers were ready within"));
  EXPECT_EQ(question_.state.failed, "new");
}

TEST_F(RolloutTest, WaitsForRequestsWhereTheyAreAskedFor) {
  rollout_.least_requests = 50;
  Look();
  Look();
  Look(absl::Seconds(600));
  EXPECT_EQ(question_.state.step, 0);
  counts_["new"].requests = 50;
  Look(absl::Seconds(1));
  EXPECT_EQ(question_.state.step, 1);
}

TEST_F(RolloutTest, TheSpecAsItWasEndsIt) {
  Look();
  Look();
  question_.revision = "old";
  EXPECT_THAT(Look().replicas, UnorderedElementsAre(Pair("old", 4)));
  EXPECT_EQ(question_.state.failed, "");
}

TEST_F(RolloutTest, OneServerIsJoinedByAnother) {
  question_.replicas = 1;
  question_.revisions["old"] = {1, 1};
  const RolloutAnswer answer = Look();
  EXPECT_THAT(answer.replicas, UnorderedElementsAre(Pair("old", 1), Pair("new", 1)));
  EXPECT_EQ(answer.share, "1 of 2");
}

TEST_F(RolloutTest, AtTheLastStepTheOthersComeBackBeforeItGoes) {
  rollout_.steps = {100};
  Look();
  Look();
  ASSERT_EQ(question_.revisions["old"].wanted, 0);
  counts_["new"] = {.requests = 10, .errors = 10};
  are_ready_ = false;
  EXPECT_THAT(Look(absl::Seconds(1)).replicas,
              UnorderedElementsAre(Pair("old", 4), Pair("new", 4)));
  question_.revisions["old"].available = 2;
  EXPECT_THAT(Look().replicas, UnorderedElementsAre(Pair("old", 4)));
}

TEST(AutoscaleTest, FollowsTheRequestsWithoutFlapping) {
  const ServerScaling scaling = {.least = 1, .most = 6, .target = 4};
  ScalingMemory memory;
  absl::Time now = absl::FromUnixSeconds(1000000);
  const auto next = [&](int64_t current, std::vector<std::optional<double>> loads) {
    now += absl::Seconds(15);
    return NextReplicas(scaling, current, loads, now, &memory).replicas;
  };
  EXPECT_EQ(next(2, {4.2, 4.3}), 2);       // a tenth is nothing
  EXPECT_EQ(next(2, {10.0, 10.0}), 5);     // at once
  EXPECT_EQ(next(1, {100.0}), 5);          // four more at most
  EXPECT_EQ(next(5, {100.0, 100.0}), 6);   // as many as there may be
  EXPECT_EQ(next(6, {0.0, 0.0, 0.0}), 6);  // not yet
  for (int i = 0; i < 19; ++i) EXPECT_EQ(next(6, {3.0, 3.0, 3.0}), 6);
  EXPECT_EQ(next(6, {3.0, 3.0, 3.0}), 3);  // 9 requests, for five minutes
  EXPECT_EQ(next(7, {1.0}), 6);            // the spec has changed
}

TEST(AutoscaleTest, ALoadThatSwingsDoesNotSwingTheServers) {
  const ServerScaling scaling = {.least = 1, .most = 10, .target = 4};
  ScalingMemory memory;
  absl::Time now = absl::FromUnixSeconds(1000000);
  int64_t current = 2;
  int changes = 0;
  for (int i = 0; i < 200; ++i) {
    now += scaling.period;
    const double load = i % 4 < 2 ? 20 : 8;
    const int64_t next = NextReplicas(scaling, current, {load}, now, &memory).replicas;
    changes += next == current ? 0 : 1;
    current = next;
  }
  EXPECT_EQ(current, 5);
  EXPECT_EQ(changes, 1);
}

TEST(AutoscaleTest, WhoDoesNotSayIsNoReasonToChange) {
  const ServerScaling scaling = {
      .least = 1, .most = 6, .target = 4, .settle_down = absl::ZeroDuration()};
  ScalingMemory memory;
  const absl::Time now = absl::FromUnixSeconds(1000000);
  EXPECT_EQ(NextReplicas(scaling, 3, {std::nullopt, std::nullopt, 0.0}, now, &memory).replicas, 2);
  EXPECT_EQ(
      NextReplicas(scaling, 3, {std::nullopt, std::nullopt, std::nullopt}, now, &memory).replicas,
      3);
}

constexpr char kPage[] = R"(# TYPE :tensorflow:serving:request_count counter
:tensorflow:serving:request_count{model_name="a",status="OK"} 97
:tensorflow:serving:request_count{model_name="b",status="OK"} 1
:tensorflow:serving:request_count{model_name="a",status="INVALID_ARGUMENT"} 2
:tensorflow:serving:request_count{model_name="a",status="CANCELLED"} 1
:tensorflow:serving:request_latency_bucket{model_name="a",API="Predict",entrypoint="GRPC",le="10"} 0
:tensorflow:serving:request_latency_bucket{model_name="a",API="Predict",entrypoint="GRPC",le="+Inf"} 97
:tensorflow:serving:request_latency_sum{model_name="a",API="Predict",entrypoint="GRPC"} 4000
weft_serving_request_microseconds_total 1500000
)";

TEST(LoadBookTest, ReadsWhatServersCount) {
  const ServerCounts counts = ReadServerPage(kPage).value();
  EXPECT_EQ(counts.requests, 101);
  EXPECT_EQ(counts.errors, 2);
  EXPECT_EQ(counts.micros, 1500000);
  EXPECT_EQ(counts.latencies.size(), 2);
  EXPECT_FALSE(ReadServerPage("<html>").has_value());
  EXPECT_FALSE(ReadServerPage("").has_value());

  LoadBook book;
  const absl::Time now = absl::FromUnixSeconds(1000000);
  book.Note("p", "new", counts, now);
  EXPECT_FALSE(book.RequestsAt("p").has_value());
  book.BeginWatch("new/0");
  EXPECT_EQ(book.Watched("new").requests, 0);
  ServerCounts more = counts;
  more.micros += 3000000;
  more.requests += 10;
  book.Note("p", "new", more, now + absl::Seconds(2));
  EXPECT_DOUBLE_EQ(book.RequestsAt("p").value(), 1.5);
  book.BeginWatch("new/0");
  EXPECT_EQ(book.Watched("new").requests, 10);
  // It began anew.
  book.Note("p", "new", {.requests = 3, .micros = 1000}, now + absl::Seconds(3));
  EXPECT_EQ(book.Watched("new").requests, 3);
  EXPECT_DOUBLE_EQ(book.RequestsAt("p").value(), 0.001);
  book.Keep({});
  EXPECT_EQ(book.Watched("new").requests, 0);
}

}  // namespace
}  // namespace weft::platform
