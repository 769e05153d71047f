// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "platform/launch/expansion.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  return PlanLocalJob(job, settings);
}

const Json* Replica(const LocalJob& plan, const char* type) {
  return FindField(plan.object, {"spec", "tfReplicaSpecs", type});
}

const Json& ContainerOf(const LocalJob& plan, const char* type) {
  return FindField(*Replica(plan, type), {"template", "spec", "containers"})->items()[0];
}

std::vector<std::string> DecidingTasks(const LocalJob& plan) {
  std::vector<std::string> names;
  for (const LocalTask& task : plan.tasks) {
    if (task.decides) names.push_back(task.name);
  }
  return names;
}

TEST(JobPlanTest, MakesAJobThatAControllerRunsHere) {
  const LocalJob plan =
      Plan(Parse(Replica("ps", 1, "command: [weft, server]") +
                     Replica("Worker", 2,
                             "command: [a, $(B)], args: [--x], workingDir: /data, "
                             "env: [{name: B, value: \"$(C)\"}], "
                             "ports: [{name: tfjob-port, containerPort: 3333}]") +
                     Replica("Chief", 1, "command: [a]") + Replica("Evaluator", 0, "command: [a]"),
                 "  runPolicy: {backoffLimit: 3, activeDeadlineSeconds: 60, cleanPodPolicy: All, "
                 "ttlSecondsAfterFinished: 0}\n"))
          .value();
  EXPECT_EQ(
      ContainerOf(plan, "worker").Dump(),
      R"x({"name":"tensorflow","image":"none","command":["a","$(B)"],"args":["--x"],"workingDir":"/data",)x"
      R"x("env":[{"name":"B","value":"$(C)"}],"ports":[{"name":"tfjob-port","containerPort":3333}]})x");
  EXPECT_EQ(FindField(plan.object, {"spec", "runPolicy"})->Dump(), R"({"cleanPodPolicy":"None"})");
  EXPECT_EQ(StringField(plan.object, {"apiVersion"}), "kubeflow.org/v1");
  EXPECT_EQ(IntField(*Replica(plan, "ps"), {"replicas"}), 1);
  EXPECT_EQ(Replica(plan, "evaluator"), nullptr);
  ASSERT_EQ(plan.tasks.size(), 4u);
  EXPECT_EQ(plan.tasks[2].name, "worker-1");
  EXPECT_TRUE(plan.tasks[3].serves);
  EXPECT_FALSE(plan.tasks[2].serves);
  EXPECT_EQ(plan.backoff_limit, 3);
  EXPECT_EQ(plan.deadline, absl::Seconds(60));
  EXPECT_THAT(DecidingTasks(plan), ElementsAre("chief-0"));
  // What it becomes is a job again.
  EXPECT_TRUE(ParseTfJob(plan.object, "again").ok());
}

TEST(JobPlanTest, KeepsWhatTheJobAsksOfWeft) {
  const TfJob compact = ParseTfJobText(R"(apiVersion: krallistic.github.com/v1
kind: Tensorflow
metadata: {name: digits, annotations: {team: research}}
spec: {image: i, command: [train], trial: "3", restart_whole_job: true, tensorboard: {active: true, folder: /logs}})",
                                       "job.yaml")
                            .value();
  EXPECT_EQ(
      FindField(Plan(compact).value().object, {"metadata", "annotations"})->Dump(),
      R"({"team":"research","weft.dev/task-flags":"true","weft.dev/trial":"3","weft.dev/restart":"job"})");
}

TEST(JobPlanTest, FlagsStandAboveTheFile) {
  LocalSettings settings;
  settings.restart_policy = RestartPolicy::kOnFailure;
  settings.backoff_limit = 9;
  settings.working_directory = "/elsewhere";
  settings.grace = absl::Milliseconds(200);
  const LocalJob plan =
      Plan(Parse(Replica("Worker", 1, "command: [a], workingDir: /data")), settings).value();
  EXPECT_EQ(StringField(*Replica(plan, "worker"), {"restartPolicy"}), "OnFailure");
  EXPECT_EQ(StringField(ContainerOf(plan, "worker"), {"workingDir"}), "/elsewhere");
  EXPECT_EQ(plan.backoff_limit, 9);
  // Nobody else kills before we do.
  EXPECT_GT(
      IntField(*Replica(plan, "worker"), {"template", "spec", "terminationGracePeriodSeconds"}), 1);
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
                         "image: mnist:1, command: [a], envFrom: [{configMapRef: {name: c}}]")))
          .value();
  EXPECT_THAT(plan.notes[0], HasSubstr("images are not used on this machine"));
  EXPECT_THAT(plan.notes[0], HasSubstr("mnist:1"));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("envFrom of worker")));
  EXPECT_EQ(plan.notes.size(), 2u);
}

