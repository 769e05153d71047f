// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/controller_fixture_test.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "platform/object/job_annotations.h"

namespace weft::platform {

Json Replica(int64_t replicas, const std::string& policy) {
  Json replica =
      Json::Parse(R"({"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}})")
          .value();
  replica.Set("replicas", replicas);
  if (!policy.empty()) replica.Set("restartPolicy", policy);
  return replica;
}

Json Job(const std::string& version) {
  Json job =
      Json::Parse(R"({"kind":"TFJob","metadata":{"name":"job"},"spec":{"tfReplicaSpecs":{}}})")
          .value();
  job.Set("apiVersion", "kubeflow.org/" + version);
  return job;
}

Json JobOf(std::initializer_list<std::pair<const char*, Json>> replicas,
           const std::string& version) {
  Json job = Job(version);
  for (const auto& [type, replica] : replicas)
    SetField(&job, {"spec", "tfReplicaSpecs", type}, replica);
  return job;
}

Json ServerJob(int64_t pods, int64_t tasks) {
  Json job = JobOf({{"PS", Replica(pods, "OnFailure")}, {"Worker", Replica(1, "")}});
  Json* const servers = job.FindMutable("spec")->FindMutable("tfReplicaSpecs")->FindMutable("PS");
  SetField(servers, {"elasticPolicy", "maxReplicas"}, tasks);
  Json& container = servers->FindMutable("template")
                        ->FindMutable("spec")
                        ->FindMutable("containers")
                        ->mutable_items()
                        ->front();
  container.Set("command", Json(Json::Array{Json("weft"), Json("server")}));
  SetField(&container, {"resources", "requests", "memory"}, "1Gi");
  return job;
}

ControllerFixture::ControllerFixture() {
  EmbeddedStore::Options options;
  options.clock = &clock_;
  store_ = EmbeddedStore::Open(std::move(options)).value();
  options_.store = store_.get();
  options_.clock = &clock_;
  MakeController();
}

void ControllerFixture::MakeController() {
  controller_.reset();
  controller_ = std::make_unique<TfJobController>(options_);
}

void ControllerFixture::Submit(const Json& job) {
  const auto created = store_->Create(*options_.type, "default", job, {});
  ASSERT_TRUE(created.ok()) << created.status();
  Settle();
}

void ControllerFixture::Settle() {
  controller_->Maintain();
  for (int i = 0; i < 100 && controller_->Step(); ++i) {
  }
}

void ControllerFixture::Advance(absl::Duration by) {
  clock_.Advance(by);
  Settle();
}

std::string ControllerFixture::Names(const ResourceType& type) {
  std::vector<std::string> names;
  const ObjectList list = store_->List(type, {"default"}).value();
  for (const ObjectPtr& object : list.items) names.push_back(NameOf(*object));
  return absl::StrJoin(names, " ");
}

Json ControllerFixture::Pod(const std::string& name) {
  return *store_->Get(Pods(), {"default", name}).value();
}

Json ControllerFixture::JobNow() {
  return *store_->Get(*options_.type, {"default", "job"}).value();
}

void ControllerFixture::Fate(const std::string& name, const std::string& phase, int64_t code,
                             int64_t restarts) {
  Json pod = Pod(name);
  SetField(&pod, {"status", "phase"}, phase);
  if (code >= 0) {
    Json status;
    status.Set("name", "tensorflow");
    status.Set("restartCount", restarts);
    if (phase != "Running") SetField(&status, {"state", "terminated", "exitCode"}, code);
    SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{std::move(status)}));
  }
  ASSERT_TRUE(store_->Update(Pods(), pod, {"status"}).ok());
  Settle();
}

void ControllerFixture::Tell(const std::string& name, const std::string& report) {
  Json pod = Pod(name);
  if (FindField(pod, {"metadata", "annotations"}) == nullptr) {
    SetField(&pod, {"metadata", "annotations"}, Json::MakeObject());
  }
  SetField(&pod, {"metadata", "annotations", kProgressAnnotation}, report);
  ASSERT_TRUE(store_->Update(Pods(), pod, {}).ok());
  Settle();
}

std::string ControllerFixture::Conditions() {
  std::vector<std::string> words;
  const Json job = JobNow();
  if (const Json* const conditions = FindField(job, {"status", "conditions"})) {
    for (const Json& condition : conditions->items()) {
      words.push_back(StringField(condition, {"type"}) +
                      (StringField(condition, {"status"}) == "True" ? "+" : "-"));
    }
  }
  return absl::StrJoin(words, " ");
}

Json ControllerFixture::TfConfig(const std::string& pod) {
  const Json object = Pod(pod);
  for (const Json& variable :
       FindField(object, {"spec", "containers"})->items()[0].Find("env")->items()) {
    if (StringField(variable, {"name"}) == "TF_CONFIG")
      return Json::Parse(StringField(variable, {"value"})).value();
  }
  return Json();
}

int64_t ControllerFixture::Revision() {
  int64_t revision = 0;
  EXPECT_TRUE(absl::SimpleAtoi(store_->List(Pods(), {}).value().revision, &revision));
  return revision;
}

}  // namespace weft::platform
