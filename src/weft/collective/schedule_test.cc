// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/schedule.h"

#include <map>
#include <set>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::collective {
namespace {

// What a chunk is made of: (task, chunk) of the inputs, each as often as it was taken.
using Content = std::multiset<int>;

Topology OneHostEach(int n) {
  Topology topology;
  for (int i = 0; i < n; ++i) topology.hosts.push_back("host" + std::to_string(i));
  return topology;
}

// Runs the schedules of all tasks round by round. `chunks[task][chunk]` at the start and the end.
void RunAll(const std::vector<Schedule>& schedules, std::vector<std::vector<Content>>* chunks) {
  const auto n = static_cast<int>(schedules.size());
  for (size_t round = 0; round < schedules[0].rounds.size(); ++round) {
    std::map<std::tuple<int, int, int>, Content> sent;  // from, to, chunk
    for (int me = 0; me < n; ++me) {
      ASSERT_EQ(schedules[me].rounds.size(), schedules[0].rounds.size());
      for (const Transfer& send : schedules[me].rounds[round].sends) {
        for (int c = send.first; c < send.first + send.count; ++c) {
          const bool added = sent.emplace(std::tuple(me, send.peer, c), (*chunks)[me][c]).second;
          EXPECT_TRUE(added) << "chunk " << c << " twice from " << me << " to " << send.peer;
        }
      }
    }
    for (int me = 0; me < n; ++me) {
      const Round& now = schedules[me].rounds[round];
      for (const Transfer& receive : now.receives) {
        for (int c = receive.first; c < receive.first + receive.count; ++c) {
          const auto found = sent.find({receive.peer, me, c});
          ASSERT_NE(found, sent.end()) << "round " << round << ": " << me << " waits for chunk "
                                       << c << " of " << receive.peer;
          Content& own = (*chunks)[me][c];
          if (now.reduces) {
            own.insert(found->second.begin(), found->second.end());
          } else {
            own = found->second;
          }
          sent.erase(found);
        }
      }
    }
    EXPECT_TRUE(sent.empty()) << "round " << round << ": something was sent that nobody takes";
  }
}

std::vector<Schedule> SchedulesOf(CollectiveKind kind, Algorithm algorithm,
                                  const Topology& topology) {
  std::vector<Schedule> all;
  for (int me = 0; me < topology.num_tasks(); ++me)
    all.push_back(MakeSchedule(kind, algorithm, topology, me, 0));
  return all;
}

void CheckReduce(Algorithm algorithm, const Topology& topology) {
  const int n = topology.num_tasks();
  SCOPED_TRACE(std::string(AlgorithmName(algorithm)) + " of " + std::to_string(n));
  const std::vector<Schedule> schedules = SchedulesOf(CollectiveKind::kReduce, algorithm, topology);
  const auto num_chunks = static_cast<size_t>(schedules[0].num_chunks);
  std::vector<std::vector<Content>> chunks(static_cast<size_t>(n));
  Content everybody;
  for (int me = 0; me < n; ++me) {
    chunks[me].assign(num_chunks, Content{me});
    everybody.insert(me);
  }
  RunAll(schedules, &chunks);
  for (int me = 0; me < n; ++me) {
    for (const Content& chunk : chunks[me]) EXPECT_EQ(chunk, everybody) << "at " << me;
  }
}

TEST(ScheduleTest, AllReduceGivesEverybodyEverythingOnce) {
  for (int n = 2; n <= 17; ++n) {
    CheckReduce(Algorithm::kDirect, OneHostEach(n));
    CheckReduce(Algorithm::kParts, OneHostEach(n));
    CheckReduce(Algorithm::kRing, OneHostEach(n));
    CheckReduce(Algorithm::kHub, OneHostEach(n));
    CheckReduce(Algorithm::kHalvingDoubling, OneHostEach(n));
  }
}

// What was reduced is reduced again in its place: that works for two terms, not for more.
TEST(ScheduleTest, NoChunkIsReducedAgainWithSeveral) {
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kParts, Algorithm::kRing,
                                    Algorithm::kHalvingDoubling, Algorithm::kHierarchical}) {
    for (const Topology& topology :
         {OneHostEach(7), OneHostEach(8), Topology{{"a", "a", "a", "b", "b", "b"}}}) {
      for (const Schedule& schedule : SchedulesOf(CollectiveKind::kReduce, algorithm, topology)) {
        std::set<int> reduced;
        for (const Round& round : schedule.rounds) {
          std::map<int, int> terms;
          for (const Transfer& receive : round.receives) {
            for (int c = receive.first; c < receive.first + receive.count; ++c) ++terms[c];
          }
          for (const auto& [chunk, count] : terms) {
            if (!round.reduces) continue;
            EXPECT_TRUE(count == 1 || !reduced.contains(chunk)) << AlgorithmName(algorithm);
            reduced.insert(chunk);
          }
        }
      }
    }
  }
}

