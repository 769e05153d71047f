// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/admission.h"

#include <gtest/gtest.h>

#include "gmock/gmock.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

Json Object(const std::string& kind, const std::string& api_version, const std::string& spec) {
  Json object;
  object.Set("apiVersion", api_version);
  object.Set("kind", kind);
  SetField(&object, {"metadata", "name"}, "job");
  object.Set("spec", Json::Parse(spec).value());
  return object;
}

Json Compact(const std::string& spec) {
  return Object("Tensorflow", "krallistic.github.com/v1", spec);
}

Json TfJobOf(const std::string& container, const std::string& policy = "{}") {
  return Object("TFJob", "kubeflow.org/v1",
                absl::StrCat(R"({"runPolicy":)", policy,
                             R"(,"tfReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[)",
                             container, "]}}}}}"));
}

// "allowed", or why not.
std::string Review(const Json& object, const Json& old = Json()) {
  Json review;
  review.Set("apiVersion", "admission.k8s.io/v1");
  review.Set("kind", "AdmissionReview");
  SetField(&review, {"request", "uid"}, "u1");
  SetField(&review, {"request", "object"}, object);
  SetField(&review, {"request", "oldObject"}, old);
  const StatusOr<Json> answer = ReviewAdmission(review);
  if (!answer.ok()) return std::string(answer.status().message());
  EXPECT_EQ(StringField(*answer, {"apiVersion"}), "admission.k8s.io/v1");
  EXPECT_EQ(StringField(*answer, {"response", "uid"}), "u1");
  if (BoolField(*answer, {"response", "allowed"})) return "allowed";
  EXPECT_EQ(IntField(*answer, {"response", "status", "code"}), 422);
  return StringField(*answer, {"response", "status", "message"});
}

TEST(AdmissionTest, LetsGoodJobsIn) {
  EXPECT_EQ(Review(Compact(R"({"image":"i"})")), "allowed");
  EXPECT_EQ(Review(TfJobOf(R"({"name":"tensorflow","image":"i"})")), "allowed");
  Json generated = Compact(R"({"image":"i"})");
  EraseField(&generated, {"metadata", "name"});
  SetField(&generated, {"metadata", "generateName"}, "job-");
  EXPECT_EQ(Review(generated), "allowed");
  EXPECT_EQ(Review(Object("Pod", "v1", "{}")), "allowed");
}

TEST(AdmissionTest, RefusesWhatASchemaDoesNotSee) {
  EXPECT_THAT(
      Review(TfJobOf(R"({"name":"tensorflow","image":"i","comand":["a"]})")),
      HasSubstr("spec.tfReplicaSpecs.Worker.template.spec.containers[0].comand: there is no "
                "such field. Did you mean 'command'?"));
  EXPECT_THAT(Review(TfJobOf(R"({"name":"tensorflow"})")),
              HasSubstr("containers[0].image: Required value"));
  EXPECT_THAT(Review(Compact(R"({"image":"i","tensorboard":{"active":true}})")),
              HasSubstr("spec.tensorboard.folder: missing"));
}

TEST(AdmissionTest, WhatIsThereMayGo) {
  Json bad = Compact(R"({"worker_count":1})");
  EXPECT_NE(Review(bad), "allowed");
  EXPECT_EQ(Review(bad, bad), "allowed");
  Json worse = Compact(R"({"worker_count":2})");
  EXPECT_NE(Review(worse, bad), "allowed");
  SetField(&worse, {"metadata", "deletionTimestamp"}, "2023-11-14T22:13:20Z");
  EXPECT_EQ(Review(worse, bad), "allowed");
}

TEST(AdmissionTest, SomeFieldsStay) {
  const char container[] = R"({"name":"tensorflow","image":"i"})";
  EXPECT_THAT(
      Review(TfJobOf(container, R"({"schedulingPolicy":{"queue":"b"}})"),
             TfJobOf(container, R"({"schedulingPolicy":{"queue":"a"}})")),
      HasSubstr(
          "spec.runPolicy.schedulingPolicy.queue: holds \"b\", \"a\" is allowed: it does not"));
}

TEST(AdmissionTest, NonsenseIsNoReview) {
  for (const char* text : {"{}", "[]", "1", R"({"kind":"AdmissionReview"})", R"({"request":{}})"}) {
    EXPECT_FALSE(ReviewAdmission(Json::Parse(text).value()).ok()) << text;
  }
}

}  // namespace
}  // namespace weft::platform
