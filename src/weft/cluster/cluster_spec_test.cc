// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/tensorflow/cluster.pb.h"

namespace weft::cluster {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  return std::string(ClusterSpec::FromJson(text).status().message());
}

TEST(ClusterSpec, DenseAndSparse) {
  StatusOr<ClusterSpec> spec =
      ClusterSpec::FromJson(R"({"ps": ["a:1", "[::1]:2"], "worker": {"3": "b:1"}})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*spec->AddressOf({"ps", 1}), "[::1]:2");
  EXPECT_EQ(*spec->AddressOf({"worker", 3}), "b:1");
  EXPECT_THAT(std::string(spec->AddressOf({"worker", 0}).status().message()),
              HasSubstr("/job:ps/task:0, /job:ps/task:1, /job:worker/task:3"));
  tensorflow::ClusterDef proto;
  spec->ToProto(&proto);
  EXPECT_EQ(ClusterSpec::FromProto(proto)->tasks(), spec->tasks());
}

TEST(ClusterSpec, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf(R"({"ps": ["a:1"], "worker": ["b:1", "a:1"]})"),
              HasSubstr("/job:ps/task:0 and /job:worker/task:1 at a:1"));
  EXPECT_THAT(ErrorOf(R"({"ps": ["a"]})"), HasSubstr("/job:ps/task:0"));
  EXPECT_THAT(ErrorOf(R"({"ps": ["::1:2222"]})"), HasSubstr("[::1]:2222"));
  EXPECT_THAT(ErrorOf(R"({"ps": [7]})"), HasSubstr("found 7"));
  EXPECT_THAT(ErrorOf(R"({"ps": {"x": "a:1"}})"), HasSubstr("'x'"));
  EXPECT_THAT(ErrorOf(R"({"ps": {"-1": "a:1"}})"), HasSubstr("at least 0"));
  EXPECT_THAT(ErrorOf(R"({"p/s": ["a:1"]})"), HasSubstr("bad job name"));
  EXPECT_THAT(ErrorOf(R"({"ps": "a:1"})"), HasSubstr("expected a list"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("expected"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("no tasks"));
  EXPECT_FALSE(ClusterSpec::FromJson("{").ok());
  EXPECT_TRUE(ClusterSpec::FromJson(R"({"ps": ["a:0"], "worker": ["a:0"]})").ok());
}

TEST(TfConfig, NamesTheTask) {
  StatusOr<TaskConfig> config = ParseTfConfig(
      R"({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task.ToString(), "/job:worker/task:0");
  EXPECT_EQ(ParseTfConfig(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": "0"}})")
                ->task.index,
            0);
  EXPECT_FALSE(ParseTfConfig("").ok());
  EXPECT_FALSE(ParseTfConfig(R"({"cluster": {"ps": ["a:1"]}})").ok());
  EXPECT_FALSE(ParseTfConfig(R"({"cluster": {"ps": ["a:1"]}, "task": {"index": 0}})").ok());
  EXPECT_FALSE(
      ParseTfConfig(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": -1}})").ok());
}

TEST(ClusterSpec, SaysWhichEntriesOfAnotherTasksClusterDiffer) {
  const auto spec = ClusterSpec::FromJson(R"({"ps": ["h:1", "h:2"], "worker": ["h:3"]})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string ps = "/job:ps/task:0", ps1 = "/job:ps/task:1", worker = "/job:worker/task:0";
  EXPECT_EQ(spec->CheckSameTasks(worker, {worker, ps, ps1}), absl::OkStatus());
  EXPECT_EQ(spec->CheckSameTasks(worker, {}), absl::OkStatus());
  const Status other = spec->CheckSameTasks(worker, {ps, worker, "/job:chief/task:0"});
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument) << "not one that clients repeat";
  for (const char* part : {"/job:worker/task:0 was started with another cluster",
                           "/job:ps/task:1 is missing there", "/job:chief/task:0 is missing here"})
    EXPECT_THAT(std::string(other.message()), ::testing::HasSubstr(part));
}

}  // namespace
}  // namespace weft::cluster