constexpr char kVolumes[] = R"(    Worker:
      template:
        spec:
          containers:
          - name: tensorflow
            command: [a]
            env:
            - {name: RATE, valueFrom: {configMapKeyRef: {name: conf, key: rate}}}
            volumeMounts: [{name: conf, mountPath: /conf}, {name: data, mountPath: /data}]
          volumes:
          - {name: conf, configMap: {name: conf}}
          - {name: data, persistentVolumeClaim: {claimName: digits-data}}
          - {name: other, secret: {secretName: hub}}
)";

TEST(JobPlanTest, KeepsVolumesAndWhatTheFileHasForThem) {
  LocalSettings settings;
  settings.claim_folder = "/state/claims";
  settings.documents = {Json::Parse(R"({"kind":"ConfigMap","metadata":{"name":"conf"}})").value(),
                        Json::Parse(R"({"kind":"Service","metadata":{"name":"conf"}})").value()};
  const LocalJob plan = Plan(Parse(kVolumes), settings).value();
  EXPECT_EQ(FindField(ContainerOf(plan, "worker"), {"volumeMounts"})->size(), 2u);
  EXPECT_EQ(StringField(FindField(ContainerOf(plan, "worker"), {"env"})->items()[0],
                        {"valueFrom", "configMapKeyRef", "key"}),
            "rate");
  // Nobody mounts the third.
  EXPECT_EQ(FindField(*Replica(plan, "worker"), {"template", "spec", "volumes"})->size(), 2u);
  ASSERT_EQ(plan.objects.size(), 2u);
  EXPECT_EQ(NameOf(plan.objects[1]), "digits-data");
  EXPECT_THAT(plan.notes,
              Contains("the data of claim 'digits-data' lie in /state/claims/default/digits-data "
                       "and stay there"));
}

TEST(JobPlanTest, SaysWhichObjectTheFileLacks) {
  LocalSettings settings;
  settings.environment = {"RATE=1"};
  EXPECT_THAT(std::string(Plan(Parse(kVolumes), settings).status().message()),
              HasSubstr("job.yaml:16:37: spec.tfReplicaSpecs.Worker.template.spec.volumes[0]"
                        ".configMap: the ConfigMap 'conf' is not in this file"));
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
  settings.environment = {"TOKEN=sec$(POD)ret"};
  const LocalJob plan = Plan(job, settings).value();
  EXPECT_EQ(FindField(ContainerOf(plan, "worker"), {"env"})->Dump(),
            R"([{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},)"
            R"({"name":"TOKEN","value":"sec$$(POD)ret"}])");
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
  EXPECT_THAT(DecidingTasks(plan), ElementsAre("worker-0", "worker-1", "worker-2"));
}

TEST(JobPlanTest, MakesAJobOfOneProgram) {
  const TfJob job = MakeProgramJob({1, 2, true, true, {"./bin/Train.py", "$(x)", "--a"}}).value();
  const LocalJob plan = Plan(job).value();
  ASSERT_EQ(plan.tasks.size(), 5u);
  EXPECT_EQ(plan.tasks[0].name, "chief-0");
  EXPECT_EQ(plan.tasks[4].name, "evaluator-0");
  EXPECT_EQ(plan.name, "train-py");
  EXPECT_EQ(FindField(ContainerOf(plan, "ps"), {"command"})->Dump(),
            R"x(["./bin/Train.py","$$(x)","--a"])x");
  EXPECT_EQ(plan.tasks[3].restart_policy, RestartPolicy::kExitCode);
  EXPECT_THAT(plan.notes, IsEmpty());
  for (const auto& [program, name] : std::vector<std::pair<std::string, std::string>>{
           {"/usr/bin/python3.11", "python3-11"}, {"_", "job"}, {"7zip", "zip"}, {"a-", "a"}}) {
    EXPECT_EQ(MakeProgramJob({0, 1, false, false, {program}})->metadata.name, name);
  }
  EXPECT_FALSE(MakeProgramJob({1, 2, false, false, {}}).ok());
  EXPECT_FALSE(MakeProgramJob({-1, 2, false, false, {"a"}}).ok());
}

}  // namespace
}  // namespace weft::platform
