// SPDX-License-Identifier: Apache-2.0
// Secrets and network policies of jobs whose tasks are weft's servers, and none for others.
#include "platform/jobs/task_security.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"

#include "net/job_identity.h"
#include "platform/jobs/controller_fixture_test.h"
#include "platform/object/fields.h"
#include "platform/object/runs_weft.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json WithCommand(const char* field, const char* words) {
  Json replica = Replica(1, "");
  Json* const containers =
      replica.FindMutable("template")->FindMutable("spec")->FindMutable("containers");
  (*containers->mutable_items())[0].Set(field, Json::Parse(words).value());
  return replica;
}

class TaskSecurityTest : public ControllerFixture {
 protected:
  void SetUp() override {
    options_.has_network = true;
    MakeController();
  }
  const ResourceType& Secrets() { return *FindResource("", "secrets"); }
  Json ServerJob(const char* security = nullptr) {
    Json job = JobOf({{"PS", WithCommand("command", R"(["/usr/bin/weft","server"])")},
                      {"Worker", WithCommand("command", R"(["python","train.py"])")}});
    if (security != nullptr)
      SetField(&job, {"metadata", "annotations", "weft.dev/task-security"}, security);
    return job;
  }
  std::string Events() {
    std::string all;
    const ObjectList list = store_->List(weft::platform::Events(), {"default"}).value();
    for (const ObjectPtr& event : list.items)
      absl::StrAppend(&all, StringField(*event, {"message"}), "\n");
    return all;
  }
};

TEST_F(TaskSecurityTest, WhatRunsWeftIsKnownByItsCommand) {
  const auto runs = [](const std::vector<std::string>& command,
                       const std::vector<std::string>& args) {
    Container container;
    container.command = command;
    container.args = args;
    return RunsWeft(container);
  };
  EXPECT_TRUE(runs({"weft", "server"}, {}));
  EXPECT_TRUE(runs({"/opt/bin/weft"}, {"server", "--status_port", "-1"}));
  EXPECT_TRUE(runs({}, {"server"}));
  EXPECT_TRUE(runs({"python3", "-m", "weft", "train.py"}, {}));
  EXPECT_TRUE(runs({"sh", "-c", "cd /data && exec weft server --data_port 2223"}, {}));
  EXPECT_FALSE(runs({"python3", "train.py"}, {"server"}));
  EXPECT_FALSE(runs({"weft", "inspect"}, {"server"}));
  EXPECT_FALSE(runs({}, {"--server"}));
  EXPECT_FALSE(runs({}, {}));
}

TEST_F(TaskSecurityTest, EachTaskGetsTheJobsSecretAndNobodyReadsItBack) {
  Submit(ServerJob());
  const std::string name = absl::StrCat("job-task-tls-", UidOf(JobNow()).substr(0, 8));
  EXPECT_EQ(Names(Secrets()), name);
  const Json secret = *store_->Get(Secrets(), {"default", name}).value();
  EXPECT_EQ(StringField(secret, {"type"}), "kubernetes.io/tls");
  EXPECT_EQ(StringField(*ControllerOf(secret), {"uid"}), UidOf(JobNow()));
  JobIdentity identity;
  ASSERT_TRUE(
      absl::Base64Unescape(StringField(secret, {"data", "ca.crt"}), &identity.authority_pem));
  ASSERT_TRUE(
      absl::Base64Unescape(StringField(secret, {"data", "tls.crt"}), &identity.certificate_pem));
  ASSERT_TRUE(absl::Base64Unescape(StringField(secret, {"data", "tls.key"}), &identity.key_pem));
  identity.name = name + ".default.weft-job";
  EXPECT_TRUE(MakeJobTls(identity).ok());
  for (const char* const task : {"job-ps-0", "job-worker-0"}) {
    const std::string spec = FindField(Pod(task), {"spec"})->Dump();
    EXPECT_THAT(spec, HasSubstr(R"({"name":"WEFT_TASK_TLS","value":)"
                                R"("/var/run/secrets/weft/task-tls"})"));
    EXPECT_THAT(spec, HasSubstr(R"("secret":{"secretName":")" + name + R"(","defaultMode":292})"));
    EXPECT_THAT(spec, HasSubstr(R"("mountPath":"/var/run/secrets/weft/task-tls","readOnly":true)"));
  }
  EXPECT_THAT(Events(), HasSubstr("Created secret: " + name));
  EXPECT_THAT(Events(), Not(HasSubstr("PRIVATE KEY")));
  // A task that starts again finds the same one.
  const std::string revision = RevisionOf(secret);
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "job-ps-0"}, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0");
  EXPECT_EQ(RevisionOf(*store_->Get(Secrets(), {"default", name}).value()), revision);
}

