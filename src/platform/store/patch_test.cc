// SPDX-License-Identifier: Apache-2.0
#include "platform/store/patch.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

Json Parsed(absl::string_view text) { return Json::Parse(text).value(); }

void ExpectPatch(PatchKind kind, absl::string_view target, absl::string_view patch,
                 absl::string_view want) {
  const StatusOr<Json> got = ApplyPatch(kind, Parsed(target), Parsed(patch));
  ASSERT_TRUE(got.ok()) << got.status() << " for " << patch;
  EXPECT_TRUE(SameJson(*got, Parsed(want))) << got->Dump() << "\nwanted " << want;
}

TEST(MergePatchTest, FollowsTheStandardsOwnTable) {
  const char* const cases[][3] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& row : cases) ExpectPatch(PatchKind::kMerge, row[0], row[1], row[2]);
  EXPECT_EQ(HttpCodeOf(ApplyPatch(PatchKind::kMerge, Parsed("{}"), Parsed("[1]")).status()), 400);
}

TEST(JsonPatchTest, IsBounded) {
  std::string doubling = "[";
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&doubling, i == 0 ? "" : ",", R"({"op":"copy","from":"/a","path":"/a/x)", i,
                    "\"}");
  }
  const Status bomb =
      ApplyPatch(PatchKind::kJson, Parsed(R"({"a":{"text":"some"}})"), Parsed(doubling + "]"))
          .status();
  EXPECT_EQ(HttpCodeOf(bomb), 413) << bomb;
  // What is deeper than may be read must not be kept.
  std::string deepening = "[";
  std::string path = "/a";
  for (int i = 0; i < 70; ++i, absl::StrAppend(&path, "/a")) {
    absl::StrAppend(&deepening, i == 0 ? "" : ",", R"({"op":"add","path":")", path,
                    R"(","value":{}})");
  }
  const Status deep = ApplyPatch(PatchKind::kJson, Parsed("{}"), Parsed(deepening + "]")).status();
  EXPECT_EQ(HttpCodeOf(deep), 422) << deep;
}

TEST(JsonPatchTest, DoesEachOperation) {
  ExpectPatch(PatchKind::kJson, R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])",
              R"({"a":1,"b":2})");
  ExpectPatch(PatchKind::kJson, R"({"l":[1,3]})", R"([{"op":"add","path":"/l/1","value":2},
      {"op":"add","path":"/l/-","value":4}])",
              R"({"l":[1,2,3,4]})");
  ExpectPatch(PatchKind::kJson, R"({"a/b":{"~":1}})",
              R"([{"op":"replace","path":"/a~1b/~0","value":2}])", R"({"a/b":{"~":2}})");
  ExpectPatch(PatchKind::kJson, R"({"l":[1,2]})", R"([{"op":"remove","path":"/l/0"}])",
              R"({"l":[2]})");
  ExpectPatch(PatchKind::kJson, R"({"a":1})", R"([{"op":"move","from":"/a","path":"/b"},
      {"op":"copy","from":"/b","path":"/c"},{"op":"test","path":"/c","value":1}])",
              R"({"b":1,"c":1})");
}

TEST(JsonPatchTest, RefusesWhatDoesNotFit) {
  const std::pair<const char*, int> cases[] = {
      {R"([{"op":"test","path":"/a","value":2}])", 422},
      {R"([{"op":"remove","path":"/none"}])", 422},
      {R"([{"op":"replace","path":"/l/9","value":1}])", 422},
      {R"([{"op":"add","path":"/a/b","value":1}])", 422},
      {R"([{"op":"remove","path":"/l/-"}])", 422},
      {R"([{"op":"jump","path":"/a"}])", 400},
      {R"([{"op":"add","path":"/a"}])", 400},
      {R"([{"op":"add","path":"a","value":1}])", 400},
      {R"([{"op":"add","value":1}])", 400},
      {R"({"op":"add"})", 400},
      {R"([{"op":"add","path":"/l/-1","value":1}])", 422},
      {R"([7])", 400},
      {R"([{"op":"remove","path":""}])", 422}};
  for (const auto& [patch, code] : cases) {
    const StatusOr<Json> got =
        ApplyPatch(PatchKind::kJson, Parsed(R"({"a":1,"l":[1,2]})"), Parsed(patch));
    EXPECT_EQ(HttpCodeOf(got.status()), code) << patch << " " << got.status();
  }
}

TEST(StrategicPatchTest, MergesListsByTheirKeys) {
  ExpectPatch(PatchKind::kStrategic,
              R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"}]}})",
              R"({"spec":{"containers":[{"name":"a","image":"2"},{"name":"c"}]}})",
              R"({"spec":{"containers":[{"name":"a","image":"2"},{"name":"b"},{"name":"c"}]}})");
  ExpectPatch(PatchKind::kStrategic, R"({"containers":[{"name":"a"},{"name":"b"}]})",
              R"({"containers":[{"$patch":"delete","name":"a"}]})",
              R"({"containers":[{"name":"b"}]})");
  ExpectPatch(PatchKind::kStrategic, R"({"containers":[{"name":"a"},{"name":"b"}]})",
              R"({"containers":[{"$patch":"replace"},{"name":"z"}]})",
              R"({"containers":[{"name":"z"}]})");
  ExpectPatch(
      PatchKind::kStrategic, R"({"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]})",
      R"({"$setElementOrder/env":[{"name":"B"},{"name":"A"}],"env":[{"name":"B","value":"3"}]})",
      R"({"env":[{"name":"B","value":"3"},{"name":"A","value":"1"}]})");
  ExpectPatch(PatchKind::kStrategic, R"({"ports":[{"port":80,"name":"a"}]})",
              R"({"ports":[{"port":80,"name":"b"},{"port":81}]})",
              R"({"ports":[{"port":80,"name":"b"},{"port":81}]})");
}

TEST(StrategicPatchTest, KnowsPlainListsAndDirectives) {
  ExpectPatch(PatchKind::kStrategic, R"({"command":["a","b"]})", R"({"command":["c"]})",
              R"({"command":["c"]})");
  ExpectPatch(PatchKind::kStrategic, R"({"finalizers":["a"]})", R"({"finalizers":["b"]})",
              R"({"finalizers":["a","b"]})");
  ExpectPatch(PatchKind::kStrategic, R"({"finalizers":["a","b"]})",
              R"({"$deleteFromPrimitiveList/finalizers":["a"]})", R"({"finalizers":["b"]})");
  ExpectPatch(PatchKind::kStrategic, R"({"s":{"a":1,"b":2}})",
              R"({"s":{"$retainKeys":["b","c"],"c":3}})", R"({"s":{"b":2,"c":3}})");
  ExpectPatch(PatchKind::kStrategic, R"({"s":{"a":1}})", R"({"s":{"$patch":"replace","b":2}})",
              R"({"s":{"b":2}})");
  ExpectPatch(PatchKind::kStrategic, R"({"s":{"a":1},"t":1})",
              R"({"s":{"$patch":"delete"},"t":null})", R"({})");
}

TEST(StrategicPatchTest, RefusesItemsWithoutTheirKey) {
  EXPECT_EQ(HttpCodeOf(ApplyPatch(PatchKind::kStrategic, Parsed("{}"),
                                  Parsed(R"({"containers":[{"image":"x"}]})"))
                           .status()),
            400);
}

}  // namespace
}  // namespace weft::platform
