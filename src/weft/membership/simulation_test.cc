// SPDX-License-Identifier: Apache-2.0
// Small groups to which everything happens: afterwards all who run agree on who runs.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/membership/simulated_members_test.h"

namespace weft::membership {
namespace {

using testing::Members;
using testing::Weather;

constexpr absl::Duration kFaultsEnd = absl::Seconds(20);
constexpr absl::Duration kEnd = absl::Seconds(70);

// Whom a member believes to be alive, with itself.
std::set<int> Believed(const Swim& swim) {
  std::set<int> alive = {Members::TaskOf(swim.self().name)};
  swim.roster().ForEach([&](const Member& member) {
    if (member.is_alive()) alive.insert(Members::TaskOf(member.name));
  });
  return alive;
}

class Schedule {
 public:
  explicit Schedule(uint64_t seed)
      : random_(seed),
        weather_(PickWeather()),
        members_(seed, SwimOptions{}, weather_, [](int, const Event&) {}) {
    size_ = Pick(2, 7);
    for (int task = 0; task < size_; ++task) members_.Start(task);
    const int faults = Pick(0, 6);
    for (int i = 0; i < faults; ++i) {
      members_.After(
          absl::Milliseconds(Pick(500, static_cast<int>(absl::ToInt64Milliseconds(kFaultsEnd)))),
          [this] { Fault(); });
    }
  }

  void RunAndCheck() {
    members_.RunUntil(kFaultsEnd);
    members_.Heal();
    for (int task = 0; task < 3; ++task) Restart(task);  // else newcomers have nobody to ask
    members_.RunUntil(kEnd);
    const std::vector<int> running = members_.running();
    for (int task : running) {
      EXPECT_FALSE(members_.swim(task).is_superseded());
      EXPECT_EQ(Believed(members_.swim(task)), std::set<int>(running.begin(), running.end()))
          << "as member " << task << " of " << size_ << " sees it";
    }
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Weather PickWeather() {
    Weather weather;
    weather.lost = 0.1 * Pick(0, 2);
    weather.repeated = 0.1 * Pick(0, 1);
    weather.most = absl::Milliseconds(Pick(2, 60));
    weather.tells_of_the_dead = Pick(0, 1) == 1;
    return weather;
  }

  void Restart(int task) {
    if (task < size_ && !members_.is_running(task)) members_.Start(task);
  }

  void Fault() {
    const int task = Pick(0, size_ - 1);
    switch (Pick(0, 4)) {
      case 0:
        if (members_.is_running(task)) members_.Kill(task);
        return;
      case 1:
        if (members_.is_running(task)) members_.Leave(task);
        return;
      case 2:
        return Restart(task);
      case 3:
        if (members_.is_running(task)) members_.Pause(task, absl::Milliseconds(Pick(100, 8000)));
        return;
      default: {
        std::set<int> side;
        for (int other = 0; other < size_; ++other) {
          if (Pick(0, 1) == 0) side.insert(other);
        }
        members_.Cut(std::move(side));
        members_.After(absl::Milliseconds(Pick(200, 9000)), [this] { members_.Heal(); });
      }
    }
  }

  std::mt19937 random_;
  const Weather weather_;
  int size_ = 0;
  Members members_;
};

TEST(MembershipSimulationTest, AllWhoRunAgreeOnWhoRuns) {
  const char* const first = std::getenv("WEFT_FIRST_SEED");
  const uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* const count = std::getenv("WEFT_SEEDS");
  const uint64_t seeds = count == nullptr ? 1000 : std::strtoull(count, nullptr, 10);
  for (uint64_t seed = begin; seed < begin + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("WEFT_FIRST_SEED=", seed));
    Schedule(seed).RunAndCheck();
    if (::testing::Test::HasFailure()) break;
  }
}

// What a death costs others, and what is no death.
struct Outcome {
  std::vector<absl::Duration> heard;  // of the death, by each other member
  int wrong = 0;                      // deaths of members that live
};

Outcome Watch(uint64_t seed, int size, Weather weather, absl::AnyInvocable<void(Members&)> fault,
              int victim) {
  Outcome outcome;
  absl::Duration at = absl::InfiniteDuration();
  Members* world = nullptr;
  Members members(seed, SwimOptions{}, weather, [&](int, const Event& event) {
    if (event.kind != Event::Kind::kLost) return;
    const int lost = Members::TaskOf(event.member.name);
    if (lost == victim && world->now() >= at) {
      outcome.heard.push_back(world->now() - at);
    } else {
      ++outcome.wrong;
    }
  });
  world = &members;
  for (int task = 0; task < size; ++task) members.Start(task);
  members.RunUntil(absl::Milliseconds(10000 + seed % 250));
  at = members.now();
  fault(members);
  members.RunUntil(members.now() + absl::Seconds(20));
  return outcome;
}

absl::Duration Percentile(std::vector<absl::Duration> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

TEST(MembershipSimulationTest, ASilentDeathIsHeardInTwoSecondsAndABrokenConnectionAtOnce) {
  for (const bool tells : {false, true}) {
    std::vector<absl::Duration> heard;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const int size = static_cast<int>(3 + seed % 6);
      const Outcome outcome = Watch(
          seed, size, {.tells_of_the_dead = tells}, [](Members& members) { members.Kill(1); }, 1);
      ASSERT_EQ(outcome.heard.size(), static_cast<size_t>(size - 1)) << "seed " << seed;
      EXPECT_EQ(outcome.wrong, 0) << "seed " << seed;
      heard.insert(heard.end(), outcome.heard.begin(), outcome.heard.end());
    }
    const absl::Duration middle = Percentile(heard, 0.5);
    const absl::Duration late = Percentile(heard, 0.99);
    RecordProperty(tells ? "broken_p50" : "silent_p50", absl::FormatDuration(middle));
    RecordProperty(tells ? "broken_p99" : "silent_p99", absl::FormatDuration(late));
    EXPECT_LE(middle, tells ? absl::Milliseconds(20) : absl::Milliseconds(2500));
    EXPECT_LE(late, tells ? absl::Milliseconds(50) : absl::Seconds(5));
  }
}

TEST(MembershipSimulationTest, WhoStandsStillForLessThanASecondIsNotLost) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const int size = static_cast<int>(2 + seed % 7);
    const Outcome outcome = Watch(
        seed, size, {.lost = 0.05},
        [](Members& members) { members.Pause(1, absl::Milliseconds(950)); }, 1);
    EXPECT_THAT(outcome.heard, ::testing::IsEmpty()) << "seed " << seed << ", size " << size;
    EXPECT_EQ(outcome.wrong, 0) << "seed " << seed << ", size " << size;
  }
}

TEST(MembershipSimulationTest, LostMessagesKillNobody) {
  // A fifth of the messages, for 10 minutes.
  int lost = 0;
  Members members(5, SwimOptions{}, {.lost = 0.2}, [&](int, const Event& event) {
    if (event.kind == Event::Kind::kLost) ++lost;
  });
  for (int task = 0; task < 8; ++task) members.Start(task);
  members.RunUntil(absl::Minutes(10));
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace weft::membership
