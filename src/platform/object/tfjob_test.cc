// SPDX-License-Identifier: Apache-2.0
#include "platform/object/tfjob.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::Not;

constexpr char kFull[] = R"(apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: digits
  namespace: team
  labels: {app: digits}
spec:
  runPolicy:
    cleanPodPolicy: All
    ttlSecondsAfterFinished: 60
    activeDeadlineSeconds: 3600
    backoffLimit: 4
    schedulingPolicy: {minAvailable: 3}
  successPolicy: AllWorkers
  enableDynamicWorker: true
  tfReplicaSpecs:
    worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          containers:
          - name: sidecar
            image: proxy:1
          - name: tensorflow
            image: digits:1.0
            command: [python, train.py]
            args: ["--steps", "100"]
            workingDir: /app
            env:
            - name: MODE
              value: fast
            - name: POD
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - name: TOKEN
              valueFrom: {secretKeyRef: {name: hub, key: token, optional: true}}
            ports:
            - {name: tfjob-port, containerPort: 2222}
            resources: {limits: {cpu: 1}}
            volumeMounts:
            - {name: data, mountPath: /data}
          volumes:
          - {name: data, emptyDir: {}}
          nodeSelector: {disk: ssd}
    PS:
      template: {spec: {containers: [{name: tensorflow, command: [ps]}]}}
)";

// The job of a file whose replica specs are `replicas`.
std::string Job(const std::string& replicas, const std::string& more = "") {
  return absl::StrCat(
      "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j}\nspec:\n  tfReplicaSpecs:\n",
      replicas, more);
}

std::string ErrorOf(const std::string& text, const std::string& name = "") {
  const StatusOr<TfJob> job = ParseTfJobText(text, "job.yaml", name);
  return job.ok() ? "OK" : std::string(job.status().message());
}

TEST(TfJobTest, ReadsEveryField) {
  const StatusOr<TfJob> parsed = ParseTfJobText(kFull, "job.yaml");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const TfJob& job = *parsed;
  EXPECT_EQ(job.version, TfJobVersion::kV1);
  EXPECT_EQ(job.metadata.name, "digits");
  EXPECT_EQ(job.metadata.namespace_name, "team");
  EXPECT_EQ(job.run_policy.clean_pod_policy, CleanPodPolicy::kAll);
  EXPECT_EQ(job.run_policy.ttl_seconds_after_finished, 60);
  EXPECT_EQ(job.run_policy.active_deadline_seconds, 3600);
  EXPECT_EQ(job.run_policy.backoff_limit, 4);
  EXPECT_EQ(job.success_policy, SuccessPolicy::kAllWorkers);
  EXPECT_TRUE(job.enable_dynamic_worker);
  ASSERT_EQ(job.replicas.size(), 2u);
  const ReplicaSpec& worker = *job.Find(ReplicaType::kWorker);
  EXPECT_EQ(worker.replicas, 2);
  EXPECT_EQ(worker.restart_policy, RestartPolicy::kExitCode);
  EXPECT_EQ(worker.path, "spec.tfReplicaSpecs.worker");
  const Container& container = *worker.TensorFlowContainer();
  EXPECT_THAT(container.command, ElementsAre("python", "train.py"));
  EXPECT_THAT(container.args, ElementsAre("--steps", "100"));
  EXPECT_EQ(container.working_directory, "/app");
  EXPECT_EQ(container.environment[0].value, "fast");
  EXPECT_EQ(container.environment[1].from_field, "metadata.name");
  EXPECT_EQ(container.environment[2].from_elsewhere, "secret 'hub', key 'token'");
  EXPECT_TRUE(container.environment[2].is_optional);
  EXPECT_EQ(container.ports[0].port, 2222);
  EXPECT_TRUE(container.has_volume_mounts);
  const ReplicaSpec& ps = *job.Find(ReplicaType::kPs);
  EXPECT_EQ(ps.replicas, 1);
  EXPECT_EQ(ps.restart_policy, RestartPolicy::kNever);
  EXPECT_THAT(job.Find(ReplicaType::kChief), IsNull());
}

