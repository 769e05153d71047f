// SPDX-License-Identifier: Apache-2.0
// One spec makes a kind: what a client sees of it follows from there.
#include "platform/object/kind_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "platform/apiserver/discovery.h"
#include "platform/apiserver/request_path.h"
#include "platform/apiserver/table.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/store/resource.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void DefaultLoom(const Json* old, const std::string& version, Json* loom) {
  SetDefault(loom, {"spec", "threads"}, 4);
  if (old == nullptr) SetDefault(loom, {"spec", "made"}, version);
}

void CheckLoom(const Json* old, const Json& loom, Problems* problems) {
  const int64_t threads = IntField(loom, {"spec", "threads"});
  if (threads < 1) problems->Invalid(loom, "spec.threads", threads, "must be at least 1");
  if (old != nullptr && IntField(*old, {"spec", "threads"}) > threads)
    problems->Forbidden(loom, "spec.threads", "may not shrink");
}

Json LoomSchema(const std::string& /*version*/) {
  Json schema;
  schema.Set("type", "object");
  SetField(&schema, {"properties", "spec", "type"}, "object");
  SetField(&schema, {"properties", "spec", "properties", "threads", "description"}, "How many.");
  return schema;
}

Json WidthCell(const Json& loom, absl::Time /*now*/) {
  return absl::StrCat(IntField(loom, {"spec", "threads"}), " threads");
}

class KindSpecTest : public ::testing::Test {
 protected:
  KindSpecTest() {
    RegisterResource(KindSpec("crafts.example.com", "v2", "looms", "Loom")
                         .Served({"v2", "v1"})
                         .ShortNames({"lm"})
                         .Categories({"crafts"})
                         .HasStatus()
                         .Scale(".spec.threads", ".status.threads")
                         .Serves("pattern", "Pattern", {"get"})
                         .SelectableBy({"spec.made"})
                         .Named(&LabelNameProblems)
                         .Defaults(&DefaultLoom)
                         .Check(&CheckLoom)
                         .Schema(&LoomSchema)
                         .Column("Width", &WidthCell)
                         .Count("Woven", ".status.woven")
                         .Age()
                         .Wide("Made", ".spec.made")
                         .Build());
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    type_ = FindResourceByWord("lm");
  }
  ~KindSpecTest() override { WithdrawResource("looms.crafts.example.com"); }

  StatusOr<ObjectPtr> Create(const char* name, const char* spec) {
    Json loom;
    loom.Set("apiVersion", "crafts.example.com/v1");
    loom.Set("kind", "Loom");
    SetField(&loom, {"metadata", "name"}, name);
    loom.Set("spec", Json::Parse(spec).value());
    return store_->Create(*type_, "default", std::move(loom), {});
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
  const ResourceType* type_ = nullptr;
};

TEST_F(KindSpecTest, IsDiscovered) {
  ASSERT_NE(type_, nullptr);
  EXPECT_EQ(type_, FindKind("crafts.example.com", "Loom"));
  const Json group = DiscoveryPage("/apis/crafts.example.com", "").value();
  EXPECT_EQ(StringField(group, {"preferredVersion", "version"}), "v2");
  std::vector<std::string> names;
  const Json page = DiscoveryPage("/apis/crafts.example.com/v1", "").value();
  for (const Json& resource : page.Find("resources")->items())
    names.push_back(StringField(resource, {"name"}) + " " + StringField(resource, {"kind"}));
  EXPECT_THAT(names, ElementsAre("looms Loom", "looms/status Loom", "looms/scale Scale",
                                 "looms/pattern Pattern"));
  EXPECT_EQ(page.Find("resources")->items()[0].Find("shortNames")->Dump(), R"(["lm"])");
  const auto path =
      ParseRequestPath("/apis/crafts.example.com/v2/namespaces/default/looms/a/pattern");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(path->type, type_);
}

TEST_F(KindSpecTest, IsExplained) {
  const Json page = OpenApiV3("crafts.example.com", "v2");
  const Json* const schema =
      FindField(page, {"components", "schemas", "com.example.crafts.v2.Loom"});
  ASSERT_NE(schema, nullptr);
  EXPECT_EQ(StringField(*schema, {"properties", "spec", "properties", "threads", "description"}),
            "How many.");
  EXPECT_NE(FindField(*schema, {"properties", "metadata", "properties", "name"}), nullptr);
}

TEST_F(KindSpecTest, IsDefaultedAndChecked) {
  const auto made = Create("a", "{}");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(IntField(**made, {"spec", "threads"}), 4);
  EXPECT_EQ(StringField(**made, {"spec", "made"}), "v1");
  const Status small = Create("b", R"({"threads":0})").status();
  EXPECT_EQ(HttpCodeOf(small), 422);
  EXPECT_THAT(small.message(), HasSubstr("spec.threads: Invalid value: 0: must be at least 1"));
  EXPECT_EQ(HttpCodeOf(Create("a.b", "{}").status()), 422);
  const Json shrunk = Json::Parse(R"({"spec":{"threads":2}})").value();
  const Status fixed =
      store_->Patch(*type_, {"default", "a"}, PatchKind::kMerge, shrunk, {}).status();
  EXPECT_THAT(fixed.message(), HasSubstr("spec.threads: Forbidden: may not shrink"));
}

TEST_F(KindSpecTest, IsListedByItsFields) {
  ASSERT_TRUE(Create("a", "{}").ok());
  ListOptions options;
  options.namespace_name = "default";
  options.field_selector = "spec.made=v1";
  EXPECT_EQ(store_->List(*type_, options).value().items.size(), 1u);
  options.field_selector = "spec.threads=4";
  EXPECT_EQ(HttpCodeOf(store_->List(*type_, options).status()), 400);
}

TEST_F(KindSpecTest, HasItsColumns) {
  const ObjectPtr loom = Create("a", "{}").value();
  const Json table =
      MakeTable(*type_, {loom}, clock_.Now() + absl::Seconds(90), true, RowObject::kNone);
  std::vector<std::string> names;
  for (const Json& column : table.Find("columnDefinitions")->items())
    names.push_back(StringField(column, {"name"}));
  EXPECT_THAT(names, ElementsAre("Name", "Width", "Woven", "Age", "Made"));
  EXPECT_EQ(table.Find("rows")->items()[0].Find("cells")->Dump(),
            R"(["a","4 threads",0,"90s","v1"])");
}

}  // namespace
}  // namespace weft::platform
