// SPDX-License-Identifier: Apache-2.0
#include "platform/object/quantity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

TEST(QuantityTest, ReadsWhatKubernetesWrites) {
  const std::pair<Json, int64_t> rows[] = {{Json(2), 2000},
                                           {Json("2"), 2000},
                                           {Json("500m"), 500},
                                           {Json("1.5"), 1500},
                                           {Json(0.1), 100},
                                           {Json("1k"), 1000000},
                                           {Json("1e3"), 1000000},
                                           {Json("1Ki"), 1024000},
                                           {Json("0"), 0},
                                           {Json("100u"), 1},
                                           {Json("1.5Gi"), int64_t{1536} * 1024 * 1024 * 1000}};
  for (const auto& [json, thousandths] : rows) {
    EXPECT_EQ(ParseQuantity(json).value_or(-1), thousandths) << json.Dump();
  }
}

TEST(QuantityTest, RefusesTheRest) {
  for (const Json& json : {Json("0,1,3"), Json(""), Json("Gi"), Json("1Gb"), Json("-1"), Json("1e"),
                           Json("1e400"), Json(true), Json(), Json::MakeArray(), Json("nan")}) {
    EXPECT_FALSE(ParseQuantity(json).ok()) << json.Dump();
  }
  EXPECT_THAT(std::string(ParseQuantity(Json("0,1,3")).status().message()),
              HasSubstr("holds \"0,1,3\", a quantity is allowed"));
}

TEST(QuantityTest, WritesTheShortest) {
  EXPECT_EQ(FormatQuantity(2000, false), "2");
  EXPECT_EQ(FormatQuantity(1500, false), "1500m");
  EXPECT_EQ(FormatQuantity(int64_t{3} * 1024 * 1024 * 1024 * 1000, true), "3Gi");
  EXPECT_EQ(FormatQuantity(int64_t{1536} * 1024 * 1000, true), "1536Ki");
  EXPECT_EQ(FormatQuantity(0, true), "0");
}

// As kube-apiserver keeps them.
TEST(QuantityTest, IsKeptInItsShortestForm) {
  const std::pair<Json, const char*> rows[] = {{Json("1.5"), "1500m"},
                                               {Json("1000m"), "1"},
                                               {Json("1.5Gi"), "1536Mi"},
                                               {Json("1024Mi"), "1Gi"},
                                               {Json("1000"), "1k"},
                                               {Json(1500), "1500"},
                                               {Json("1e3"), "1e3"},
                                               {Json("10e2"), "1e3"},
                                               {Json("0.5Gi"), "512Mi"},
                                               {Json("0"), "0"},
                                               {Json("0.1m"), "100u"},
                                               {Json("-1"), "-1"},
                                               {Json("0.5Ki"), "512"},
                                               {Json("0.1Ki"), "102400m"},
                                               {Json("1E"), "1E"},
                                               {Json("0.0000000001"), "1n"},
                                               {Json(".5"), "500m"},
                                               {Json("5."), "5"},
                                               {Json("1024"), "1024"},
                                               {Json("100Ei"), "9223372036854775807"},
                                               {Json("1234567890123"), "1234567890123"}};
  for (const auto& [json, shortest] : rows) {
    const auto quantity = Quantity::Parse(json);
    ASSERT_TRUE(quantity.ok()) << json.Dump();
    EXPECT_EQ(quantity->ToString(), shortest) << json.Dump();
  }
}

}  // namespace
}  // namespace weft::platform
