// SPDX-License-Identifier: Apache-2.0
#include "weft/membership/swim.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::membership {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Swim Named(const std::string& name, uint64_t process, uint64_t incarnation) {
  SwimOptions options;
  options.self = {.name = name,
                  .address = "10.0.0.1:1",
                  .process = process,
                  .incarnation = incarnation,
                  .state = State::kAlive,
                  .is_rank = false};
  return Swim(std::move(options));
}

MembershipMessage Telling(MemberNews::State state, const std::string& task, uint64_t process,
                          uint64_t incarnation) {
  MembershipMessage message;
  MemberNews* const news = message.add_news();
  news->set_task(task);
  news->set_state(state);
  news->set_process(process);
  news->set_incarnation(incarnation);
  return message;
}

TEST(SwimTest, ContradictsWhoeverTakesItForDead) {
  for (const MemberNews::State state : {MemberNews::SUSPECT, MemberNews::DEAD, MemberNews::LEFT}) {
    Swim swim = Named("a", 1, 5);
    Actions actions;
    swim.Receive("b", Telling(state, "a", 1, 4), absl::ZeroDuration(), &actions);
    EXPECT_EQ(swim.self().incarnation, 5) << "of an earlier life";
    swim.Receive("b", Telling(state, "a", 1, 7), absl::ZeroDuration(), &actions);
    EXPECT_EQ(swim.self().incarnation, 8);
  }
}

TEST(SwimTest, ALaterProcessOfANameWinsAndAnEarlierOneTakesPartNoMore) {
  Actions actions;
  Swim old = Named("a", 1, 5);
  old.Tick(absl::ZeroDuration(), &actions);
  old.Receive("b", Telling(MemberNews::ALIVE, "a", 2, 9), absl::Minutes(5), &actions);
  EXPECT_TRUE(old.is_superseded());
  ASSERT_THAT(actions.events, SizeIs(1));
  EXPECT_EQ(actions.events[0].kind, Event::Kind::kSuperseded);
  actions = Actions();
  old.Tick(absl::Minutes(6), &actions);
  EXPECT_THAT(actions.messages, IsEmpty());

  // Its clock is behind that of the one before it.
  Swim young = Named("a", 2, 5);
  young.Tick(absl::ZeroDuration(), &actions);
  young.Receive("b", Telling(MemberNews::ALIVE, "a", 1, 9), absl::Seconds(1), &actions);
  EXPECT_FALSE(young.is_superseded());
  EXPECT_EQ(young.self().incarnation, 10);
}

TEST(SwimTest, AProcessThatIsStartedAgainIsLostAndJoins) {
  Swim swim = Named("a", 1, 5);
  Actions actions;
  swim.Receive("c", Telling(MemberNews::ALIVE, "b", 1, 5), absl::ZeroDuration(), &actions);
  swim.Receive("c", Telling(MemberNews::ALIVE, "b", 2, 6), absl::ZeroDuration(), &actions);
  swim.Receive("c", Telling(MemberNews::DEAD, "b", 1, 5), absl::ZeroDuration(), &actions);
  ASSERT_THAT(actions.events, SizeIs(3));
  EXPECT_EQ(actions.events[0].kind, Event::Kind::kJoined);
  EXPECT_EQ(actions.events[1].kind, Event::Kind::kLost);
  EXPECT_EQ(actions.events[1].member.process, 1);
  EXPECT_EQ(actions.events[2].kind, Event::Kind::kJoined);
  EXPECT_TRUE(swim.roster().Find("b")->is_alive());
}

TEST(SwimTest, ABrokenConnectionIsASuspicionAndASecondOneADeath) {
  Swim swim = Named("a", 1, 5);
  Actions actions;
  swim.Receive("c", Telling(MemberNews::ALIVE, "b", 1, 5), absl::ZeroDuration(), &actions);
  swim.Unreachable("b", absl::ZeroDuration(), &actions);
  EXPECT_EQ(swim.roster().Find("b")->state, State::kSuspect);
  ASSERT_THAT(actions.messages, SizeIs(1));
  EXPECT_EQ(actions.messages[0].message.kind(), MembershipMessage::PING);
  swim.Unreachable("b", absl::ZeroDuration(), &actions);
  EXPECT_EQ(swim.roster().Find("b")->state, State::kDead);
  EXPECT_EQ(actions.events.back().kind, Event::Kind::kLost);
}

TEST(SwimTest, TakesNoNamesWithoutEnd) {
  Swim swim = Named("a", 1, 5);
  Actions actions;
  const std::string name(1000, 'b');
  swim.Receive("c", Telling(MemberNews::ALIVE, name, 1, 5), absl::ZeroDuration(), &actions);
  EXPECT_EQ(swim.roster().size(), 0);
}

TEST(SwimTest, NoticesThatItStoodStillItself) {
  Swim swim = Named("a", 1, 5);
  Actions actions;
  swim.Tick(absl::ZeroDuration(), &actions);
  swim.Receive("c", Telling(MemberNews::ALIVE, "b", 1, 5), absl::ZeroDuration(), &actions);
  swim.Tick(absl::Milliseconds(250), &actions);  // pings b
  swim.Tick(absl::Seconds(20), &actions);
  EXPECT_EQ(swim.roster().Find("b")->state, State::kAlive);
  EXPECT_EQ(swim.unwell(), 1);
}

TEST(RoundRobinTest, ComesToAllInEachRound) {
  std::mt19937_64 random(1);
  RoundRobin order;
  for (const size_t size : {1, 2, 6, 97, 100}) {
    for (int round = 0; round < 3; ++round) {
      std::set<size_t> seen;
      for (size_t i = 0; i < size; ++i) seen.insert(order.Next(size, [&] { return random(); }));
      EXPECT_THAT(seen, SizeIs(size));
    }
  }
}

}  // namespace
}  // namespace weft::membership