TEST(ScheduleTest, HierarchicalReducesWithinHostsFirst) {
  CheckReduce(Algorithm::kHierarchical, {{"a", "a", "b", "b"}});
  CheckReduce(Algorithm::kHierarchical, {{"a", "b", "a", "c", "b", "a"}});
  CheckReduce(Algorithm::kHierarchical, {{"a", "a", "a"}});
  CheckReduce(Algorithm::kHierarchical, OneHostEach(5));
  const Topology topology{{"a", "b", "a", "b"}};
  const Schedule member = MakeSchedule(CollectiveKind::kReduce, Algorithm::kHierarchical, topology,
                                       /*me=*/3, /*root=*/0);
  for (const Round& round : member.rounds) {
    for (const Transfer& send : round.sends) EXPECT_EQ(send.peer, 1);
  }
}

TEST(ScheduleTest, ScatterAndGatherGiveEachTaskItsOwn) {
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing}) {
    for (int n = 2; n <= 9; ++n) {
      SCOPED_TRACE(std::string(AlgorithmName(algorithm)) + " of " + std::to_string(n));
      std::vector<std::vector<Content>> chunks(static_cast<size_t>(n));
      Content everybody;
      for (int me = 0; me < n; ++me) {
        chunks[me].assign(static_cast<size_t>(n), Content{me});
        everybody.insert(me);
      }
      RunAll(SchedulesOf(CollectiveKind::kReduceScatter, algorithm, OneHostEach(n)), &chunks);
      for (int me = 0; me < n; ++me) EXPECT_EQ(chunks[me][me], everybody);

      for (int me = 0; me < n; ++me) {
        chunks[me].assign(static_cast<size_t>(n), Content{});
        chunks[me][me] = {me};
      }
      RunAll(SchedulesOf(CollectiveKind::kGather, algorithm, OneHostEach(n)), &chunks);
      for (int me = 0; me < n; ++me) {
        for (int c = 0; c < n; ++c) EXPECT_EQ(chunks[me][c], Content{c});
      }
    }
  }
}

TEST(ScheduleTest, AllToAllTakesEachChunkToItsTask) {
  for (int n = 2; n <= 6; ++n) {
    std::vector<std::vector<Content>> chunks(static_cast<size_t>(n));
    for (int me = 0; me < n; ++me) {
      chunks[me].assign(static_cast<size_t>(n * n), Content{});
      for (int to = 0; to < n; ++to) chunks[me][me * n + to] = {me * n + to};
    }
    RunAll(SchedulesOf(CollectiveKind::kAllToAll, Algorithm::kDirect, OneHostEach(n)), &chunks);
    for (int me = 0; me < n; ++me) {
      for (int from = 0; from < n; ++from)
        EXPECT_EQ(chunks[me][from * n + me], Content{from * n + me});
    }
  }
}

TEST(ScheduleTest, ATreeReachesEverybodyOnceFromAnyRoot) {
  for (int n = 2; n <= 17; ++n) {
    for (int root = 0; root < n; ++root) {
      std::vector<int> parent(static_cast<size_t>(n), -1);
      for (int me = 0; me < n; ++me) {
        const Schedule schedule =
            MakeSchedule(CollectiveKind::kBroadcast, Algorithm::kTree, OneHostEach(n), me, root);
        for (const Transfer& send : schedule.rounds[1].sends) {
          EXPECT_EQ(parent[send.peer], -1) << send.peer << " gets it twice";
          parent[send.peer] = me;
        }
      }
      for (int me = 0; me < n; ++me) {
        const Schedule schedule =
            MakeSchedule(CollectiveKind::kBroadcast, Algorithm::kTree, OneHostEach(n), me, root);
        const std::vector<Transfer>& from = schedule.rounds[0].receives;
        if (me == root) {
          EXPECT_TRUE(from.empty());
        } else {
          ASSERT_EQ(from.size(), 1u);
          EXPECT_EQ(from[0].peer, parent[me]);
        }
      }
    }
  }
}

TEST(ScheduleTest, SizeAndTopologyChoose) {
  const auto reduce = [](int64_t bytes, const Topology& topology, absl::string_view hint = "auto") {
    return ChooseAlgorithm(CollectiveKind::kReduce, bytes, topology, hint);
  };
  EXPECT_EQ(reduce(1 << 20, OneHostEach(1)), Algorithm::kNone);
  EXPECT_EQ(reduce(1024, OneHostEach(4)), Algorithm::kDirect);
  EXPECT_EQ(reduce(128 << 10, OneHostEach(4)), Algorithm::kHalvingDoubling);
  EXPECT_EQ(reduce(8 << 20, OneHostEach(4)), Algorithm::kRing);
  EXPECT_EQ(reduce(8 << 20, {{"a", "a", "b", "b"}}), Algorithm::kHierarchical);
  EXPECT_EQ(reduce(8 << 20, {{"a", "a", "a", "a"}}), Algorithm::kParts);
  EXPECT_EQ(reduce(1024, OneHostEach(4), "ring"), Algorithm::kRing);
  EXPECT_EQ(reduce(1024, OneHostEach(4), "nccl"), Algorithm::kDirect);
  EXPECT_EQ(ChooseAlgorithm(CollectiveKind::kBroadcast, 1, OneHostEach(3), "ring"),
            Algorithm::kTree);
}

}  // namespace
}  // namespace weft::collective
