// SPDX-License-Identifier: Apache-2.0
#include "platform/object/update_staleness.h"

#include <gtest/gtest.h>

namespace weft::platform {
namespace {

TEST(UpdateStalenessTest, ReadsTheLinesOfServers) {
  for (
      const char* line : {
          "Staleness of 240 updates: mean 1.25, highest 4",
          "I1121 09:12:07.123456 4711 status_page.cc:68] Staleness of 240 updates: mean 1.25, "
          "highest 4",
          R"({"level":"INFO","message":"Staleness of 240 updates: mean 1.25, highest 4","task":0})",
      }) {
    const std::optional<UpdateStaleness> read = UpdateStaleness::FromLine(line);
    ASSERT_TRUE(read.has_value()) << line;
    EXPECT_EQ(read->Describe().Dump(), R"({"mean":1.25,"highest":4,"updates":240})");
  }
  for (const char* line : {
           "",
           "Staleness of ",
           "Staleness of bread",
           "Staleness of 240 updates: mean x, highest 4",
           "Staleness of 0 updates: mean 0, highest 0",
           "Staleness of 2 updates: mean nan, highest 4",
           "Staleness of 2 updates: mean 5, highest 4",
           "Staleness of 2 updates: mean 1, highest",
           "Staleness of -2 updates: mean 1, highest 1",
       }) {
    EXPECT_FALSE(UpdateStaleness::FromLine(line).has_value()) << line;
  }
}

TEST(UpdateStalenessTest, SeveralServersAreOne) {
  UpdateStaleness all;
  all.Add({.updates = 30, .mean = 1, .highest = 2});
  all.Add({.updates = 10, .mean = 3, .highest = 9});
  EXPECT_EQ(all.Describe().Dump(), R"({"mean":1.5,"highest":9,"updates":40})");
  EXPECT_EQ(UpdateStaleness::FromJson(all.Describe())->Describe().Dump(), all.Describe().Dump());
}

TEST(UpdateStalenessTest, NonsenseIsNothing) {
  for (const char* text :
       {"3", "{}", R"({"mean":1,"highest":2})", R"({"mean":"1","highest":2,"updates":3})",
        R"({"mean":1,"highest":-2,"updates":3})"}) {
    EXPECT_FALSE(UpdateStaleness::FromJson(Json::Parse(text).value()).has_value()) << text;
  }
}

}  // namespace
}  // namespace weft::platform
