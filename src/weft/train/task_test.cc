// SPDX-License-Identifier: Apache-2.0
#include "weft/train/task.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace weft::train {
namespace {

class TaskTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("TF_CONFIG"); }
  StatusOr<Task> With(const std::string& config) {
    setenv("TF_CONFIG", config.c_str(), 1);
    return TaskFromEnvironment();
  }
  static std::string Config(const std::string& job, int index) {
    return R"({"cluster": {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"], "evaluator": ["h:5"]},
               "task": {"type": ")" +
           job + R"(", "index": )" + std::to_string(index) + "}}";
  }
};

TEST_F(TaskTest, IsAloneWithoutAJob) {
  for (const char* config : {"", "unset"}) {
    if (*config == '\0') setenv("TF_CONFIG", "", 1);
    const StatusOr<Task> task = TaskFromEnvironment();
    ASSERT_TRUE(task.ok()) << task.status();
    EXPECT_FALSE(task->distributed);
    EXPECT_TRUE(task->is_chief);
    EXPECT_EQ(task->Device(), "");
    EXPECT_EQ(task->WorkerDevice(0), "");
    EXPECT_EQ(task->Placement(), nullptr);
    unsetenv("TF_CONFIG");
  }
}

TEST_F(TaskTest, TheChiefIsTheFirstWorker) {
  const StatusOr<Task> chief = With(Config("chief", 0));
  ASSERT_TRUE(chief.ok()) << chief.status();
  EXPECT_TRUE(chief->is_chief);
  EXPECT_EQ(chief->num_workers, 3);
  EXPECT_EQ(chief->num_ps, 1);
  EXPECT_EQ(chief->WorkerDevice(0), "/job:chief/task:0");
  EXPECT_EQ(chief->WorkerDevice(2), "/job:worker/task:1");
  const StatusOr<Task> worker = With(Config("worker", 1));
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->worker, 2);
  EXPECT_FALSE(worker->is_chief);
  EXPECT_EQ(worker->Device(), "/job:worker/task:1");
}

TEST_F(TaskTest, WorkerZeroLeadsWhereThereIsNoChief) {
  const StatusOr<Task> task =
      With(R"({"cluster": {"worker": ["h:2", "h:3"]}, "task": {"type": "worker", "index": 0}})");
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_TRUE(task->is_chief);
  EXPECT_EQ(task->num_workers, 2);
}

TEST_F(TaskTest, AnEvaluatorReturnsAtOnceAndNonsenseIsNamed) {
  setenv("TF_CONFIG", Config("evaluator", 0).c_str(), 1);
  EXPECT_TRUE(RunTask([](const Task&) { return Internal("must not train"); }).ok());
  EXPECT_EQ(With("{").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::train
