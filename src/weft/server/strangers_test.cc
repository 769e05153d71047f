// SPDX-License-Identifier: Apache-2.0
// Sessions of masters that were started with another cluster: how long a task keeps them.
#include "absl/time/clock.h"
#include "gtest/gtest.h"

#include "net/socket_address.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/wire/step_messages.h"

namespace weft::server {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class Strangers : public ::testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(2);
    ASSERT_TRUE(ports.ok()) << ports.status();
    asked_address_ = absl::StrCat("127.0.0.1:", (*ports)[0]);
    master_address_ = absl::StrCat("127.0.0.1:", (*ports)[1]);
    asked_ = Start("ps", asked_address_);
  }

  // A server that knows of itself alone.
  static std::unique_ptr<Server> Start(const std::string& job, const std::string& address) {
    const auto cluster =
        cluster::ClusterSpec::FromJson(absl::StrCat(R"({")", job, R"(": [")", address, R"("]})"));
    StatusOr<std::unique_ptr<Server>> server =
        Server::Start({.cluster = *cluster,
                       .task = {job, 0},
                       .catalogue = &StandardCatalogue(),
                       .devices = &StandardDevices(),
                       .num_threads = 1,
                       .session_lease = absl::Milliseconds(400)});
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  template <typename Request>
  StatusOr<std::unique_ptr<wire::ClientReply>> Ask(const std::string& address, const char* method,
                                                   const Request& request) {
    return wire::GrpcChannel::Connect(address)->CallAndWait(
        {.method = absl::StrCat("/tensorflow.WorkerService/", method),
         .request = wire::SerializeMessage(request),
         .deadline = absl::Now() + kPatience});
  }

  uint64_t IncarnationOfMaster() {
    const auto reply = Ask(master_address_, "GetStatus", tensorflow::GetStatusRequest());
    EXPECT_TRUE(reply.ok()) << reply.status();
    wire::GetStatusExtension extension;
    EXPECT_TRUE(wire::ParseMessage((*reply)->response(), &extension).ok());
    return extension.task().incarnation();
  }

  Status OpenSession(const std::string& handle, uint64_t incarnation) {
    tensorflow::CreateWorkerSessionRequest request;
    request.set_session_handle(handle);
    request.set_master_task("/job:worker/replica:0/task:0");
    request.set_master_incarnation(static_cast<int64_t>(incarnation));
    request.mutable_server_def()->set_job_name("ps");
    const auto add = [&](const char* job, const std::string& address) {
      tensorflow::JobDef* const added = request.mutable_server_def()->mutable_cluster()->add_job();
      added->set_name(job);
      (*added->mutable_tasks())[0] = address;
    };
    add("ps", asked_address_);
    add("worker", master_address_);
    return Ask(asked_address_, "CreateWorkerSession", request).status();
  }

  bool HasSession(const std::string& handle) {
    tensorflow::RegisterGraphRequest request;
    request.set_session_handle(handle);
    const Status registered = Ask(asked_address_, "RegisterGraph", request).status();
    EXPECT_TRUE(registered.ok() || absl::IsAborted(registered)) << registered;
    return registered.ok();
  }

  std::string asked_address_, master_address_;
  std::unique_ptr<Server> asked_;
};

TEST_F(Strangers, ASessionGoesWithItsMastersProcess) {
  std::unique_ptr<Server> master = Start("worker", master_address_);
  const uint64_t process = IncarnationOfMaster();
  // The process before it at that address.
  ASSERT_EQ(OpenSession("old", process + 1), absl::OkStatus());
  ASSERT_EQ(OpenSession("new", process), absl::OkStatus());
  EXPECT_FALSE(HasSession("old"));
  EXPECT_TRUE(HasSession("new"));
  // Over many looks at its master.
  absl::SleepFor(absl::Seconds(1));
  EXPECT_TRUE(HasSession("new"));

  master.reset();
  master = Start("worker", master_address_);
  for (const absl::Time end = absl::Now() + kPatience; HasSession("new") && absl::Now() < end;)
    absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(HasSession("new"));
}

// A master of the same name in another program's cluster is another one.
TEST_F(Strangers, SessionsOfMastersOfOneNameLeaveEachOtherAlone) {
  const std::unique_ptr<Server> master = Start("worker", master_address_);
  ASSERT_EQ(OpenSession("one", IncarnationOfMaster()), absl::OkStatus());
  const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(1);
  ASSERT_TRUE(ports.ok()) << ports.status();
  master_address_ = absl::StrCat("127.0.0.1:", ports->front());
  const std::unique_ptr<Server> other = Start("worker", master_address_);
  ASSERT_EQ(OpenSession("two", IncarnationOfMaster()), absl::OkStatus());
  EXPECT_TRUE(HasSession("one"));
  EXPECT_TRUE(HasSession("two"));
}

}  // namespace
}  // namespace weft::server
