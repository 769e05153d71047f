// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/json_query.h"

#include <gtest/gtest.h>

namespace weft::platform {
namespace {

// What GJSON's own documentation answers.
constexpr char kPeople[] = R"({"name":{"first":"Tom","last":"Anderson"},"age":37,
  "friends":[{"first":"Dale","last":"Murphy","age":44,"nets":["ig","fb","tw"]},
             {"first":"Roger","last":"Craig","age":68,"nets":["fb","tw"]},
             {"first":"Jane","last":"Murphy","age":47,"nets":["ig","tw"]}]})";

std::string Ask(const char* text, const char* query) {
  const auto found = QueryJson(Json::Parse(text).value(), query);
  if (!found.ok()) return "error";
  return found->has_value() ? (*found)->Dump() : "none";
}

TEST(JsonQueryTest, QueriesOfItsDocumentation) {
  EXPECT_EQ(Ask(kPeople, "name.last"), "\"Anderson\"");
  EXPECT_EQ(Ask(kPeople, "friends.#"), "3");
  EXPECT_EQ(Ask(kPeople, "friends.1.first"), "\"Roger\"");
  EXPECT_EQ(Ask(kPeople, "friends.#.first"), R"(["Dale","Roger","Jane"])");
  EXPECT_EQ(Ask(kPeople, R"(friends.#(last=="Murphy").first)"), "\"Dale\"");
  EXPECT_EQ(Ask(kPeople, R"(friends.#(last=="Murphy")#.first)"), R"(["Dale","Jane"])");
  EXPECT_EQ(Ask(kPeople, "friends.#(age>45)#.last"), R"(["Craig","Murphy"])");
  EXPECT_EQ(Ask(kPeople, R"(friends.#(first%"D*").last)"), "\"Murphy\"");
  EXPECT_EQ(Ask(kPeople, R"(friends.#(first!%"D*").last)"), "\"Craig\"");
  EXPECT_EQ(Ask(kPeople, R"(friends.#(nets.#(=="fb"))#.first)"), R"(["Dale","Roger"])");
  EXPECT_EQ(Ask(kPeople, R"(friends.#(last=="Murphy")#|#(age>45)#)"),
            R"([{"first":"Jane","last":"Murphy","age":47,"nets":["ig","tw"]}])");
  EXPECT_EQ(Ask(kPeople, "friends.7"), "none");
  EXPECT_EQ(Ask(kPeople, "friends.#(last==\"None\")"), "none");
}

TEST(JsonQueryTest, ConditionsOfJobsAndPods) {
  const char* const complete = R"(status.conditions.#(type=="Complete")#|#(status=="True")#)";
  const auto of = [&](const char* text) {
    return FirstFound(QueryJson(Json::Parse(text).value(), complete).value()).has_value();
  };
  EXPECT_TRUE(of(R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})"));
  EXPECT_FALSE(of(R"({"status":{"conditions":[{"type":"Complete","status":"False"}]}})"));
  EXPECT_FALSE(of(R"({"status":{"conditions":[{"type":"Failed","status":"True"}]}})"));
  EXPECT_FALSE(of(R"({})"));
  EXPECT_EQ(Ask(R"({"status":{"phase":"Succeeded"}})", R"(status.#(phase=="Succeeded")#)"),
            R"([{"phase":"Succeeded"}])");
}

TEST(JsonQueryTest, WhatMakesNoSenseIsAnError) {
  for (const char* query : {"friends.#(age==1", "name..b", "", "#(x)y", "friends.#(age==x)#"})
    EXPECT_EQ(Ask(kPeople, query), "error") << query;
}

}  // namespace
}  // namespace weft::platform