TEST(TfJobTest, ReadsV1Beta1WithItsDefaults) {
  const TfJob job = ParseTfJobText(
                        "apiVersion: \"kubeflow.org/v1beta1\"\nkind: \"TFJob\"\nmetadata:\n  name: "
                        "\"dist-mnist\"\nspec:\n"
                        "  tfReplicaSpecs:\n    PS:\n      replicas: 2\n      restartPolicy: "
                        "Never\n      template:\n"
                        "        spec:\n          containers:\n          - name: tensorflow\n      "
                        "      image: kubeflow/mnist:1.0\n",
                        "job.yaml")
                        .value();
  EXPECT_EQ(job.version, TfJobVersion::kV1Beta1);
  EXPECT_EQ(job.run_policy.clean_pod_policy, CleanPodPolicy::kRunning);
  EXPECT_EQ(job.Find(ReplicaType::kPs)->replicas, 2);
  EXPECT_THAT(ErrorOf("apiVersion: kubeflow.org/v1beta1\nkind: TFJob\nmetadata: {name: a}\n"
                      "spec: {successPolicy: AllWorkers, tfReplicaSpecs: {PS: {template: {spec: "
                      "{containers: [{name: tensorflow}]}}}}}"),
              HasSubstr("spec.successPolicy: there is no such field"));
}

// The slide prints `containers:` without a dash, once with the image indented deeper and, corrected
// by an editor, as a mapping.
TEST(TfJobTest, TellsHowToWriteTheContainersThatTheSlidePrintsWithoutADash) {
  const std::string printed =
      Job("    PS:\n      template:\n        spec:\n          containers:\n"
          "            name: tensorflow\n              image: kubeflow/mnist:1.0\n");
  EXPECT_THAT(ErrorOf(printed), HasSubstr("job.yaml:11:"));
  EXPECT_THAT(ErrorOf(printed),
              HasSubstr("If it is an item of 'containers', write '- name: tensorflow'"));
  const std::string mapping =
      Job("    PS:\n      template:\n        spec:\n          containers:\n"
          "            name: tensorflow\n            image: kubeflow/mnist:1.0\n");
  EXPECT_THAT(
      ErrorOf(mapping),
      HasSubstr(
          "job.yaml:10:13: spec.tfReplicaSpecs.PS.template.spec.containers: holds a mapping with "
          "\"name\", \"image\", a list is allowed; put a dash before its first field:\n"
          "      containers:\n      - name: tensorflow\n        image: kubeflow/mnist:1.0"));
  const std::string told = ErrorOf(mapping);
  EXPECT_EQ(told.find("put a dash"), told.rfind("put a dash")) << told;
}

TEST(TfJobTest, NamesTheNearestFieldAndTheAllowedValues) {
  const std::string error = ErrorOf(Job(
      "    Worker:\n      replica: 2\n      restartPolicy: OnFail\n      template:\n        spec:\n"
      "          contaners: []\n          containers:\n          - name: tensorflow\n            "
      "comand: [a]\n"
      "            args: --flag\n            env: [{name: A, value: 1}]\n    Wroker: {}\n",
      "  runPolicy: {cleanPodPolicy: some, backoffLimit: -1}\n"));
  EXPECT_THAT(
      error, HasSubstr("job.yaml:7:16: spec.tfReplicaSpecs.Worker.replica: there is no such field. "
                       "Did you mean 'replicas'?"));
  EXPECT_THAT(
      error,
      HasSubstr("restartPolicy: holds \"OnFail\", allowed are Always, OnFailure, Never, ExitCode"));
  EXPECT_THAT(error, HasSubstr("Did you mean 'containers'?"));
  EXPECT_THAT(error,
              HasSubstr("containers[0].comand: there is no such field. Did you mean 'command'?"));
  EXPECT_THAT(
      error,
      HasSubstr("containers[0].args: holds \"--flag\", a list is allowed: write [\"--flag\"]"));
  EXPECT_THAT(error,
              HasSubstr("env[0].value: holds 1, a text is allowed: write it in quotes, \"1\""));
  EXPECT_THAT(
      error,
      HasSubstr("spec.tfReplicaSpecs.Wroker: there is no such replica type. Allowed are Chief, "
                "Master, Worker, PS, Evaluator. Did you mean 'Worker'?"));
  EXPECT_THAT(
      error,
      HasSubstr("spec.runPolicy.cleanPodPolicy: holds \"some\", allowed are All, Running, None"));
  EXPECT_THAT(error,
              HasSubstr("spec.runPolicy.backoffLimit: holds -1, a whole number of at least 0"));
}

