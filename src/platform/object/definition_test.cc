// SPDX-License-Identifier: Apache-2.0
#include "platform/object/definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform {
namespace {

const ResourceType& TypeOf(absl::string_view id) {
  static const auto* const types = new std::vector<ResourceType>(KindCatalogue());
  for (const ResourceType& type : *types) {
    if (type.Id() == id) return type;
  }
  ADD_FAILURE() << "there is no kind " << id;
  return types->front();
}

TEST(DefinitionTest, FilesAreWrittenFromTheKinds) {
  RealFileSystem files;
  for (const char* name : {"tfjobs", "tensorflows"}) {
    const ResourceType& type =
        TypeOf(std::string(name) == "tfjobs" ? "tfjobs.kubeflow.org"
                                             : "tensorflows.krallistic.github.com");
    const std::string path = absl::StrCat(WEFT_SOURCE_ROOT, "/deploy/crds/", name, ".yaml");
    const StatusOr<std::string> kept = ReadFile(files, path, 4 << 20);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(*kept, DefinitionFile(type))
        << path << " is not what `weft crd " << name << "` prints";
    const auto read = ParseYaml(*kept, path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(SameJson((*read)[0], MakeDefinition(type)));
  }
}

TEST(DefinitionTest, VersionsAreOrderedAsClustersOrderThem) {
  std::vector<std::string> versions = {"foo10", "v1",       "v3beta1",   "v11alpha2",
                                       "foo1",  "v2",       "v12alpha1", "v10beta3",
                                       "v10",   "v11beta2", "v1a",       "v01"};
  std::sort(versions.begin(), versions.end(), IsPreferredVersion);
  EXPECT_THAT(versions,
              ::testing::ElementsAre("v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1",
                                     "v12alpha1", "v11alpha2", "foo1", "foo10", "v01", "v1a"));
}

TEST(DefinitionTest, ADefinitionReadsBackAsTheKind) {
  const ResourceType& type = TypeOf("tensorflows.krallistic.github.com");
  Problems problems("");
  const ResourceType read = ReadDefinition(MakeDefinition(type), &problems);
  EXPECT_TRUE(problems.empty()) << problems.ToStatus();
  EXPECT_EQ(read.Id(), type.Id());
  EXPECT_EQ(read.kind, type.kind);
  EXPECT_EQ(read.singular, type.singular);
  EXPECT_EQ(read.short_names, type.short_names);
  EXPECT_EQ(read.categories, type.categories);
  EXPECT_EQ(read.versions, type.versions);
  EXPECT_EQ(read.version, type.version);
  EXPECT_EQ(read.has_status, type.has_status);
  EXPECT_EQ(read.scale_path, type.scale_path);
  EXPECT_EQ(read.scale_status_path, type.scale_status_path);
  ASSERT_EQ(read.columns.size(), type.columns.size());
  for (size_t i = 0; i < read.columns.size(); ++i) {
    EXPECT_EQ(read.columns[i].name, type.columns[i].name);
    EXPECT_EQ(read.columns[i].path, type.columns[i].path);
  }
}

TEST(DefinitionTest, TemplatesAreThoseOfPods) {
  const Json schema = TemplateSchema();
  const Json* const containers =
      FindField(schema, {"properties", "spec", "properties", "containers"});
  ASSERT_NE(containers, nullptr);
  EXPECT_EQ(IntField(*containers, {"minItems"}), 1);
  EXPECT_EQ(StringField(*containers, {"items", "properties", "image", "type"}), "string");
  EXPECT_EQ(FindField(schema, {"properties", "spec", "properties", "ephemeralContainers"}),
            nullptr);
}

}  // namespace
}  // namespace weft::platform
