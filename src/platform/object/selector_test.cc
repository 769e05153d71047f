// SPDX-License-Identifier: Apache-2.0
#include "platform/object/selector.h"

#include <gtest/gtest.h>

namespace weft::platform {
namespace {

const Json& Object() {
  static const auto* const object = new Json(
      Json::Parse(
          R"({"metadata":{"name":"x","labels":{"app":"a","n":"5","empty":""}},"status":{"phase":"Running"}})")
          .value());
  return *object;
}

TEST(SelectorTest, MatchesLabels) {
  const std::pair<const char*, bool> cases[] = {{"", true},
                                                {"app=a", true},
                                                {"app==a", true},
                                                {"app=b", false},
                                                {"app!=b", true},
                                                {"none!=b", true},
                                                {"app", true},
                                                {"none", false},
                                                {"!none", true},
                                                {"!app", false},
                                                {"app in (a, b)", true},
                                                {"app in (c)", false},
                                                {"none in (a)", false},
                                                {"app notin (a)", false},
                                                {"none notin (a)", true},
                                                {"n>4", true},
                                                {"n<5", false},
                                                {"app>1", false},
                                                {"app=a,n=5", true},
                                                {"app=a, n=6", false},
                                                {"empty=", true},
                                                {"app in (a,b),n in (5,6),!gone", true},
                                                {"none=", false}};
  for (const auto& [text, want] : cases) {
    const StatusOr<Selector> selector = Selector::ParseLabels(text);
    ASSERT_TRUE(selector.ok()) << text << " " << selector.status();
    EXPECT_EQ(selector->Matches(Object()), want) << text;
  }
}

TEST(SelectorTest, MatchesFields) {
  const std::pair<const char*, bool> cases[] = {{"metadata.name=x", true},
                                                {"metadata.name!=x", false},
                                                {"status.phase=Running,metadata.name=x", true},
                                                {"spec.nodeName=", true},
                                                {"spec.nodeName!=n", true}};
  for (const auto& [text, want] : cases) {
    const StatusOr<Selector> selector = Selector::ParseFields(text);
    ASSERT_TRUE(selector.ok()) << text << " " << selector.status();
    EXPECT_EQ(selector->Matches(Object()), want) << text;
  }
}

TEST(SelectorTest, RefusesMalformedOnes) {
  for (const char* text : {"=a", "a in b", "a in (b", "a within (b)", "a b", ",", "a=b=c", "a=b,",
                           "sp ace=1", "(a)"}) {
    const StatusOr<Selector> selector = Selector::ParseLabels(text);
    EXPECT_TRUE(absl::IsInvalidArgument(selector.status())) << text;
  }
  EXPECT_FALSE(Selector::ParseFields("metadata.name").ok());
  EXPECT_FALSE(Selector::ParseLabels(std::string(100000, 'a')).ok());
}

}  // namespace
}  // namespace weft::platform
