// SPDX-License-Identifier: Apache-2.0
#include "net/json.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string JsonErrorOf(absl::string_view text, const JsonLimits& limits = {}) {
  const StatusOr<Json> json = Json::Parse(text, limits);
  return json.ok() ? "OK" : std::string(json.status().message());
}

TEST(JsonTest, ParsesAndDumpsEveryKind) {
  const std::string text =
      R"({"a":[1,-2.5,true,false,null,"x\"\\\n\u00e9"],"b":{},"c":[],"big":9223372036854775807,"e":1e300})";
  const Json json = Json::Parse(text).value();
  EXPECT_EQ(
      json.Dump(),
      R"({"a":[1,-2.5,true,false,null,"x\"\\\né"],"b":{},"c":[],"big":9223372036854775807,"e":1e+300})");
  EXPECT_EQ(Json::Parse(json.Dump()).value(), json);
  EXPECT_EQ(Json::Parse(json.Dump(2)).value(), json);
  EXPECT_EQ(json.Find("a")->items()[1].AsDouble().value(), -2.5);
  EXPECT_EQ(json.Find("big")->AsInt().value(), INT64_MAX);
  EXPECT_EQ(json.Find("none"), nullptr);
  EXPECT_EQ(Json::Parse("18446744073709551615").value().AsDouble().value(), 18446744073709551615.0);
}

TEST(JsonTest, EveryCharacterOfASCIIIsWrittenAsItIsRead) {
  std::string all;
  for (char c = 0; c < 0x7f; ++c) all.push_back(c);
  all.push_back(0x7f);
  EXPECT_EQ(
      Json(all).Dump(),
      R"("\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f)"
      R"(\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f)"
      " !\\\"#$%&'()*+,-./"
      "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f\"");
  EXPECT_EQ(Json::Parse(Json(all).Dump()).value(), Json(all));
}

TEST(JsonTest, CopiesShareLongTexts) {
  const std::string text(5000, 'x');
  Json json;
  json.Set("list", Json(Json::Array{Json(text), Json("short")}));
  const Json copy = json;
  EXPECT_EQ(copy, json);
  EXPECT_EQ(copy.Find("list")->items()[0].text(), json.Find("list")->items()[0].text());
  Json read = Json::Parse(json.Dump()).value();
  EXPECT_EQ(read, json);
  EXPECT_EQ(read.Find("list")->items()[0].kind(), Json::Kind::kString);
  EXPECT_NE(read.Find("list")->items()[0].text(), json.Find("list")->items()[0].text());
  read.ShareLongTexts(json);
  EXPECT_EQ(read.Find("list")->items()[0].text(), json.Find("list")->items()[0].text());
  EXPECT_EQ(read.Dump(), json.Dump());
  // One that differs stays what it is.
  Json other = Json::Parse(json.Dump()).value();
  other.FindMutable("list")->mutable_items()->front() = std::string(5000, 'y');
  other.ShareLongTexts(json);
  EXPECT_NE(other, json);
  EXPECT_EQ(other.Find("list")->items()[0].AsString().value(), std::string(5000, 'y'));
}

TEST(JsonTest, IndentsForPeople) {
  EXPECT_EQ(Json::Parse(R"({"a":[1,{"b":2}],"c":{}})").value().Dump(2),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {}\n}");
}

TEST(JsonTest, KeepsTheOrderOfMembersAndTheirLines) {
  const Json json = Json::Parse("{\"z\": 1,\n \"a\": \"text\",\n\n \"m\": {\"k\": 3\n}}").value();
  EXPECT_EQ(json.members()[0].name, "z");
  EXPECT_EQ(json.members()[0].value.position().line, 1);
  EXPECT_EQ(json.members()[1].value.position().line, 2);
  EXPECT_EQ(json.members()[2].value.position().line, 4);
  EXPECT_EQ(json.Find("m")->Find("k")->position().line, 4);
}

