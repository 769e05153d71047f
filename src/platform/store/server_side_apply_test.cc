// SPDX-License-Identifier: Apache-2.0
#include "platform/store/server_side_apply.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/field_sets.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Parse(const char* text) { return Json::Parse(text).value(); }

FieldManager Manager(const std::string& name) { return {name, "v1", "", absl::UnixEpoch()}; }

StatusOr<Json> Apply(const std::string& manager, const Json* live, const char* applied,
                     bool is_forced = false) {
  return ApplyFields(*FindResource("", "configmaps"), live, Parse(applied), Manager(manager),
                     is_forced);
}

std::vector<std::string> FieldsOfManager(const Json& object, const std::string& manager) {
  for (const Json& entry : FindField(object, {"metadata", "managedFields"})->items()) {
    if (StringField(entry, {"manager"}) == manager) return FieldPaths(*entry.Find("fieldsV1"));
  }
  return {};
}

TEST(FieldSetsTest, NamesFieldsAndItems) {
  const Json object = Parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u",
      "labels":{"a":"b"},"finalizers":["x"]},"spec":{"containers":[{"name":"c","image":"i","args":["1","2"]}]}})");
  EXPECT_EQ(
      FieldsOf(object).Dump(),
      R"x({"f:metadata":{"f:labels":{"f:a":{}},"f:finalizers":{"v:\"x\"":{}}},)x"
      R"x("f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:name":{},"f:image":{},"f:args":{},".":{}}}}})x");
  Json other = object;
  SetField(&other, {"metadata", "labels", "a"}, "c");
  SetField(&other, {"spec", "nodeName"}, "n");
  EXPECT_THAT(FieldPaths(ChangedFields(object, other)),
              ElementsAre(".metadata.labels.a", ".spec.nodeName"));
  EXPECT_THAT(FieldPaths(FieldsWithout(FieldsOf(other), FieldsOf(object))),
              ElementsAre(".spec.nodeName"));
  EXPECT_THAT(
      FieldPaths(CommonFields(FieldsOf(other), FieldsOf(Parse(R"({"spec":{"nodeName":"m"}})")))),
      ElementsAre(".spec.nodeName"));
}

TEST(ServerSideApplyTest, TwoManagersShareAnObject) {
  const Json first =
      Apply("one", nullptr, R"({"metadata":{"name":"m"},"data":{"a":"1","b":"1"}})").value();
  EXPECT_THAT(FieldsOfManager(first, "one"), ElementsAre(".data.a", ".data.b"));
  // What both want alike both have.
  const Json second =
      Apply("two", &first, R"({"metadata":{"name":"m"},"data":{"b":"1","c":"2"}})").value();
  EXPECT_EQ(FindField(second, {"data"})->Dump(), R"({"a":"1","b":"1","c":"2"})");
  EXPECT_THAT(FieldsOfManager(second, "two"), ElementsAre(".data.b", ".data.c"));
  // What one leaves out goes, but not what the other has too.
  const Json third = Apply("one", &second, R"({"metadata":{"name":"m"},"data":{}})").value();
  EXPECT_EQ(FindField(third, {"data"})->Dump(), R"({"b":"1","c":"2"})");
}

TEST(ServerSideApplyTest, WhoeverTakesAnothersFieldIsTold) {
  const Json first =
      Apply("one", nullptr, R"({"metadata":{"name":"m"},"data":{"a":"1","b":"1"}})").value();
  const Status conflict =
      Apply("two", &first, R"({"metadata":{"name":"m"},"data":{"a":"2","b":"2"}})").status();
  EXPECT_TRUE(IsConflict(conflict));
  EXPECT_THAT(
      std::string(conflict.message()),
      HasSubstr("Apply failed with 2 conflicts: conflict with \"one\" using v1: .data.a, .data.b"));
  const Json causes = *FindField(StatusObject(conflict), {"details", "causes"});
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(StringField(causes.items()[0], {"reason"}), "FieldManagerConflict");
  const Json forced =
      Apply("two", &first, R"({"metadata":{"name":"m"},"data":{"a":"2"}})", true).value();
  EXPECT_EQ(FindField(forced, {"data"})->Dump(), R"({"a":"2","b":"1"})");
  EXPECT_THAT(FieldsOfManager(forced, "one"), ElementsAre(".data.b"));
  EXPECT_THAT(FieldsOfManager(forced, "two"), ElementsAre(".data.a"));
}

