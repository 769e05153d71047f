// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "base/clock.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json FromText(absl::string_view text) { return Json::Parse(text).value(); }

Json PodWith(absl::string_view container, absl::string_view spec = "{}") {
  Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})");
  SetField(&pod, {"spec"}, FromText(spec));
  Json main = FromText(container);
  main.Set("name", "main");
  main.Set("image", "i:1");
  SetField(&pod, {"spec", "containers"}, Json(Json::Array{main}));
  return pod;
}

class RulesTest : public ::testing::Test {
 protected:
  RulesTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
  }
  StatusOr<ObjectPtr> Create(const ResourceType& type, Json object, bool is_strict = true) {
    WriteOptions options;
    options.is_strict = is_strict;
    return store_->Create(type, "default", std::move(object), options);
  }
  // "field: reason" of each.
  std::vector<std::string> CausesOf(const Json& pod) {
    const Json answer = StatusObject(Create(Pods(), pod).status());
    std::vector<std::string> causes;
    const Json* const list = FindField(answer, {"details", "causes"});
    if (list == nullptr) return causes;
    for (const Json& cause : list->items())
      causes.push_back(
          absl::StrCat(StringField(cause, {"field"}), ": ", StringField(cause, {"reason"})));
    return causes;
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(RulesTest, KeepsNoNamesThatLeadElsewhere) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const std::string name : {"../../outside", "/etc", "..", "a.b", "A"}) {
      Json pod = PodWith("{}");
      Json container = FindField(pod, {"spec", "containers"})->items()[0];
      container.Set("name", name);
      SetField(&pod, {"spec", list}, Json(Json::Array{container}));
      const Status status = Create(Pods(), pod).status();
      EXPECT_EQ(HttpCodeOf(status), 422) << name;
      EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("spec.", list, "[0].name: Invalid")));
    }
  }
}

TEST_F(RulesTest, ReadsNoFieldThatAPodDoesNotHave) {
  const Json pod = PodWith("{}", R"({"tolerations":[{"key":"a","operater":"Exists"}]})");
  const Status refused = Create(Pods(), pod).status();
  EXPECT_EQ(HttpCodeOf(refused), 400);
  EXPECT_EQ(
      refused.message(),
      "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field "
      "\"spec.tolerations[0].operater\"");
  // Who does not want to know gets the pod without it.
  const auto kept = Create(Pods(), pod, /*is_strict=*/false);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(FindField(**kept, {"spec", "tolerations"})->items()[0].Find("operater"), nullptr);
}

TEST_F(RulesTest, NamesTheFieldsThatAreWrong) {
  EXPECT_THAT(
      CausesOf(PodWith(R"({"resources":{"limits":{"cpu":"1","nvidia.com/gpu":"500m"},
                                   "requests":{"cpu":"2","nvidia.com/gpu":"500m"}}})")),
      ElementsAre("spec.containers[0].resources.limits[nvidia.com/gpu]: FieldValueInvalid",
                  "spec.containers[0].resources.requests: FieldValueInvalid",
                  "spec.containers[0].resources.requests[nvidia.com/gpu]: FieldValueInvalid"));
  EXPECT_THAT(CausesOf(PodWith(R"({"resources":{"requests":{"nvidia.com/gpu":1}}})")),
              ElementsAre("spec.containers[0].resources.limits: FieldValueRequired"));
  EXPECT_THAT(CausesOf(PodWith("{}", R"({"restartPolicy":"Sometimes"})")),
              ElementsAre("spec.restartPolicy: FieldValueNotSupported"));
  EXPECT_THAT(CausesOf(PodWith(R"({"ports":[{"containerPort":1,"name":"a"},
                                            {"containerPort":2,"name":"a"}]})")),
              ElementsAre("spec.containers[0].ports[1].name: FieldValueDuplicate"));
  Json labeled = PodWith("{}");
  SetField(&labeled, {"metadata", "labels", "a b"}, "c d");
  EXPECT_THAT(CausesOf(labeled), ElementsAre("metadata.labels: FieldValueInvalid",
                                             "metadata.labels: FieldValueInvalid"));
}

TEST_F(RulesTest, KeepsQuantitiesAndRequestsAsAServer) {
  const auto made = Create(
      Pods(),
      PodWith(
          R"({"resources":{"limits":{"cpu":1.5,"memory":"1024Mi"},"requests":{"cpu":"1000m"}}})"));
  ASSERT_TRUE(made.ok()) << made.status();
  const Json* const resources =
      FindField(FindField(**made, {"spec", "containers"})->items()[0], {"resources"});
  EXPECT_EQ(resources->Dump(),
            R"({"limits":{"cpu":"1500m","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}})");
}

TEST_F(RulesTest, PrioritiesHaveTheirClasses) {
  const auto critical =
      Create(Pods(), PodWith("{}", R"({"priorityClassName":"system-node-critical"})"));
  ASSERT_TRUE(critical.ok()) << critical.status();
  EXPECT_EQ(IntField(**critical, {"spec", "priority"}), 2000001000);
  const Status unknown =
      Create(Pods(), PodWith("{}", R"({"priorityClassName":"missing"})")).status();
  EXPECT_EQ(HttpCodeOf(unknown), 403);
  EXPECT_THAT(unknown.message(), HasSubstr("no PriorityClass with name missing was found"));
}

TEST_F(RulesTest, WhatIsSaidToStayDoes) {
  const ResourceType& maps = *FindResource("", "configmaps");
  ASSERT_TRUE(
      Create(maps, FromText(R"({"metadata":{"name":"m"},"immutable":true,"data":{"a":"b"}})"))
          .ok());
  for (const char* patch : {R"({"data":{"a":"c"}})", R"({"immutable":false})"}) {
    const Status status =
        store_->Patch(maps, {"default", "m"}, PatchKind::kMerge, FromText(patch), {}).status();
    EXPECT_EQ(HttpCodeOf(status), 422);
    EXPECT_THAT(status.message(), HasSubstr("field is immutable when `immutable` is set"));
  }
  EXPECT_TRUE(store_
                  ->Patch(maps, {"default", "m"}, PatchKind::kMerge,
                          FromText(R"({"metadata":{"labels":{"a":"b"}}})"), {})
                  .ok());
}

}  // namespace
}  // namespace weft::platform
