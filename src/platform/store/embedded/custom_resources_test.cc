// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/custom_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

Json ReadText(absl::string_view text) { return Json::Parse(text).value(); }

constexpr char kDefinition[] = R"({"apiVersion":"apiextensions.k8s.io/v1",
  "kind":"CustomResourceDefinition","metadata":{"name":"queues.example.com"},
  "spec":{"group":"example.com","scope":"Namespaced",
    "names":{"plural":"queues","kind":"Queue","shortNames":["qu"]},
    "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
      "additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"}],
      "schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
        "spec":{"type":"object","required":["size"],"properties":{
          "size":{"type":"integer","minimum":1,"maximum":9},
          "mode":{"type":"string","enum":["fair","strict"],"default":"fair"},
          "weights":{"type":"object","additionalProperties":{"type":"integer"}}}},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})";

class CustomResourcesTest : public ::testing::Test {
 protected:
  CustomResourcesTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    const auto made = store_->Create(Definitions(), "", ReadText(kDefinition), {});
    EXPECT_TRUE(made.ok()) << made.status();
  }
  ~CustomResourcesTest() override { WithdrawResource("queues.example.com"); }

  StatusOr<ObjectPtr> Create(const char* spec, bool is_strict = true) {
    Json queue =
        ReadText(R"({"apiVersion":"example.com/v1","kind":"Queue","metadata":{"name":"q"}})");
    queue.Set("spec", ReadText(spec));
    WriteOptions options;
    options.is_strict = is_strict;
    return store_->Create(*FindKind("example.com", "Queue"), "default", queue, options);
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(CustomResourcesTest, ServesTheKindOfADefinition) {
  const ResourceType* const type = FindResourceByWord("qu");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->ApiVersion(), "example.com/v1");
  EXPECT_TRUE(type->has_status);
  ASSERT_EQ(type->columns.size(), 1u);
  EXPECT_EQ(type->columns[0].path, ".spec.size");
  const ObjectPtr definition = store_->Get(Definitions(), {"", "queues.example.com"}).value();
  EXPECT_EQ(FindField(*definition, {"status", "conditions"})->size(), 2u);
  const auto made = Create(R"({"size":3})");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(StringField(**made, {"spec", "mode"}), "fair");
  Json patch = ReadText(R"({"spec":{"size":4},"status":{"depth":7}})");
  WriteOptions of_status;
  of_status.subresource = "status";
  const ObjectPtr told =
      store_->Patch(*type, {"default", "q"}, PatchKind::kMerge, patch, of_status).value();
  EXPECT_EQ(IntField(*told, {"spec", "size"}), 3);
  EXPECT_EQ(IntField(*told, {"status", "depth"}), 7);
}

TEST_F(CustomResourcesTest, HoldsObjectsAgainstTheSchema) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({})", "spec.size: Required value"},
      {R"({"size":0})", "spec.size in body should be greater than or equal to 1"},
      {R"({"size":"many"})", "spec.size in body must be of type integer: \"string\""},
      {R"({"size":1,"mode":"odd"})",
       "Unsupported value: \"odd\": supported values: \"fair\", \"strict\""},
      {R"({"size":1,"weights":{"a":"b"}})", "spec.weights.a in body must be of type integer"}};
  for (const auto& [spec, why] : rows) {
    const Status status = Create(spec).status();
    EXPECT_EQ(HttpCodeOf(status), 422) << spec;
    EXPECT_THAT(status.message(), HasSubstr(why));
  }
  const Status unknown = Create(R"({"size":1,"sise":2})").status();
  EXPECT_EQ(HttpCodeOf(unknown), 400);
  EXPECT_THAT(unknown.message(), HasSubstr("strict decoding error: unknown field \"spec.sise\""));
  const auto pruned = Create(R"({"size":1,"sise":2})", /*is_strict=*/false);
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(FindField(**pruned, {"spec", "sise"}), nullptr);
}

TEST_F(CustomResourcesTest, ObjectsGoWithTheirDefinition) {
  ASSERT_TRUE(Create(R"({"size":3})").ok());
  const ResourceType* const type = FindKind("example.com", "Queue");
  ASSERT_TRUE(store_->Delete(Definitions(), {"", "queues.example.com"}, {}).ok());
  EXPECT_FALSE(store_->Get(*type, {"default", "q"}).ok());
  EXPECT_EQ(FindKind("example.com", "Queue"), nullptr);
}

TEST_F(CustomResourcesTest, RefusesDefinitionsThatMakeNoSense) {
  Json other = ReadText(kDefinition);
  SetField(&other, {"metadata", "name"}, "other.example.com");
  const Status status = store_->Create(Definitions(), "", other, {}).status();
  EXPECT_EQ(HttpCodeOf(status), 422);
  EXPECT_THAT(status.message(), HasSubstr("must be spec.names.plural+\".\"+spec.group"));
  // A kind of this program stays as it is.
  Json ours = ReadText(kDefinition);
  SetField(&ours, {"metadata", "name"}, "tfjobs.kubeflow.org");
  SetField(&ours, {"spec", "group"}, "kubeflow.org");
  SetField(&ours, {"spec", "names"}, ReadText(R"({"plural":"tfjobs","kind":"TFJob"})"));
  ASSERT_TRUE(store_->Create(Definitions(), "", ours, {}).ok());
  EXPECT_EQ(FindResource("kubeflow.org", "tfjobs"), &TfJobs());
  EXPECT_EQ(TfJobs().versions.size(), 2u);
}

}  // namespace
}  // namespace weft::platform
