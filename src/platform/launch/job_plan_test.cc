// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/subprocess.h"
#include "platform/launch/expansion.h"

namespace weft::platform {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Replica(const std::string& type, int replicas, const std::string& container) {
  return absl::StrCat("    ", type, ":\n      replicas: ", replicas,
                      "\n      template: {spec: {containers: [{name: tensorflow, ", container,
                      "}]}}\n");
}

TfJob Parse(const std::string& replicas, const std::string& more = "") {
  const StatusOr<TfJob> job = ParseTfJobText(
      absl::StrCat("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: digits}\nspec:\n",
                   more, "  tfReplicaSpecs:\n", replicas),
      "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
  return job.value_or(TfJob());
}

StatusOr<LocalJob> Plan(const TfJob& job, LocalSettings settings = {}) {
  settings.file = "job.yaml";
  std::vector<int> ports;
  for (int i = 0; i < CountPorts(job); ++i) ports.push_back(5000 + i);
  return PlanLocalJob(job, settings, ports);
}

std::string Variable(const LocalTask& task, const std::string& name) {
  return FindEnvironment(task.environment, name).value_or("<unset>");
}

TEST(JobPlanTest, WritesTfConfigAsTheReferenceOperatorDoes) {
  const TfJob job =
      Parse(Replica("PS", 1, "command: [a]") + Replica("Worker", 2, "command: [a]") +
            Replica("Chief", 1, "command: [a]") + Replica("Evaluator", 1, "command: [a]"));
  EXPECT_EQ(CountPorts(job), 4);
  const LocalJob plan = Plan(job).value();
  ASSERT_EQ(plan.tasks.size(), 5u);
  EXPECT_EQ(plan.tasks[2].name, "worker-1");
  EXPECT_EQ(Variable(plan.tasks[2], "TF_CONFIG"),
            R"({"cluster":{"chief":["127.0.0.1:5000"],"ps":["127.0.0.1:5003"],)"
            R"("worker":["127.0.0.1:5001","127.0.0.1:5002"]},"task":{"type":"worker","index":1},)"
            R"("environment":"cloud"})");
  // The evaluator stands outside of the cluster.
  EXPECT_THAT(Variable(plan.tasks[4], "TF_CONFIG"),
              HasSubstr(R"("task":{"type":"evaluator","index":0})"));
  EXPECT_THAT(Variable(plan.tasks[4], "TF_CONFIG"), Not(HasSubstr(R"("evaluator":[)")));
  EXPECT_THAT(plan.deciding_tasks, ElementsAre(0u));
}

TEST(JobPlanTest, ASingleTaskHasNoTfConfigNotEvenOurs) {
  LocalSettings settings;
  settings.environment = {"TF_CONFIG=of another job", "HOME=/home/me"};
  const LocalJob plan = Plan(Parse(Replica("Worker", 1, "command: [a]")), settings).value();
  EXPECT_EQ(Variable(plan.tasks[0], "TF_CONFIG"), "<unset>");
  EXPECT_EQ(Variable(plan.tasks[0], "HOME"), "/home/me");
}

TEST(JobPlanTest, ExpandsVariablesInOrder) {
  const LocalJob plan =
      Plan(
          Parse(Replica(
                    "Worker", 1,
                    "command: [run, $(B), $(NONE), $$(B)], args: [\"--cfg=$(TF_CONFIG)\", $HOME], "
                    "env: "
                    "[{name: A, value: x}, {name: B, value: \"$(A)y$(C)\"}, {name: C, value: z}]") +
                Replica("PS", 1, "command: [a]")))
          .value();
  EXPECT_EQ(plan.tasks[0].argv[1], "xy$(C)");
  EXPECT_EQ(plan.tasks[0].argv[2], "$(NONE)");
  EXPECT_EQ(plan.tasks[0].argv[3], "$(B)");
  EXPECT_THAT(plan.tasks[0].argv[4], HasSubstr("--cfg={\"cluster\""));
  EXPECT_EQ(plan.tasks[0].argv[5], "$HOME");
}

TEST(JobPlanTest, ExpansionKeepsWhatItDoesNotKnow) {
  const auto lookup = [](const std::string& name) {
    return name == "A" ? std::optional<std::string>("1") : std::nullopt;
  };
  for (const auto& [text, expanded] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"$", "$"},
                                                        {"$(A)$(A)", "11"},
                                                        {"$(A", "$(A"},
                                                        {"$()", "$()"},
                                                        {"$$", "$"},
                                                        {"$$$(A)", "$1"},
                                                        {"$A", "$A"},
                                                        {"$(B)", "$(B)"},
                                                        {"a$(A)b", "a1b"}}) {
    EXPECT_EQ(ExpandVariables(text, lookup), expanded) << text;
  }
}