TEST(JsonTest, SaysWhereItIsMalformed) {
  EXPECT_THAT(JsonErrorOf("{\n  \"a\": 1,\n  \"b\" 2}"),
              HasSubstr("line 3, column 7: did not expect"));
  EXPECT_THAT(JsonErrorOf(""), HasSubstr("line 1, column 1: the text ends too early"));
  EXPECT_THAT(JsonErrorOf("[1, 2"), HasSubstr("the text ends too early"));
  EXPECT_THAT(JsonErrorOf("[1] x"), HasSubstr("line 1, column 5"));
  EXPECT_THAT(JsonErrorOf("{\"a\":1,\"a\":2}"), HasSubstr("\"a\" stands twice"));
  EXPECT_THAT(JsonErrorOf("'single'"), HasSubstr("Malformed JSON"));
  EXPECT_THAT(JsonErrorOf("{\"a\":\"\xff\"}"), HasSubstr("Malformed JSON"));
  EXPECT_THAT(JsonErrorOf("1e999999"), HasSubstr("Malformed JSON"));
  EXPECT_THAT(JsonErrorOf(std::string("\0", 1)), HasSubstr("Malformed JSON"));
}

TEST(JsonTest, HoldsItsLimits) {
  const std::string deep(64, '[');
  EXPECT_EQ(JsonErrorOf(deep + std::string(64, ']')), "OK");
  EXPECT_THAT(JsonErrorOf("[" + deep + std::string(65, ']')), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(JsonErrorOf(std::string(1000000, '[')), HasSubstr("nested deeper than 64"));
  JsonLimits limits;
  limits.max_bytes = 3;
  EXPECT_EQ(JsonErrorOf("[1]", limits), "OK");
  EXPECT_THAT(JsonErrorOf("[1] ", limits), HasSubstr("4 bytes, at most 3"));
}

TEST(JsonTest, AccessorsSayWhatTheyFound) {
  const Json json = Json::Parse(R"({"n":12,"s":"t","l":[1,2],"w":2.0,"f":2.5})").value();
  EXPECT_EQ(json.Find("n")->AsString().status().message(), "expected a string, found 12");
  EXPECT_EQ(json.Find("s")->AsInt().status().message(), "expected a whole number, found \"t\"");
  EXPECT_EQ(json.Find("l")->AsBool().status().message(),
            "expected true or false, found a list of 2");
  EXPECT_EQ(json.Find("w")->AsInt().value(), 2);
  EXPECT_FALSE(json.Find("f")->AsInt().ok());
  EXPECT_EQ(json.At("x").status().message(),
            "there is no \"x\", only a mapping with \"n\", \"s\", \"l\", \"w\", \"f\"");
  EXPECT_EQ(json.Find("n")->At("x").status().message(), "expected a mapping, found 12");
}

TEST(JsonTest, BuildsValues) {
  Json json;
  json.Set("a", 1);
  json.Set("b", "two");
  json.Set("a", 2.5);
  Json list;
  list.Append(true);
  json.Set("c", std::move(list));
  EXPECT_EQ(json.Dump(), R"({"a":2.5,"b":"two","c":[true]})");
  EXPECT_EQ(Json(std::nan("")).Dump(), "null");
  EXPECT_EQ(Json("bad\xff").Dump(), "\"bad\xEF\xBF\xBD\"");
}

TEST(JsonTest, IsEditedInPlace) {
  StatusOr<Json> json = Json::Parse(R"({"a": {"b": 1}, "list": [1, 2]})");
  ASSERT_TRUE(json.ok());
  json->FindMutable("a")->Set("c", true);
  json->FindMutable("list")->mutable_items()->pop_back();
  EXPECT_TRUE(json->FindMutable("a")->Erase("b"));
  EXPECT_FALSE(json->FindMutable("a")->Erase("b"));
  EXPECT_EQ(json->FindMutable("none"), nullptr);
  EXPECT_EQ(Json("text").FindMutable("a"), nullptr);
  EXPECT_EQ(json->Dump(), R"({"a":{"c":true},"list":[1]})");
}

}  // namespace
}  // namespace weft
