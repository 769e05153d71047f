// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/task_directory.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/socket_address.h"
#include "weft/wire/step_messages.h"

namespace weft::cluster {
namespace {

using ::testing::HasSubstr;

TEST(TaskDirectory, NamesTheTaskWhoseAddressSomethingElseAnswersAt) {
  ThreadPool pool("test", 2);
  StatusOr<std::unique_ptr<wire::GrpcServer>> other =
      wire::GrpcServer::Start("127.0.0.1:0", {}, &pool, &pool);
  ASSERT_TRUE(other.ok()) << other.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*other)->port());
  const StatusOr<ClusterSpec> cluster =
      ClusterSpec::FromJson(absl::StrCat(R"({"ps": [")", address, R"("]})"));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  RealClock clock;
  WaitRegistry waits(&clock);
  TaskDirectory directory(*cluster, {"worker", 0}, &waits);
  const Status refused =
      directory.GetStatus({{"ps", 0}}, absl::Seconds(60), /*cancellation=*/nullptr).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("Asking /job:ps/task:0 at ", address)));
}

// A connection that a task left behind breaks under the first question.
TEST(TaskDirectory, AsksAgainWhereTheConnectionBroke) {
  ThreadPool pool("test", 2);
  std::atomic<int> asked{0};
  StatusOr<std::unique_ptr<wire::GrpcServer>> other = wire::GrpcServer::Start(
      "127.0.0.1:0",
      {{"/tensorflow.WorkerService/GetStatus",
        wire::Method{[&](std::unique_ptr<wire::ServerCall> call) {
          const bool is_first = ++asked == 1;
          call->Reply(is_first ? Unavailable("Broken pipe") : Status(), wire::Payload());
        }}}},
      &pool, &pool);
  ASSERT_TRUE(other.ok()) << other.status();
  const StatusOr<ClusterSpec> cluster =
      ClusterSpec::FromJson(absl::StrCat(R"({"ps": ["127.0.0.1:)", (*other)->port(), R"("]})"));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  RealClock clock;
  WaitRegistry waits(&clock);
  TaskDirectory directory(*cluster, {"worker", 0}, &waits);
  const auto status = directory.GetStatus({{"ps", 0}}, absl::Minutes(10), nullptr);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->size(), 1u);
  EXPECT_EQ(asked, 2);
}

// What is refused at once says so, not how long it would have waited.
TEST(TaskDirectory, SaysWhyATaskDidNotAnswer) {
  ThreadPool pool("test", 2);
  StatusOr<std::unique_ptr<wire::GrpcServer>> other =
      wire::GrpcServer::Start("127.0.0.1:0",
                              {{"/tensorflow.WorkerService/GetStatus",
                                wire::Method{[](std::unique_ptr<wire::ServerCall> call) {
                                  call->Reply(Unavailable("Connection refused"), wire::Payload());
                                }}}},
                              &pool, &pool);
  ASSERT_TRUE(other.ok()) << other.status();
  const StatusOr<ClusterSpec> cluster =
      ClusterSpec::FromJson(absl::StrCat(R"({"ps": ["127.0.0.1:)", (*other)->port(), R"("]})"));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  RealClock clock;
  WaitRegistry waits(&clock);
  TaskDirectory directory(*cluster, {"worker", 0}, &waits);
  const std::string refused(
      directory.GetStatus({{"ps", 0}}, absl::Minutes(10), nullptr).status().message());
  EXPECT_THAT(refused, HasSubstr("Connection refused"));
  EXPECT_THAT(refused, ::testing::Not(HasSubstr("10m")));
}

// Where it went to nobody is any more, and the task has begun anew where the cluster lists it.
TEST(TaskDirectory, LooksForATaskThatHasMovedWhereItIsListedToo) {
  const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(2);
  ASSERT_TRUE(ports.ok()) << ports.status();
  const std::string listed = absl::StrCat("127.0.0.1:", (*ports)[0]);
  const std::string left = absl::StrCat("127.0.0.1:", (*ports)[1]);
  const StatusOr<ClusterSpec> cluster =
      ClusterSpec::FromJson(absl::StrCat(R"({"ps": [")", listed, R"("]})"));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  RealClock clock;
  WaitRegistry waits(&clock);
  TaskDirectory directory(*cluster, {"worker", 0}, &waits);
  directory.Moved({"ps", 0}, left);
  ThreadPool pool("test", 2);
  std::atomic<bool> is_anew{false};
  // At first the process that the task has left is there, which knows no better.
  StatusOr<std::unique_ptr<wire::GrpcServer>> server =
      wire::GrpcServer::Start(listed,
                              {{"/tensorflow.WorkerService/GetStatus",
                                wire::Method{[&](std::unique_ptr<wire::ServerCall> call) {
                                  wire::GetStatusExtension status;
                                  if (!is_anew.exchange(true)) status.set_moved_to(left);
                                  call->Reply(absl::OkStatus(), wire::SerializeMessage(status));
                                }}}},
                              &pool, &pool);
  ASSERT_TRUE(server.ok()) << server.status();
  for (int i = 0; i < 2; ++i) {  // and then it is known
    const auto status = directory.GetStatus({{"ps", 0}}, absl::Minutes(1), nullptr);
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(status->front().is_where_listed, i == 0);
    EXPECT_EQ(status->front().moved_to, "");
  }
}

}  // namespace
}  // namespace weft::cluster
