// SPDX-License-Identifier: Apache-2.0
// The controller on a store, with pages that a test writes instead of servers.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "net/yaml.h"
#include "platform/model_servers/model_server_kind.h"
#include "platform/model_servers/server_objects.h"
#include "platform/object/fields.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kServer[] = R"yaml(
apiVersion: weft.dev/v1alpha1
kind: ModelServer
metadata: {name: line}
spec:
  image: weft
  models: [{name: "a$(X)", basePath: /models/line, versions: {specific: [1]}}]
  tlsSecret: line-tls
  tokenSecret: line-tokens
  replicas: 2
  rollout: {steps: [50, 100], stepSeconds: 10, maxErrorPercent: 1}
)yaml";

Json Yaml(absl::string_view text) { return ParseYaml(text, "test").value()[0]; }

class ModelServersTest : public ::testing::Test {
 protected:
  ModelServersTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    StartAnew();
    EXPECT_TRUE(store_->Create(ModelServers(), "default", Yaml(kServer), {}).ok());
  }

  void StartAnew() {
    Controller::Options options;
    options.store = store_.get();
    options.clock = &clock_;
    controller_ = std::make_unique<Controller>(
        options, std::make_unique<ModelServerKind>(
                     store_.get(), [this](const Json& pod) -> StatusOr<std::string> {
                       return pages_[StringField(pod, {"metadata", "labels", kRevisionLabel})];
                     }));
  }

  // All that is to be done now; whatever is wanted of servers is there at once, as a pod a
  // revision.
  void Settle(absl::Duration later = absl::ZeroDuration()) {
    clock_.Advance(later);
    for (int i = 0; i < 20; ++i) {
      controller_->Maintain();
      while (controller_->Step()) {
      }
      for (const ObjectPtr& held : List(Deployments())) {
        const int64_t replicas = IntField(*held, {"spec", "replicas"});
        Json next = *held;
        for (const char* field : {"replicas", "readyReplicas", "availableReplicas"})
          SetField(&next, {"status", field}, replicas);
        WriteOptions options;
        options.subresource = "status";
        (void)store_->Update(Deployments(), next, options);
        MakePod(StringField(*held, {"metadata", "labels", kRevisionLabel}));
      }
    }
  }
  void MakePod(const std::string& revision) {
    Json pod = Yaml("{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: b}]}}");
    SetField(&pod, {"metadata", "name"}, "pod-" + revision);
    SetField(&pod, {"metadata", "labels", kModelServerLabel}, "line");
    SetField(&pod, {"metadata", "labels", kRevisionLabel}, revision);
    if (!store_->Create(Pods(), "default", pod, {}).ok()) return;
    WriteOptions options;
    options.subresource = "status";
    (void)store_->Patch(Pods(), {"default", "pod-" + revision}, PatchKind::kMerge,
                        Yaml("{status: {conditions: [{type: Ready, status: 'True'}]}}"), options);
  }
  std::vector<ObjectPtr> List(const ResourceType& type) {
    return store_->List(type, {"default"}).value().items;
  }
  Json Read() { return **store_->Get(ModelServers(), {"default", "line"}); }
  void Change(const char* patch) {
    const auto done =
        store_->Patch(ModelServers(), {"default", "line"}, PatchKind::kMerge, Yaml(patch), {});
    EXPECT_TRUE(done.ok()) << done.status();
  }
  static std::string Page(int good, int bad) {
    return absl::StrCat(
        ":tensorflow:serving:request_count{model_name=\"a\",status=\"OK\"} ", good,
        "\n:tensorflow:serving:request_count{model_name=\"a\",status=\"INTERNAL\"} ", bad,
        "\nweft_serving_request_microseconds_total 5\n");
  }

  FakeClock clock_{absl::FromUnixSeconds(1000000)};
  std::unique_ptr<EmbeddedStore> store_;
  std::map<std::string, std::string> pages_;  // by revision
  std::unique_ptr<Controller> controller_;
};

TEST_F(ModelServersTest, MakesWhatItAsksForAndNoMore) {
  Settle();
  ASSERT_EQ(List(Deployments()).size(), 1);
  const Json deployment = *List(Deployments())[0];
  EXPECT_EQ(IntField(deployment, {"spec", "replicas"}), 2);
  const std::string text = deployment.Dump();
  EXPECT_THAT(text, HasSubstr("a$$(X)"));
  EXPECT_THAT(text, HasSubstr("--bind=$(POD_IP)"));
  EXPECT_THAT(text, HasSubstr("--tls_folder=/var/run/weft/tls"));
  EXPECT_THAT(text, Not(HasSubstr("--insecure")));
  EXPECT_EQ(List(Services()).size(), 1);
  EXPECT_EQ(IntField(Read(), {"status", "readyReplicas"}), 2);
  const std::string revision = RevisionOf(Read());
  StartAnew();
  Settle(absl::Hours(1));
  EXPECT_EQ(RevisionOf(Read()), revision) << Read().Dump();
}

TEST_F(ModelServersTest, AChangeTakesOverAlsoWhenTheControllerBeginsAnew) {
  Settle();
  const std::string before = StringField(Read(), {"status", "revision"});
  Change("{spec: {threads: 3}}");
  Settle();
  EXPECT_EQ(List(Deployments()).size(), 2);
  EXPECT_EQ(StringField(Read(), {"status", "rollout", "share"}), "1 of 2");
  StartAnew();
  Settle(absl::Seconds(11));
  StartAnew();
  for (int i = 0; i < 4; ++i) Settle(absl::Seconds(6));
  EXPECT_EQ(Read().Find("status")->Find("rollout"), nullptr) << Read().Dump();
  EXPECT_NE(StringField(Read(), {"status", "revision"}), before);
  EXPECT_EQ(List(Deployments()).size(), 1);
}

TEST_F(ModelServersTest, OneThatFailsMoreIsTakenBack) {
  Settle();
  const std::string before = StringField(Read(), {"status", "revision"});
  pages_[before] = Page(100, 0);
  Change("{spec: {threads: 3}}");
  Settle();
  const std::string other = StringField(Read(), {"status", "rollout", "revision"});
  pages_[other] = Page(50, 0);
  Settle(absl::Seconds(2));
  EXPECT_EQ(StringField(Read(), {"status", "rollout", "revision"}), other);
  pages_[other] = Page(60, 10);
  for (int i = 0; i < 3; ++i) Settle(absl::Seconds(2));
  EXPECT_EQ(StringField(Read(), {"status", "failedRevision"}), other) << Read().Dump();
  EXPECT_TRUE(IsConditionTrue(Read(), "RolledBack"));
  ASSERT_EQ(List(Deployments()).size(), 1);
  EXPECT_EQ(IntField(*List(Deployments())[0], {"spec", "replicas"}), 2);
  // The number of servers is no reason to try it again.
  Change("{spec: {replicas: 3}}");
  Settle(absl::Seconds(60));
  EXPECT_EQ(List(Deployments()).size(), 1);
  EXPECT_EQ(IntField(*List(Deployments())[0], {"spec", "replicas"}), 3);
}

}  // namespace
}  // namespace weft::platform