TEST(ServerSideApplyTest, NothingChangesTwice) {
  const char* const wish = R"({"metadata":{"name":"m"},"data":{"a":"1"}})";
  const Json first = Apply("one", nullptr, wish).value();
  EXPECT_TRUE(SameJson(Apply("one", &first, wish).value(), first));
}

TEST(ServerSideApplyTest, WritesOfOthersAreKeptToo) {
  const Json first =
      Apply("one", nullptr, R"({"metadata":{"name":"m"},"data":{"a":"1","b":"1"}})").value();
  Json edited = first;
  SetField(&edited, {"data", "a"}, "by hand");
  edited.FindMutable("data")->Erase("b");
  SetField(&edited, {"metadata", "managedFields"},
           FieldsAfterUpdate(first, edited, Manager("editor")));
  EXPECT_THAT(FieldsOfManager(edited, "one"), IsEmpty());
  EXPECT_THAT(FieldsOfManager(edited, "editor"), ElementsAre(".data.a"));
  EXPECT_THAT(std::string(Apply("one", &edited, R"({"metadata":{"name":"m"},"data":{"a":"1"}})")
                              .status()
                              .message()),
              HasSubstr("conflict with \"editor\""));
  // An object that nobody applies keeps no account.
  EXPECT_TRUE(FieldsAfterUpdate(Parse(R"({"data":{}})"), edited, Manager("x")).is_null());
}

TEST(ServerSideApplyTest, WhatWasThereBeforeBelongsToItsPast) {
  const Json live = Parse(R"({"metadata":{"name":"m"},"data":{"a":"1","z":"9"}})");
  EXPECT_THAT(
      std::string(
          Apply("one", &live, R"({"metadata":{"name":"m"},"data":{"a":"2"}})").status().message()),
      HasSubstr("conflict with \"before-first-apply\" using v1: .data.a"));
  const Json taken = Apply("one", &live, R"({"metadata":{"name":"m"},"data":{"a":"1"}})").value();
  EXPECT_EQ(FindField(taken, {"data"})->Dump(), R"({"a":"1","z":"9"})");
}

TEST(ServerSideApplyTest, ListsWithAKeyMergeByItem) {
  const Json first = Apply("one", nullptr, R"({"metadata":{"name":"p"},"spec":{"containers":[
      {"name":"a","image":"1"},{"name":"b","image":"1"}]}})")
                         .value();
  const Json second = Apply("two", &first, R"({"metadata":{"name":"p"},"spec":{"containers":[
      {"name":"a","workingDir":"/"}]}})")
                          .value();
  EXPECT_EQ(FindField(second, {"spec", "containers"})->Dump(),
            R"([{"name":"a","image":"1","workingDir":"/"},{"name":"b","image":"1"}])");
  const Json third = Apply("one", &second, R"({"metadata":{"name":"p"},"spec":{"containers":[
      {"name":"a","image":"2"}]}})")
                         .value();
  EXPECT_EQ(FindField(third, {"spec", "containers"})->Dump(),
            R"([{"name":"a","image":"2","workingDir":"/"}])");
}

TEST(ServerSideApplyTest, AManifestHoldsNoAccount) {
  EXPECT_EQ(
      HttpCodeOf(Apply("one", nullptr, R"({"metadata":{"name":"m","managedFields":[]}})").status()),
      400);
}

}  // namespace
}  // namespace weft::platform
