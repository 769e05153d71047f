// SPDX-License-Identifier: Apache-2.0
// What the SWIM paper promises, with 500 members or with WEFT_SIMULATED_MEMBERS=10000: the time to
// detect a death does not grow with the group but for the suspicion, news comes to all in a number
// of intervals that is logarithmic, and each member's traffic stays what it is.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/membership/simulated_members_test.h"

namespace weft::membership {
namespace {

using testing::Members;
using testing::Weather;

constexpr absl::Duration kInterval = absl::Seconds(1);  // as in the paper

int NumMembers() {
  int members = 500;
  const char* const wanted = std::getenv("WEFT_SIMULATED_MEMBERS");
  if (wanted != nullptr && !absl::SimpleAtoi(wanted, &members)) members = 500;
  return members;
}

SwimOptions Options(bool lifeguard) {
  SwimOptions options;
  options.interval = kInterval;
  options.timeout = absl::Milliseconds(500);
  options.lifeguard = lifeguard;
  return options;
}

// Everybody knows everybody from the start.
Roster Everybody(int count) {
  auto members = std::make_shared<std::vector<Member>>();
  for (int task = 0; task < count; ++task) {
    members->push_back({.name = Members::NameOf(task),
                        .address = absl::StrCat("10.0.0.1:", task),
                        .process = static_cast<uint64_t>(task) + 1,
                        .incarnation = 1000});
  }
  return Roster(std::move(members));
}

struct Seen {
  std::map<int, absl::Duration> first_suspected;    // by member
  std::map<int, std::vector<absl::Duration>> lost;  // when each other heard it
};

// A group of `count` that knows itself, after 3 intervals.
class Group {
 public:
  Group(int count, bool lifeguard, Weather weather)
      : count_(count), members_(1, Options(lifeguard), weather, [this](int, const Event& event) {
          const int task = Members::TaskOf(event.member.name);
          if (event.kind == Event::Kind::kSuspected)
            seen_.first_suspected.try_emplace(task, members_.now());
          if (event.kind == Event::Kind::kLost) seen_.lost[task].push_back(members_.now());
        }) {
    const Roster everybody = Everybody(count);
    for (int task = 0; task < count; ++task) members_.Start(task, everybody);
    members_.RunUntil(3 * kInterval);
  }
  Members& members() { return members_; }
  Seen& seen() { return seen_; }
  int count() const { return count_; }

 private:
  const int count_;
  Seen seen_;
  Members members_;
};

TEST(MembershipScaleTest, DeathsAreDetectedAndToldAtTheCostThatThePaperSays) {
  const int count = NumMembers();
  Group group(count, /*lifeguard=*/true, {});
  Members& members = group.members();
  const int64_t messages = members.messages();
  const int64_t bytes = members.bytes();
  const absl::Duration quiet = 5 * kInterval;
  members.RunUntil(members.now() + quiet);
  const double intervals = absl::FDivDuration(quiet, kInterval);
  // A ping and its answer in each interval, whatever the number of members.
  const double a_member = static_cast<double>(members.messages() - messages) / count / intervals;
  const double its_bytes = static_cast<double>(members.bytes() - bytes) / count / intervals;
  EXPECT_NEAR(a_member, 2, 0.1);
  EXPECT_LT(its_bytes, 400);

  constexpr int kVictims = 10;
  const absl::Duration died = members.now();
  for (int victim = 1; victim <= kVictims; ++victim) members.Kill(victim * 7);
  members.RunUntil(died + 40 * kInterval);
  double first = 0;
  double told = 0;
  for (int victim = 1; victim <= kVictims; ++victim) {
    const std::vector<absl::Duration>& lost = group.seen().lost[victim * 7];
    ASSERT_EQ(lost.size(), static_cast<size_t>(count - kVictims));
    first += absl::FDivDuration(group.seen().first_suspected[victim * 7] - died, kInterval);
    told += absl::FDivDuration(lost.back() - lost.front(), kInterval);
  }
  // e / (e - 1) intervals until somebody probes it, and one until that has failed.
  EXPECT_LT(first / kVictims, 1.6 + 1 + 1);
  EXPECT_LT(told / kVictims, 2 * std::log2(count));
  // Nobody else.
  EXPECT_EQ(group.seen().lost.size(), kVictims);
  std::printf(
      "%d members: suspected after %.2f intervals, told to all in %.2f; each sends %.2f messages "
      "and %.0f bytes an interval\n",
      count, first / kVictims, told / kVictims, a_member, its_bytes);
}

// Section 3.1 of the paper: a member that lives is suspected where the ping or its answer is lost,
// and the same happens to each of those who help.
TEST(MembershipScaleTest, LostMessagesRaiseAsManySuspicionsAsThePaperSays) {
  constexpr double kLost = 0.1;
  const int count = std::min(NumMembers(), 2000);
  int suspicions = 0;
  int lost = 0;
  Members members(1, Options(/*lifeguard=*/false), {.lost = kLost},
                  [&](int at, const Event& event) {
                    const bool is_own = absl::EndsWith(event.why, Members::NameOf(at));
                    if (event.kind == Event::Kind::kSuspected && is_own) ++suspicions;
                    if (event.kind == Event::Kind::kLost) ++lost;
                  });
  const Roster everybody = Everybody(count);
  for (int task = 0; task < count; ++task) members.Start(task, everybody);
  constexpr int kIntervals = 10;
  members.RunUntil(kIntervals * kInterval);
  const double there_and_back = 1 - std::pow(1 - kLost, 2);
  const double by_another = 1 - std::pow(1 - kLost, 4);
  const double expected = there_and_back * std::pow(by_another, 3) * count * kIntervals;
  std::printf(
      "%d members, a tenth of the messages lost: %d suspicions in %d intervals, the paper "
      "says %.0f; %d times a member took one for dead\n",
      count, suspicions, kIntervals, expected, lost);
  EXPECT_GT(suspicions, expected / 2);
  EXPECT_LT(suspicions, expected * 2);
  // Few do not hear that a suspect has contradicted.
  EXPECT_LT(lost, suspicions * count / 500);
}

}  // namespace
}  // namespace weft::membership