TEST(JobPlanTest, PutsOurFolderInFrontOfThePath) {
  LocalSettings settings;
  settings.environment = {"PATH=/usr/bin"};
  settings.program_folder = "/opt/weft/bin";
  const LocalJob plan = Plan(Parse(Replica("Worker", 1, "command: [a]")), settings).value();
  EXPECT_EQ(Variable(plan.tasks[0], "PATH"), "/opt/weft/bin:/usr/bin");
}

TEST(JobPlanTest, SaysWhatToWriteWhenThereIsNoCommand) {
  const Status status = Plan(Parse(Replica("Worker", 1, "image: x, args: [a]"))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "job.yaml:8:38: spec.tfReplicaSpecs.Worker.template.spec.containers.command: missing: "
          "there "
          "is no image on this machine to say what to run. Write\n      command: [\"python\", "));
}

TEST(JobPlanTest, NotesWhatIsNotUsed) {
  const LocalJob plan =
      Plan(Parse(Replica("Worker", 2,
                         "image: mnist:1, command: [a], volumeMounts: [{name: x}], envFrom: [{}]")))
          .value();
  EXPECT_THAT(plan.notes[0], HasSubstr("images are not used on this machine"));
  EXPECT_THAT(plan.notes[0], HasSubstr("mnist:1"));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("envFrom of worker")));
  EXPECT_EQ(plan.notes.size(), 3u);
}

TEST(JobPlanTest, FindsVariablesThatComeFromElsewhere) {
  const TfJob job = Parse(
      Replica("Worker", 2,
              "command: [a], env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, "
              "{name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}, "
              "{name: MAYBE, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}]"));
  EXPECT_THAT(std::string(Plan(job).status().message()),
              HasSubstr("TOKEN comes from secret 'hub', key 'token', which is not on this machine: "
                        "export TOKEN=..."));
  LocalSettings settings;
  settings.environment = {"TOKEN=secret"};
  const LocalJob plan = Plan(job, settings).value();
  EXPECT_EQ(Variable(plan.tasks[1], "POD"), "digits-worker-1");
  EXPECT_EQ(Variable(plan.tasks[1], "TOKEN"), "secret");
  EXPECT_EQ(Variable(plan.tasks[1], "MAYBE"), "<unset>");
}

TEST(JobPlanTest, RefusesJobsThatWouldNeverEndOrMustNotRun) {
  EXPECT_THAT(std::string(Plan(Parse(Replica("PS", 1, "command: [a]"))).status().message()),
              HasSubstr("nothing would end the job"));
  EXPECT_THAT(std::string(Plan(Parse(Replica("PS", 1, "command: [a]") +
                                     Replica("Worker", 0, "command: [a]")))
                              .status()
                              .message()),
              HasSubstr("nothing would end the job"));
  EXPECT_THAT(std::string(Plan(Parse(Replica("Worker", 1, "command: [a]"),
                                     "  runPolicy: {suspend: true}\n"))
                              .status()
                              .message()),
              HasSubstr("spec.runPolicy.suspend"));
}

TEST(JobPlanTest, AllWorkersDecideWhenTheJobSaysSo) {
  const LocalJob plan =
      Plan(Parse(Replica("Worker", 3, "command: [a]"), "  successPolicy: AllWorkers\n")).value();
  EXPECT_THAT(plan.deciding_tasks, ElementsAre(0u, 1u, 2u));
}

TEST(JobPlanTest, MakesAJobOfOneProgram) {
  const TfJob job = MakeProgramJob({1, 2, true, true, {"./bin/Train.py", "$(x)", "--a"}}).value();
  const LocalJob plan = Plan(job).value();
  ASSERT_EQ(plan.tasks.size(), 5u);
  EXPECT_EQ(plan.tasks[0].name, "chief-0");
  EXPECT_EQ(plan.tasks[4].name, "evaluator-0");
  EXPECT_THAT(plan.tasks[3].argv, ElementsAre("./bin/Train.py", "$(x)", "--a"));
  EXPECT_EQ(plan.tasks[3].restart_policy, RestartPolicy::kExitCode);
  EXPECT_THAT(plan.notes, IsEmpty());
  EXPECT_FALSE(MakeProgramJob({1, 2, false, false, {}}).ok());
  EXPECT_FALSE(MakeProgramJob({-1, 2, false, false, {"a"}}).ok());
}

}  // namespace
}  // namespace weft::platform