TEST(TfJobTest, ChecksTheWholeOfAReplica) {
  EXPECT_THAT(
      ErrorOf(Job(
          "    Worker: {replicas: \"2\", template: {spec: {containers: [{name: tensorflow}]}}}\n")),
      HasSubstr(
          "replicas: holds \"2\", a whole number from 0 to 10000, without quotes, is allowed"));
  EXPECT_THAT(ErrorOf(Job("    Worker: {template: {spec: {containers: [{name: tf}]}}}\n")),
              HasSubstr("no container is named 'tensorflow', only 'tf'"));
  EXPECT_THAT(ErrorOf(Job("    Worker: {replicas: 1}\n")), HasSubstr("Worker.template: missing"));
  EXPECT_THAT(ErrorOf(Job("    Worker:\n")), HasSubstr("Worker: holds nothing (null), a mapping"));
  EXPECT_THAT(ErrorOf(Job("    Worker: [1]\n")), HasSubstr("Worker: holds a list of 1, a mapping"));
  EXPECT_THAT(ErrorOf(Job("    {}\n")), HasSubstr("spec.tfReplicaSpecs: is empty"));
  const std::string good = "{template: {spec: {containers: [{name: tensorflow}]}}}\n";
  EXPECT_THAT(ErrorOf(Job("    ps: " + good + "    PS: " + good)),
              HasSubstr("PS stands twice, as 'PS' and as 'ps'"));
  EXPECT_THAT(ErrorOf(Job("    Chief: " + good + "    Master: " + good)),
              HasSubstr("mean the same"));
  EXPECT_EQ(ErrorOf(Job("    EVALUATOR: " + good + "    chief: " + good)), "OK");
}

// The slide asks for devices by number, which a quantity cannot say.
TEST(TfJobTest, TellsHowToWriteAListOfDevices) {
  const auto error = [](const std::string& resources) {
    return ErrorOf(
        Job("    Worker: {template: {spec: {containers: [{name: tensorflow, resources: {limits: "
            "{" +
            resources + "}}}]}}}\n"));
  };
  EXPECT_THAT(
      error("alpha.kubernetes.io/gpuset: \"0,1,3\""),
      HasSubstr(
          "spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits["
          "alpha.kubernetes.io/gpuset]: holds \"0,1,3\", a quantity is allowed, as 2, \"500m\" "
          "or \"4Gi\". A number of GPUs is written\n      nvidia.com/gpu: 3\n  and which ones they "
          "are, in metadata of the pod,\n      annotations: {\"alpha.kubernetes.io/gpuset\": "
          "\"0,1,3\"}"));
  EXPECT_THAT(error("alpha.kubernetes.io/gpuset: [0, 1]"), HasSubstr("nvidia.com/gpu: 2"));
  EXPECT_THAT(error("memory: 4GB"),
              HasSubstr("limits[memory]: holds \"4GB\", a quantity is allowed"));
  EXPECT_EQ(error("memory: 4Gi, cpu: 0.5, nvidia.com/gpu: 1"), "OK");
  // As printed: beside the containers instead of in one.
  EXPECT_THAT(
      ErrorOf(Job(
          "    Worker: {template: {spec: {containers: [{name: tensorflow}], resources: {limits: "
          "{alpha.kubernetes.io/gpuset: \"0,1,3\"}}}}}\n")),
      HasSubstr("template.spec.resources.limits[alpha.kubernetes.io/gpuset]: holds \"0,1,3\""));
}

TEST(TfJobTest, ChecksWhoManagesIt) {
  const std::string good = "    PS: {template: {spec: {containers: [{name: tensorflow}]}}}\n";
  EXPECT_THAT(
      ErrorOf(Job(good, "  runPolicy: {managedBy: me}\n")),
      HasSubstr(
          "spec.runPolicy.managedBy: holds \"me\", allowed are kubeflow.org/training-operator, "
          "kueue.x-k8s.io/multikueue"));
  EXPECT_THAT(
      ErrorOf(Job(
          good, "  runPolicy: {schedulingPolicy: {minAvailable: many, minResources: {cpu: x}}}\n")),
      AllOf(
          HasSubstr("spec.runPolicy.schedulingPolicy.minAvailable: holds \"many\""),
          HasSubstr("spec.runPolicy.schedulingPolicy.minResources[cpu]: holds \"x\", a quantity")));
}

