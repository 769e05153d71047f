// SPDX-License-Identifier: Apache-2.0
// A parameter server's task goes to another process, whole or interrupted at each step of the way;
// whole servers in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "base/threads.h"
#include "net/socket_address.h"
#include "proto/weft/handover.pb.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/handover/byte_stream.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/wire/grpc_service.h"
#include "weft/wire/step_messages.h"

namespace weft::server {
namespace {

using session::Session;
using ::testing::HasSubstr;

constexpr char kPs[] = "/job:ps/replica:0/task:0";

// What a process does that takes a task over, call by call, up to where it is cut off.
class Taker {
 public:
  Taker(const std::string& address, uint64_t incarnation)
      : channel_(wire::GrpcChannel::Connect(address)), incarnation_(incarnation) {}

  Status Ask(const char* method, google::protobuf::MessageLite* response) {
    wire::HandoverRequest request;
    request.set_incarnation(incarnation_);
    request.set_address("127.0.0.1:1");
    const auto reply = channel_->CallAndWait({.method = absl::StrCat("/weft.Handover/", method),
                                              .request = wire::SerializeMessage(request),
                                              .deadline = absl::Now() + absl::Seconds(60)});
    if (!reply.ok()) return reply.status();
    return wire::ParseMessage((*reply)->response(), response);
  }
  Status Connect(const std::string& address) {
    WEFT_ASSIGN_OR_RETURN(stream_, handover::StreamReceiver::Connect(
                                       {.task = kPs,
                                        .incarnation = incarnation_,
                                        .token = "weft /job:ps/task:0 /job:worker/task:0"},
                                       address));
    return absl::OkStatus();
  }
  // The first `steps` of a handover, then silence: the connection ends with this object.
  Status Run(int steps) {
    Status ran = TryRun(steps);
    // The one before is let go of on another thread.
    for (int i = 0; i < 200 && absl::StrContains(ran.message(), "already"); ++i) {
      absl::SleepFor(absl::Milliseconds(20));
      ran = TryRun(steps);
    }
    return ran;
  }

