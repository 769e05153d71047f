// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/algorithm_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::collective {
namespace {

using ::testing::HasSubstr;

TEST(AlgorithmTableTest, IsWhatItsTextSays) {
  const StatusOr<AlgorithmTable> table = AlgorithmTable::Parse(
      "weft all-reduce table 1\n# comment\n\n4 1 32768 direct\n4 1 1048576 halving-doubling\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows.size(), 2U);
  const StatusOr<AlgorithmTable> again = AlgorithmTable::Parse(table->ToText());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToText(), table->ToText());
}

TEST(AlgorithmTableTest, DamagedTextIsToldByItsLine) {
  const auto message = [](absl::string_view text) {
    return std::string(AlgorithmTable::Parse(text).status().message());
  };
  EXPECT_THAT(message(""), HasSubstr("there is nothing"));
  EXPECT_THAT(message("4 1 10 direct\n"), HasSubstr("line 1: expected 'weft all-reduce table 1'"));
  const std::string title = "weft all-reduce table 1\n";
  EXPECT_THAT(message(title + "4 1 10"), HasSubstr("line 2: expected 'tasks hosts bytes"));
  EXPECT_THAT(message(title + "4 1 10 best"), HasSubstr("no algorithm 'best'"));
  EXPECT_THAT(message(title + "4 9 10 ring"), HasSubstr("4 tasks on 9 hosts"));
  EXPECT_THAT(message(title + "4 1 10 tree"), HasSubstr("no algorithm 'tree'"));
}

TEST(AlgorithmTableTest, MembersChooseByWhatTheyAreTold) {
  const StatusOr<AlgorithmTable> table = AlgorithmTable::Parse(
      "weft all-reduce table 1\n3 1 1000 ring\n3 1 100 halving-doubling\n3 2 5000 direct\n"
      "2 1 1000 direct\n");
  ASSERT_TRUE(table.ok()) << table.status();
  CollectiveMessage news;
  table->Tell(3, &news);
  EXPECT_EQ(news.choice_size(), 3);
  Topology topology{.hosts = {"a", "a", "a"}};
  topology.measured = AlgorithmTable::Told(news, topology);
  const auto choose = [&](int64_t bytes, absl::string_view hint = "auto") {
    return ChooseAlgorithm(CollectiveKind::kReduce, bytes, topology, hint);
  };
  EXPECT_EQ(choose(100), Algorithm::kHalvingDoubling);
  EXPECT_EQ(choose(101), Algorithm::kRing);
  EXPECT_EQ(choose(100, "direct"), Algorithm::kDirect);  // who says it decides
  Topology unmeasured{.hosts = {"a", "a", "a"}};
  EXPECT_EQ(choose(1001), ChooseAlgorithm(CollectiveKind::kReduce, 1001, unmeasured,
                                          "auto"));  // beyond the table
  EXPECT_EQ(ChooseAlgorithm(CollectiveKind::kBroadcast, 10, topology, "auto"), Algorithm::kTree);
  topology.hosts = {"a", "a", "b"};
  EXPECT_EQ(AlgorithmTable::Told(news, topology).size(), 1U);
  topology.hosts = {"a", "b", "c"};
  EXPECT_TRUE(AlgorithmTable::Told(news, topology).empty());
}

}  // namespace
}  // namespace weft::collective