TEST(TfJobTest, ChecksTheHead) {
  EXPECT_THAT(ErrorOf("apiVersion: kubeflow.org/v2\nkind: TFJob\nmetadata: {name: j}\nspec: {}\n"),
              HasSubstr("apiVersion: holds \"kubeflow.org/v2\", allowed are kubeflow.org/v1, "
                        "kubeflow.org/v1beta1"));
  EXPECT_THAT(ErrorOf("apiVersion: v1\nkind: Pod\nmetadata: {name: j}\nspec: {containers: []}\n"),
              HasSubstr("kind: holds \"Pod\", TFJob is allowed"));
  EXPECT_THAT(ErrorOf("kind: TFJob\n"), HasSubstr("apiVersion: missing"));
  EXPECT_THAT(ErrorOf("just text"), HasSubstr("holds \"just text\", a mapping"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("there is no TFJob in this file"));
  for (const char* name : {"Digits", "1a", "a-", "a_b", ""}) {
    EXPECT_THAT(
        ErrorOf(absl::StrCat("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: \"", name,
                             "\"}\nspec: {}\n")),
        HasSubstr("metadata.name: holds"));
  }
}

TEST(TfJobTest, TheNamesOfItsTasksMustFitToo) {
  const auto error_of = [](size_t size, int replicas) {
    std::string text =
        Job(absl::StrCat("    Worker: {replicas: ", replicas,
                         ", template: {spec: {containers: [{name: tensorflow}]}}}\n"));
    text.replace(text.find("name: j"), 7, "name: " + std::string(size, 'n'));
    return ErrorOf(text);
  };
  EXPECT_EQ(error_of(54, 10), "OK");
  EXPECT_THAT(error_of(54, 11), HasSubstr("with '-worker-10' the name of a pod and service has 64 "
                                          "characters, 63 are allowed: make it 1 shorter"));
  EXPECT_THAT(error_of(63, 0), HasSubstr("make it 9 shorter"));
  // Another mistake is told alone.
  EXPECT_THAT(error_of(64, 1), Not(HasSubstr("shorter")));
}

TEST(TfJobTest, APrefixIsANameWhereNoServerMakesOne) {
  std::string text = Job("    PS: {template: {spec: {containers: [{name: tensorflow}]}}}\n");
  text.replace(text.find("name: j"), 7, "generateName: mnist-");
  EXPECT_EQ(ParseTfJobText(text, "job.yaml").value().metadata.name, "mnist");
}

TEST(TfJobTest, ChoosesAmongSeveralDocuments) {
  const std::string good = "    PS: {template: {spec: {containers: [{name: tensorflow}]}}}\n";
  std::string other = Job(good);
  other.replace(other.find("name: j"), 7, "name: k");
  const std::string text = "apiVersion: v1\nkind: Service\n---\n" + Job(good) + "---\n" + other;
  EXPECT_THAT(ErrorOf(text), HasSubstr("several TFJobs, say which one with --job: 'j', 'k'"));
  EXPECT_EQ(ErrorOf(text, "k"), "OK");
  EXPECT_THAT(ErrorOf(text, "x"), HasSubstr("no TFJob named 'x', only 'j', 'k'"));
}

TEST(TfJobTest, TakesAJobOutOfAList) {
  const std::string text =
      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: "
      "c}}\n- {apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: j}, spec: "
      "{tfReplicaSpecs: {PS: {template: {spec: {containers: [{name: tensorflow}]}}}}}}\n";
  EXPECT_EQ(ErrorOf(text), "OK");
}

TEST(TfJobTest, TakesFlatRunFieldsOfEarlyV1Files) {
  const TfJob job =
      ParseTfJobText(Job("    PS: {template: {spec: {containers: [{name: tensorflow}]}}}\n",
                         "  cleanPodPolicy: All\n  backoffLimit: 2\n"),
                     "job.yaml")
          .value();
  EXPECT_EQ(job.run_policy.clean_pod_policy, CleanPodPolicy::kAll);
  EXPECT_EQ(job.run_policy.backoff_limit, 2);
}

}  // namespace
}  // namespace weft::platform