 private:
  Status TryRun(int steps) {
    wire::HandoverAnswer answer;
    wire::HandoverBegun begun;
    wire::HandoverLook look;
    uint64_t bytes = 0;
    for (int step = 0; step < steps; ++step) {
      switch (step) {
        case 0:
          WEFT_RETURN_IF_ERROR(Ask("Begin", &begun));
          WEFT_RETURN_IF_ERROR(Connect(begun.data_address()));
          break;
        case 3:
          WEFT_RETURN_IF_ERROR(Ask("Hold", &answer));
          break;
        case 1:
        case 4:
          WEFT_RETURN_IF_ERROR(Ask("Look", &look));
          for (const wire::HandedVariable& variable : look.variables()) {
            stream_->Receive(variable.number(), *Tensor::Zeros(static_cast<DType>(variable.dtype()),
                                                               Shape{variable.dim(0)}));
          }
          bytes += look.bytes();
          break;
        default:
          WEFT_RETURN_IF_ERROR(Ask("Send", &answer));
          WEFT_RETURN_IF_ERROR(stream_->WaitFor(bytes));
      }
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<wire::GrpcChannel> channel_;
  const uint64_t incarnation_;
  std::unique_ptr<handover::StreamReceiver> stream_;
};

class HandoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(2);
    ASSERT_TRUE(ports.ok()) << ports.status();
    address_ = absl::StrCat("127.0.0.1:", (*ports)[0]);
    const auto spec = cluster::ClusterSpec::FromJson(absl::StrCat(
        R"({"ps":[")", address_, R"("],"worker":["127.0.0.1:)", (*ports)[1], R"("]})"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    spec_ = *spec;
    ps_ = Start("ps", "");
    worker_ = Start("worker", "");
    ASSERT_TRUE(ps_ && worker_);
    auto session = client::NewSession({.target = worker_->target(), .soft_placement = false});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    Graph graph(&StandardCatalogue().ops());
    GraphBuilder b(&graph);
    b.set_device("/job:ps/task:0");
    const Endpoint w =
        b.Op("VarHandleOp", {},
             {{"dtype", DType::kFloat}, {"shape", Shape{kElements}}, {"shared_name", "w"}}, "w");
    b.Op("AssignVariableOp", {w, b.Constant(*Tensor::Zeros(DType::kFloat, Shape{kElements}))}, {},
         "init");
    const Endpoint one = b.Scalar<float>(1);
    const Endpoint read = b.Op("ReadVariableOp", {w}, {{"dtype", DType::kFloat}});
    b.Op("AssignAddVariableOp", {w, b.Op("AddV2", {b.Op("ZerosLike", {read}), one})}, {}, "grow");
    const Endpoint axis = b.Scalar<int32_t>(0);
    const Endpoint now = b.Op("ReadVariableOp", {w}, {{"dtype", DType::kFloat}});
    const Endpoint least = b.Op("Min", {now, axis}), most = b.Op("Max", {now, axis});
    b.set_device("/job:worker/task:0");
    b.Op("Identity", {least}, {}, "least");
    b.Op("Identity", {most}, {}, "most");
    ASSERT_TRUE(b.ok()) << b.status();
    ASSERT_EQ(session_->Extend(ExportGraph(graph)), absl::OkStatus());
    ASSERT_EQ(session_->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  }

  std::unique_ptr<Server> Start(const std::string& job, const std::string& take_over) {
    StatusOr<std::unique_ptr<Server>> server = Server::Start({.cluster = spec_,
                                                              .task = {job, 0},
                                                              .catalogue = &StandardCatalogue(),
                                                              .devices = &StandardDevices(),
                                                              .take_over = take_over,
                                                              .hand_over_within = kWithin,
                                                              .num_threads = 2});
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  void Grow() {
    const Status grown = session_->Run({}, {}, {"grow"}, nullptr);
    ASSERT_EQ(grown, absl::OkStatus());
    ++grown_;
    std::vector<Tensor> results;
    ASSERT_EQ(session_->Run({}, {"least", "most"}, {}, &results), absl::OkStatus());
    EXPECT_EQ(results[0].scalar<float>(), static_cast<float>(grown_));
    EXPECT_EQ(results[1].scalar<float>(), static_cast<float>(grown_));
  }

  static constexpr int64_t kElements = 300000;
  static constexpr absl::Duration kWithin = absl::Milliseconds(500);
  std::string address_;
  cluster::ClusterSpec spec_;
  std::unique_ptr<Server> ps_, worker_;
  std::unique_ptr<Session> session_;
  int grown_ = 0;
};

TEST_F(HandoverTest, InterruptedAtEachStepNothingIsLost) {
  Grow();
  for (int steps = 1; steps <= 6; ++steps) {
    SCOPED_TRACE(steps);
    {
      Taker taker(address_, 1000 + static_cast<uint64_t>(steps));
      ASSERT_EQ(taker.Run(steps), absl::OkStatus());
      if (steps <= 3) Grow();  // nothing is held
    }
    Grow();
  }
  // One that gives up by itself, while steps are held.
  wire::HandoverAnswer answer;
  Taker taker(address_, 2000);
  ASSERT_EQ(taker.Run(4), absl::OkStatus());
  ASSERT_EQ(taker.Ask("Abort", &answer), absl::OkStatus());
  Grow();
  EXPECT_THAT(taker.Ask("Commit", &answer).message(), HasSubstr("has been taken back"));
  // And then one that comes to the end.
  const std::unique_ptr<Server> next = Start("ps", "127.0.0.1:0");
  ASSERT_NE(next, nullptr);
  Grow();
}

TEST_F(HandoverTest, TheTaskGoesFromProcessToProcess) {
  std::vector<std::unique_ptr<Server>> old;
  for (int i = 0; i < 3; ++i) {
    Grow();
    std::unique_ptr<Server> next = Start("ps", "127.0.0.1:0");
    ASSERT_NE(next, nullptr);
    Grow();
    if (i == 1) {  // the first goes, and the third answers where it did
      old.clear();
      ps_->Shutdown(absl::ZeroDuration());
    }
    old.push_back(std::exchange(ps_, std::move(next)));
    if (i == 0) {
      // Who comes later asks the first, which tells.
      auto session = client::NewSession({.target = worker_->target(), .soft_placement = false});
      ASSERT_TRUE(session.ok());
    }
  }
  Grow();
}

// As with pods, whose service leads to the next one as soon as theirs is to end.
TEST(HandoverAddressTest, TheNameOfTheTaskMayLeadElsewhereAlready) {
  const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(1);
  ASSERT_TRUE(ports.ok()) << ports.status();
  const auto spec = cluster::ClusterSpec::FromJson(
      absl::StrCat(R"({"ps":["127.0.0.2:)", ports->front(), R"("]})"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string there = absl::StrCat("127.0.0.1:", ports->front());
  const auto start = [&](const std::string& address, const std::string& from) {
    return Server::Start({.cluster = *spec,
                          .task = {"ps", 0},
                          .catalogue = &StandardCatalogue(),
                          .devices = &StandardDevices(),
                          .bind = "127.0.0.1",
                          .take_over = address,
                          .take_over_from = from,
                          .num_threads = 1});
  };
  const auto old = start("", "");
  ASSERT_TRUE(old.ok()) << old.status();
  const auto next = start("127.0.0.1:0", there);
  ASSERT_TRUE(next.ok()) << next.status();
  wire::HandoverBegun begun;
  ASSERT_EQ(Taker(there, 1).Ask("Begin", &begun), absl::OkStatus());
  EXPECT_THAT(begun.moved_to(), HasSubstr("127.0.0.1:"));
}

TEST_F(HandoverTest, TwoAtATimeAreRefusedAndSoIsOneThatDoesNotLead) {
  Taker first(address_, 1), second(address_, 2);
  ASSERT_EQ(first.Run(1), absl::OkStatus());
  wire::HandoverBegun begun;
  EXPECT_THAT(second.Ask("Begin", &begun).message(), HasSubstr("being handed over to another"));
  wire::HandoverAnswer answer;
  EXPECT_THAT(second.Ask("Commit", &answer).message(), HasSubstr("another"));
  EXPECT_THAT(first.Ask("Commit", &answer).message(), HasSubstr("at another point"));
  Grow();
}

TEST_F(HandoverTest, OneThatEndsWaitsAsLongAsACopyTakes) {
  std::optional<Taker> taker(std::in_place, address_, 1);
  ASSERT_EQ(taker->Run(1), absl::OkStatus());
  absl::Notification has_ended;
  Thread end("end", [&] {
    ps_->HandOver();
    has_ended.Notify();
  });
  EXPECT_FALSE(has_ended.WaitForNotificationWithTimeout(kWithin * 4));
  Grow();
  // One that fails leaves time for another; nobody comes.
  taker.reset();
  EXPECT_FALSE(has_ended.WaitForNotificationWithTimeout(kWithin / 2));
  EXPECT_TRUE(has_ended.WaitForNotificationWithTimeout(kWithin * 20));
}

TEST_F(HandoverTest, AStepThatDoesNotEndKeepsTheTaskWhereItIs) {
  // It waits at the worker for an element that nobody puts in.
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder b(&graph);
  b.set_device("/job:worker/task:0");
  const Endpoint queue = b.Op(
      "FIFOQueueV2", {},
      {{"component_types", std::vector<DType>{DType::kFloat}}, {"shared_name", "never"}}, "queue");
  const Endpoint element =
      b.Op("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kFloat}}},
           "element");
  b.set_device("/job:ps/task:0");
  b.Op("Neg", {element}, {}, "stuck");
  ASSERT_TRUE(b.ok()) << b.status();
  auto session = client::NewSession({.target = worker_->target(), .soft_placement = false});
  ASSERT_TRUE(session.ok());
  ASSERT_EQ((*session)->Extend(ExportGraph(graph)), absl::OkStatus());
  Thread stuck("stuck", [&] { EXPECT_FALSE((*session)->Run({}, {}, {"stuck"}, nullptr).ok()); });
  absl::SleepFor(absl::Milliseconds(300));
  {
    Taker taker(address_, 1);
    EXPECT_THAT(taker.Run(4).message(), HasSubstr("still runs after 10s"));
    Grow();
  }
  EXPECT_EQ((*session)->Close(), absl::OkStatus());
}

}  // namespace
}  // namespace weft::server
