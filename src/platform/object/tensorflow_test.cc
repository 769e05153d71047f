// SPDX-License-Identifier: Apache-2.0
#include "platform/object/tensorflow.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the slide prints it.
constexpr char kPrinted[] = R"(apiVersion: "krallistic.github.com/v1"
kind: "Tensorflow"
metadata:
  name: test-mnist-1
spec:
  image: krallistic/mnist-between:v1
  ps_count: 2
  worker_count: 3
  gpu_worker: true
  tensorboard:
    active: true
    folder: "/summary"
)";

std::string SpecErrorOf(const std::string& spec) {
  const StatusOr<TfJob> job = ParseTfJobText(
      absl::StrCat(
          "apiVersion: krallistic.github.com/v1\nkind: Tensorflow\nmetadata: {name: j}\nspec:\n",
          spec),
      "job.yaml");
  return job.ok() ? "OK" : std::string(job.status().message());
}

TEST(TensorflowTest, ReadsWhatTheSlidePrints) {
  const StatusOr<TfJob> parsed = ParseTfJobText(kPrinted, "job.yaml");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const TfJob& job = *parsed;
  EXPECT_EQ(job.kind, "Tensorflow");
  EXPECT_EQ(job.metadata.name, "test-mnist-1");
  EXPECT_EQ(job.run_policy.clean_pod_policy, CleanPodPolicy::kRunning);
  EXPECT_TRUE(job.extras.has_task_flags);
  ASSERT_TRUE(job.extras.tensorboard.has_value());
  EXPECT_EQ(job.extras.tensorboard->folder, "/summary");
  const ReplicaSpec& ps = *job.Find(ReplicaType::kPs);
  const ReplicaSpec& worker = *job.Find(ReplicaType::kWorker);
  EXPECT_EQ(ps.replicas, 2);
  EXPECT_EQ(worker.replicas, 3);
  EXPECT_EQ(worker.restart_policy, RestartPolicy::kExitCode);
  EXPECT_EQ(worker.TensorFlowContainer()->image, "krallistic/mnist-between:v1");
  const auto gpus = [](const ReplicaSpec& replica) {
    return IntField(replica.pod.written.Find("spec")->Find("containers")->items()[0],
                    {"resources", "limits", "nvidia.com/gpu"});
  };
  EXPECT_EQ(gpus(worker), 1);
  EXPECT_EQ(gpus(ps), 0);
  EXPECT_EQ(
      worker.pod.written.Find("spec")->Find("volumes")->Dump(),
      R"([{"name":"tensorboard","hostPath":{"path":"/summary","type":"DirectoryOrCreate"}}])");
}

TEST(TensorflowTest, TakesAProgramVolumesAndPolicies) {
  const TfJob job = ParseTfJobText(R"(apiVersion: krallistic.github.com/v1
kind: Tensorflow
metadata: {name: j}
spec:
  image: i
  command: [python, train.py]
  args: ["--steps", "10"]
  env: [{name: A, value: b}]
  port: 3333
  volumes: [{name: data, emptyDir: {}}]
  volume_mounts: [{name: data, mountPath: /data}]
  tensorboard: {active: true, folder: /s, volume: {persistentVolumeClaim: {claimName: c}}}
  restart_policy: Never
  restart_whole_job: true
  clean_pod_policy: All
  backoff_limit: 2
  trial: "7"
  task_flags: false
)",
                                   "job.yaml")
                        .value();
  ASSERT_EQ(job.replicas.size(), 1u);
  const ReplicaSpec& worker = job.replicas[0];
  EXPECT_EQ(worker.replicas, 1);
  EXPECT_EQ(worker.restart_policy, RestartPolicy::kNever);
  EXPECT_THAT(worker.TensorFlowContainer()->command, ElementsAre("python", "train.py"));
  EXPECT_EQ(worker.TensorFlowContainer()->ports[0].port, 3333);
  EXPECT_EQ(job.run_policy.backoff_limit, 2);
  EXPECT_EQ(job.extras.trial, "7");
  EXPECT_FALSE(job.extras.has_task_flags);
  EXPECT_TRUE(job.extras.restarts_whole);
  EXPECT_EQ(
      worker.pod.written.Find("spec")->Find("volumes")->Dump(),
      R"([{"name":"data","emptyDir":{}},{"persistentVolumeClaim":{"claimName":"c"},"name":"tensorboard"}])");
  EXPECT_EQ(
      worker.pod.written.Find("spec")->Find("containers")->items()[0].Find("volumeMounts")->Dump(),
      R"([{"name":"data","mountPath":"/data"},{"name":"tensorboard","mountPath":"/s"}])");
}

TEST(TensorflowTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(SpecErrorOf("  worker_count: 1\n"), HasSubstr("spec.image: missing"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  workers: 2\n"),
              HasSubstr("job.yaml:6:12: spec.workers: there is no such field"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  worker_cuont: 2\n"),
              HasSubstr("Did you mean 'worker_count'?"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  worker_count: 0\n"),
              HasSubstr("spec.worker_count: holds 0, a whole number from 1 to 10000 is allowed"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  ps_count: \"2\"\n"),
              HasSubstr("without quotes, is allowed"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  gpu_worker: 1\n"),
              HasSubstr("spec.gpu_worker: holds 1, true or false"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  tensorboard: {active: true}\n"),
              HasSubstr("spec.tensorboard.folder: missing: where the tasks write what it shows"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  tensorboard: {active: true, folder: summary}\n"),
              HasSubstr("spec.tensorboard.folder: holds \"summary\", a folder from the root"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  tensorboard: {activ: true}\n"),
              HasSubstr("Did you mean 'active'?"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  env: [{name: A, valeu: b}]\n"),
              HasSubstr("spec.env[0].valeu: there is no"));
  EXPECT_THAT(SpecErrorOf("  image: i\n  trial: \"0\"\n"),
              HasSubstr("spec.trial: holds \"0\", the number of a trial"));
  EXPECT_EQ(SpecErrorOf("  image: i\n"), "OK");
}

TEST(TensorflowTest, AWrongKindGetsTheNearest) {
  EXPECT_THAT(
      std::string(ParseTfJobText("apiVersion: krallistic.github.com/v1\nkind: TensorFlow\n"
                                 "metadata: {name: j}\nspec: {}\n",
                                 "f")
                      .status()
                      .message()),
      HasSubstr("kind: holds \"TensorFlow\", TFJob is allowed. Did you mean 'Tensorflow'?"));
}

}  // namespace
}  // namespace weft::platform
