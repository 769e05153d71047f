// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/cpu_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using Processors = std::vector<int>;

ProcessorWish Own(int64_t count) { return {count, count * 1000}; }
ProcessorWish AtMost(int64_t thousandths) { return {0, thousandths}; }

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
}

TEST(CpuSetsTest, Format) {
  EXPECT_EQ(FormatProcessors({}), "");
  EXPECT_EQ(FormatProcessors({3}), "3");
  EXPECT_EQ(FormatProcessors({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace weft::platform