TEST_F(TaskSecurityTest, JobsOfOtherProgramsAreLeftAlone) {
  Submit(JobOf({{"Worker", WithCommand("command", R"(["python","train.py"])")}}));
  EXPECT_EQ(Names(Secrets()), "");
  EXPECT_EQ(FindField(Pod("job-worker-0"), {"spec", "volumes"}), nullptr);
  EXPECT_THAT(Pod("job-worker-0").Dump(), Not(HasSubstr("WEFT_")));
}

TEST_F(TaskSecurityTest, AProgramThatStartsServersByItselfAsksForIt) {
  Json job = JobOf({{"Worker", WithCommand("command", R"(["python","train.py"])")}});
  SetField(&job, {"metadata", "annotations", "weft.dev/task-security"}, "tls");
  Submit(job);
  EXPECT_THAT(Pod("job-worker-0").Dump(), HasSubstr("WEFT_TASK_TLS"));
}

TEST_F(TaskSecurityTest, OnOneMachineNothingIsNeeded) {
  options_.has_network = false;
  MakeController();
  Submit(ServerJob("insecure"));
  EXPECT_EQ(Names(Secrets()), "");
  EXPECT_THAT(Pod("job-ps-0").Dump(), Not(HasSubstr("WEFT_")));
}

TEST_F(TaskSecurityTest, InsecureTasksStandBehindANetworkPolicy) {
  Json job = ServerJob("insecure");
  SetField(&job, {"metadata", "annotations", "weft.dev/insecure-clients"}, "app=notebook, team=a");
  Submit(job);
  EXPECT_EQ(Names(Secrets()), "");
  const std::string pod = Pod("job-ps-0").Dump();
  EXPECT_THAT(pod, HasSubstr(R"({"name":"WEFT_INSECURE","value":"1"})"));
  EXPECT_THAT(pod, Not(HasSubstr("WEFT_TASK_TLS")));
  const std::string name = absl::StrCat("job-insecure-", UidOf(JobNow()).substr(0, 8));
  const Json policy = *store_->Get(NetworkPolicies(), {"default", name}).value();
  EXPECT_EQ(StringField(*ControllerOf(policy), {"uid"}), UidOf(JobNow()));
  const std::string own = R"({"training.kubeflow.org/job-name":"job",)"
                          R"("training.kubeflow.org/operator-name":"tfjob-controller"})";
  EXPECT_EQ(policy.Find("spec")->Dump(),
            R"({"podSelector":{"matchLabels":)" + own +
                R"(,"matchExpressions":[{"key":"training.kubeflow.org/replica-type",)"
                R"("operator":"NotIn","values":["tensorboard"]}]},"policyTypes":["Ingress"],)"
                R"("ingress":[{"from":[{"podSelector":{"matchLabels":)" +
                own + R"(}},{"podSelector":{"matchLabels":{"app":"notebook","team":"a"}}}]}]})");
}

TEST_F(TaskSecurityTest, WrongWordsAreToldWithWhatIsAllowed) {
  const auto problem = [](const char* name, const char* value) {
    Json job = JobOf({{"Worker", Replica(1, "")}});
    SetField(&job, {"metadata", "annotations", name}, value);
    return std::string(ParseTfJob(job, "job.yaml").status().message());
  };
  EXPECT_THAT(problem("weft.dev/task-security", "none"),
              HasSubstr(R"("tls" and "insecure" are allowed)"));
  EXPECT_THAT(problem("weft.dev/insecure-clients", "app=notebook"), HasSubstr("stands alone"));
  EXPECT_THAT(problem("weft.dev/insecure-clients", "notebook"), HasSubstr("labels of pods"));
}

// No pod is made before the secret that it mounts.
class NoSecrets final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    if (type.plural == "secrets") return PermissionDenied("secrets is forbidden");
    return PassingStore::Create(type, namespace_name, std::move(object), options);
  }
};

TEST_F(TaskSecurityTest, WithoutTheRightToMakeSecretsTheJobSaysSo) {
  NoSecrets refusing(store_.get());
  options_.store = &refusing;
  MakeController();
  Submit(ServerJob());
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_THAT(Events(), HasSubstr("secrets is forbidden"));
  options_.store = store_.get();
  MakeController();
}

}  // namespace
}  // namespace weft::platform
