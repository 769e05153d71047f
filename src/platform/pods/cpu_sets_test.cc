// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/cpu_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"

namespace weft::platform {
namespace {

using Processors = std::vector<int>;

ProcessorWish Own(int64_t count, const std::string& job = "") {
  return {count, count * 1000, job, 0};
}
ProcessorWish AtMost(int64_t thousandths, const std::string& job = "") {
  return {0, thousandths, job, 0};
}
ProcessorWish OfJob(int64_t count, const std::string& job) { return {0, 0, job, count}; }

// `nodes` NUMA nodes with `cores` cores each, two threads a core, a cache for each four cores. As
// on most machines, the second threads have the higher numbers.
ProcessorTopology MakeTopology(int nodes, int cores) {
  ProcessorTopology topology;
  const int all = nodes * cores;
  for (int i = 0; i < 2 * all; ++i) {
    const int core = i % all;
    topology[i] = {core / cores, core / 4, core};
  }
  return topology;
}

Processors Numbers(int count) {
  Processors numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(CpuSetsTest, OwnOnesAreTakenFromTheShared) {
  CpuSets sets({0, 1, 2, 3});
  sets.Take("free", {});
  EXPECT_EQ(sets.ShareOf("free"), (ProcessorShare{{0, 1, 2, 3}, false}));
  sets.Take("own", Own(2));
  EXPECT_EQ(sets.ShareOf("own"), (ProcessorShare{{0, 1}, true}));
  EXPECT_EQ(sets.ShareOf("free"), (ProcessorShare{{2, 3}, false}));
  sets.Take("other", Own(1));
  EXPECT_EQ(sets.ShareOf("other"), (ProcessorShare{{2}, true}));
  sets.Release("own");
  EXPECT_EQ(sets.ShareOf("free"), (ProcessorShare{{0, 1, 3}, false}));
}

TEST(CpuSetsTest, OneIsLeftForOthers) {
  CpuSets sets({4, 5});
  sets.Take("greedy", Own(2));
  EXPECT_EQ(sets.ShareOf("greedy"), (ProcessorShare{{4, 5}, false}));
  sets.Take("modest", Own(1));
  EXPECT_TRUE(sets.ShareOf("modest").is_own);
  EXPECT_EQ(sets.ShareOf("greedy").processors, Processors({5}));
  sets.Take("late", Own(1));
  EXPECT_EQ(sets.ShareOf("late"), (ProcessorShare{{5}, false}));
}

TEST(CpuSetsTest, LimitsAreSpreadOut) {
  CpuSets sets({0, 1, 2, 3});
  sets.Take("a", AtMost(500));
  sets.Take("b", AtMost(1500));
  sets.Take("c", AtMost(1000));
  EXPECT_EQ(sets.ShareOf("a").processors, Processors({0}));
  EXPECT_EQ(sets.ShareOf("b").processors, Processors({1, 2}));
  EXPECT_EQ(sets.ShareOf("c").processors, Processors({3}));
  sets.Take("d", AtMost(64000));
  EXPECT_EQ(sets.ShareOf("d").processors, Processors({0, 1, 2, 3}));
  // Who has to go goes to the least used one; who need not stays.
  sets.Release("d");
  sets.Take("own", Own(1));
  EXPECT_EQ(sets.ShareOf("own").processors, Processors({0}));
  EXPECT_EQ(sets.ShareOf("b").processors, Processors({1, 2}));
  EXPECT_EQ(sets.ShareOf("a").processors.size(), 1u);
  EXPECT_NE(sets.ShareOf("a").processors, Processors({0}));
}

// Two sockets of eight cores: 0-7 and their second threads 16-23, 8-15 and 24-31.
TEST(CpuSetsTest, OwnOnesAreOfOneNodeAndCache) {
  CpuSets sets(Numbers(32), MakeTopology(2, 8));
  sets.Take("a", Own(4, "one"));
  // Whole cores.
  EXPECT_EQ(sets.ShareOf("a").processors, Processors({0, 1, 16, 17}));
  sets.Take("b", Own(4, "two"));
  // Another job: on the other node, which has more room.
  EXPECT_EQ(sets.ShareOf("b").processors, Processors({8, 9, 24, 25}));
  EXPECT_EQ(sets.NumaNodesOf(sets.ShareOf("b").processors), Processors({1}));
  // Those of a job beside each other, under one cache.
  sets.Take("a2", Own(4, "one"));
  EXPECT_EQ(sets.ShareOf("a2").processors, Processors({2, 3, 18, 19}));
  sets.Take("b2", Own(2, "two"));
  EXPECT_EQ(sets.ShareOf("b2").processors, Processors({10, 26}));
  // Larger than the room beside its job: elsewhere in one piece.
  sets.Take("b3", Own(8, "two"));
  EXPECT_EQ(sets.NumaNodesOf(sets.ShareOf("b3").processors), Processors({1}));
  EXPECT_EQ(sets.ShareOf("b3").processors, Processors({12, 13, 14, 15, 28, 29, 30, 31}));
  // Larger than what any node has left: from both.
  sets.Take("wide", Own(9));
  EXPECT_EQ(sets.ShareOf("wide").processors.size(), 9u);
  EXPECT_TRUE(sets.ShareOf("wide").is_own);
  // What ends leaves its place.
  for (const char* id : {"a", "a2", "b", "b2", "b3", "wide"}) sets.Release(id);
  EXPECT_EQ(sets.ShareOf("anybody").processors, Numbers(32));
}

TEST(CpuSetsTest, OddOnesDoNotTearCores) {
  CpuSets sets(Numbers(8), MakeTopology(1, 4));
  sets.Take("a", Own(1, "one"));
  EXPECT_EQ(sets.ShareOf("a").processors, Processors({0}));
  // As long as there are cores of which nobody has a part.
  sets.Take("b", Own(1, "two"));
  EXPECT_EQ(sets.ShareOf("b").processors, Processors({1}));
  sets.Take("c", Own(3, "two"));
  EXPECT_EQ(sets.ShareOf("c").processors, Processors({2, 3, 6}));
}

TEST(CpuSetsTest, AJobSharesItsOwn) {
  CpuSets sets({0, 1});
  sets.Take("a-ps", OfJob(1, "a"));
  sets.Take("a-worker", OfJob(1, "a"));
  EXPECT_EQ(sets.ShareOf("a-ps"), (ProcessorShare{{0}, true}));
  EXPECT_EQ(sets.ShareOf("a-worker"), (ProcessorShare{{0}, true}));
  // One is left for all others, of whom the second job is one: together all the same.
  sets.Take("b-ps", OfJob(1, "b"));
  sets.Take("b-worker", OfJob(1, "b"));
  EXPECT_EQ(sets.ShareOf("b-ps"), (ProcessorShare{{1}, false}));
  EXPECT_EQ(sets.ShareOf("b-worker"), (ProcessorShare{{1}, false}));
  // It stays the job's while one of them runs.
  sets.Release("a-worker");
  EXPECT_EQ(sets.ShareOf("anybody").processors, Processors({1}));
  sets.Take("a-worker", OfJob(1, "a"));
  EXPECT_EQ(sets.ShareOf("a-worker").processors, Processors({0}));
  sets.Release("a-worker");
  sets.Release("a-ps");
  EXPECT_EQ(sets.ShareOf("anybody").processors, Processors({0, 1}));
}

TEST(CpuSetsTest, PartsOfProcessorsGoByJob) {
  CpuSets sets({0, 1});
  sets.Take("a-ps", AtMost(500, "a"));
  sets.Take("b-ps", AtMost(500, "b"));
  sets.Take("a-worker", AtMost(500, "a"));
  sets.Take("b-worker", AtMost(500, "b"));
  EXPECT_EQ(sets.ShareOf("a-ps").processors, Processors({0}));
  EXPECT_EQ(sets.ShareOf("a-worker").processors, Processors({0}));
  EXPECT_EQ(sets.ShareOf("b-ps").processors, Processors({1}));
  EXPECT_EQ(sets.ShareOf("b-worker").processors, Processors({1}));
}

// 128 cores, all taken one by one: a choice looks at each once.
TEST(CpuSetsTest, LargeMachinesAreNoMatter) {
  CpuSets sets(Numbers(256), MakeTopology(8, 16));
  for (int i = 0; i < 255; ++i) sets.Take(std::to_string(i), Own(1, std::to_string(i / 8)));
  EXPECT_EQ(sets.ShareOf("254").processors.size(), 1u);
  EXPECT_TRUE(sets.ShareOf("254").is_own);
  EXPECT_EQ(sets.ShareOf("anybody").processors.size(), 1u);
}

TEST(CpuSetsTest, WhoWantsOwnOnes) {
  const auto wish = [](const char* quality, const char* limit) {
    Json pod;
    SetField(&pod, {"status", "qosClass"}, quality);
    Json container;
    SetField(&container, {"resources", "limits", "cpu"}, limit);
    return ReadProcessorWish(pod, container);
  };
  EXPECT_EQ(wish("Guaranteed", "2").own, 2);
  EXPECT_EQ(wish("Guaranteed", "2000m").own, 2);
  EXPECT_EQ(wish("Guaranteed", "1500m").own, 0);
  EXPECT_EQ(wish("Guaranteed", "1500m").limit_thousandths, 1500);
  EXPECT_EQ(wish("Burstable", "2").own, 0);
  EXPECT_EQ(ReadProcessorWish(Json(), Json()).limit_thousandths, 0);
  Json pod;
  SetField(&pod, {"metadata", "uid"}, "u");
  SetField(&pod, {"metadata", "annotations", kJobProcessorsAnnotation}, "2");
  EXPECT_EQ(ReadProcessorWish(pod, Json()).job_own, 2);
  EXPECT_EQ(ReadProcessorWish(pod, Json()).job, "u");
  SetField(&pod, {"metadata", "annotations", kJobProcessorsAnnotation}, "many");
  EXPECT_EQ(ReadProcessorWish(pod, Json()).job_own, 0);
  EXPECT_THAT(ReadProcessorWish(pod, Json()).problem, testing::HasSubstr("holds \"many\""));
}

TEST(CpuSetsTest, Format) {
  EXPECT_EQ(FormatProcessors({}), "");
  EXPECT_EQ(FormatProcessors({3}), "3");
  EXPECT_EQ(FormatProcessors({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace weft::platform
