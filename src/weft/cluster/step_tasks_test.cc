// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/step_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

#include "weft/wire/step_messages.h"

namespace weft::cluster {
namespace {

using ::testing::HasSubstr;

constexpr char kKey[] =
    "/job:ps/replica:0/task:0/device:CPU:0;0000000000000001;"
    "/job:worker/replica:0/task:0/device:CPU:0;x;0:0";

// Where steps of nobody ask.
class Known final : public rendezvous::TensorSource {
 public:
  void Pull(int64_t, const RendezvousKey&, std::shared_ptr<Cancellation>,
            ReceiveCallback done) override {
    done(Tensor::Scalar<float>(0), false);
  }
};

class StepTasksTest : public ::testing::Test {
 protected:
  // A task that gives `value`; its address.
  std::string Start(float value) {
    const auto answer = [value](std::unique_ptr<wire::ServerCall> call) {
      call->Reply(absl::OkStatus(), *wire::RecvTensorReply(Tensor::Scalar<float>(value), false));
    };
    servers_.push_back(*wire::GrpcServer::Start(
        "127.0.0.1:0", {{"/tensorflow.WorkerService/RecvTensor", wire::Method(answer)}}, &pool_,
        &pool_));
    return absl::StrCat("127.0.0.1:", servers_.back()->port());
  }
  static tensorflow::ServerDef Cluster(const std::string& ps) {
    tensorflow::ServerDef server;
    server.set_job_name("worker");
    const auto add = [&](const char* job, const std::string& address) {
      tensorflow::JobDef* const added = server.mutable_cluster()->add_job();
      added->set_name(job);
      (*added->mutable_tasks())[0] = address;
    };
    add("ps", ps);
    add("worker", "127.0.0.1:1");
    return server;
  }
  StatusOr<float> Pull(int64_t step) {
    StatusOr<float> got = Internal("Nothing came");
    absl::Notification came;
    tasks_.Pull(step, *RendezvousKey::Parse(kKey), std::make_shared<Cancellation>(),
                [&](const StatusOr<Tensor>& tensor, bool) {
                  got = tensor.ok() ? StatusOr<float>(tensor->scalar<float>()) : tensor.status();
                  came.Notify();
                });
    came.WaitForNotification();
    return got;
  }

  ThreadPool pool_{"test", 2};
  RealClock clock_;
  WaitRegistry waits_{&clock_};
  std::vector<std::unique_ptr<wire::GrpcServer>> servers_;
  Known known_;
  StepTasks tasks_{&known_, &waits_, std::nullopt};
};

TEST_F(StepTasksTest, AStepAsksTheTasksOfItsOwner) {
  const std::string one = Start(1), two = Start(2);
  ASSERT_EQ(tasks_.Describe("a", Cluster(one)), absl::OkStatus());
  ASSERT_EQ(tasks_.Describe("b", Cluster(two)), absl::OkStatus());
  tasks_.Begin(10, "a");
  tasks_.Begin(20, "b");
  tasks_.Begin(30, "c");
  EXPECT_EQ(Pull(10).value(), 1);
  EXPECT_EQ(Pull(20).value(), 2);
  EXPECT_EQ(Pull(30).value(), 0);
  EXPECT_EQ(Pull(40).value(), 0);
  tasks_.End(10);
  EXPECT_EQ(Pull(10).value(), 0);
  EXPECT_EQ(Pull(20).value(), 2);
}

TEST_F(StepTasksTest, AStepFollowsTheClusterOfItsOwner) {
  const std::string one = Start(1), two = Start(2);
  ASSERT_EQ(tasks_.Describe("a", Cluster(one)), absl::OkStatus());
  tasks_.Begin(10, "a");
  const std::shared_ptr<TaskDirectory> before = tasks_.TasksOf("a");
  // The same again keeps the connections that there are.
  ASSERT_EQ(tasks_.Describe("a", Cluster(one)), absl::OkStatus());
  EXPECT_EQ(tasks_.TasksOf("a"), before);
  ASSERT_EQ(tasks_.Describe("a", Cluster(two)), absl::OkStatus());
  EXPECT_NE(tasks_.TasksOf("a"), before);
  EXPECT_EQ(Pull(10).value(), 2);
  EXPECT_EQ(tasks_.FindCluster({"ps", 0}, one), nullptr);
  EXPECT_EQ(tasks_.FindCluster({"ps", 0}, two), tasks_.TasksOf("a"));
  EXPECT_EQ(tasks_.FindCluster({"ps", 1}, two), nullptr);

  tensorflow::ServerDef without_ps = Cluster(one);
  without_ps.mutable_cluster()->mutable_job()->DeleteSubrange(0, 1);
  ASSERT_EQ(tasks_.Describe("a", without_ps), absl::OkStatus());
  const StatusOr<float> gone = Pull(10);
  EXPECT_EQ(gone.status().code(), absl::StatusCode::kNotFound) << gone.status();
  EXPECT_THAT(std::string(gone.status().message()), HasSubstr("/job:ps/task:0"));
}

TEST_F(StepTasksTest, ABadClusterChangesNothing) {
  ASSERT_EQ(tasks_.Describe("a", Cluster(Start(1))), absl::OkStatus());
  tasks_.Begin(10, "a");
  EXPECT_EQ(tasks_.Describe("a", Cluster("nowhere")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tasks_.Describe("b", Cluster("nowhere")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Pull(10).value(), 1);
  EXPECT_EQ(tasks_.TasksOf("b"), nullptr);
}

TEST_F(StepTasksTest, WhoIsGoneIsForgottenWithItsSteps) {
  const std::string one = Start(1);
  for (const char* owner : {"a", "b"})
    ASSERT_EQ(tasks_.Describe(owner, Cluster(one)), absl::OkStatus());
  tasks_.Begin(10, "a");
  tasks_.Begin(20, "b");
  tasks_.ForgetUnless([](const std::string& owner) { return owner == "b"; });
  EXPECT_EQ(tasks_.TasksOf("a"), nullptr);
  EXPECT_EQ(Pull(10).value(), 0);
  EXPECT_EQ(Pull(20).value(), 1);
  tasks_.Forget("b");
  EXPECT_EQ(tasks_.TasksOf("b"), nullptr);
  EXPECT_EQ(Pull(20).value(), 0);
}

}  // namespace
}  // namespace weft::cluster
