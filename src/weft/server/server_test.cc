// SPDX-License-Identifier: Apache-2.0
// Whole servers in one process, driven by the session of a C++ program.
#include "weft/server/server.h"

#include <atomic>
#include <cmath>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

#include "base/threads.h"
#include "net/socket_address.h"
#include "weft/client/cluster_client.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/wire/grpc_service.h"

namespace weft::server {
namespace {

using session::Session;
using ::testing::HasSubstr;

// Sessions dial the master (true) or call it in this process.
class ServerTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(2);
    ASSERT_TRUE(ports.ok()) << ports.status();
    spec_ = absl::StrCat(R"({"ps":["127.0.0.1:)", (*ports)[0], R"("],"worker":["127.0.0.1:)",
                         (*ports)[1], R"("]})");
    StartTask("ps");
    StartTask("worker");
  }

  void StartTask(const std::string& job) {
    ServerOptions options{.task = {job, 0},
                          .catalogue = &StandardCatalogue(),
                          .devices = &StandardDevices(),
                          .num_threads = 2};
    StatusOr<cluster::ClusterSpec> cluster = cluster::ClusterSpec::FromJson(spec_);
    ASSERT_TRUE(cluster.ok());
    options.cluster = *cluster;
    StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    // While a task is down, a test beside this one may have taken its port.
    for (const absl::Time end = absl::Now() + absl::Seconds(60);
         absl::IsUnavailable(server.status()) && absl::Now() < end;) {
      absl::SleepFor(absl::Milliseconds(100));
      server = Server::Start(options);
    }
    ASSERT_TRUE(server.ok()) << server.status();
    servers_[job] = *std::move(server);
  }

  std::unique_ptr<Session> NewSession(const std::string& job = "worker") {
    StatusOr<std::unique_ptr<Session>> session = weft::client::NewSession(
        {.target = servers_[job]->target(), .soft_placement = false, .always_dial = GetParam()});
    EXPECT_TRUE(session.ok());
    return *std::move(session);
  }

  // y = x (worker) * w (ps) + 1; "grow" adds x to w.
  GraphDef TwoTaskGraph() {
    Graph graph(&StandardCatalogue().ops());
    GraphBuilder builder(&graph);
    builder.set_device("/job:ps/task:0");
    const Endpoint w =
        builder.Op("VarHandleOp", {},
                   {{"dtype", DType::kFloat}, {"shape", Shape{2}}, {"shared_name", "w"}}, "w");
    builder.Op("AssignVariableOp", {w, builder.Constant(Tensor::Vector<float>({2, 3}))}, {},
               "init");
    const Endpoint read = builder.Op("ReadVariableOp", {w}, {{"dtype", DType::kFloat}}, "w/read");
    builder.set_device("/job:worker/task:0");
    const Endpoint x = builder.Op("Placeholder", {},
                                  {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}}, "x");
    const Endpoint product = builder.Op("Mul", {x, read}, {}, "product");
    builder.Op("AddV2", {product, builder.Scalar<float>(1)}, {}, "y");
    builder.set_device("/job:ps/task:0");
    builder.Op("AssignAddVariableOp", {w, x}, {}, "grow");
    EXPECT_TRUE(builder.ok()) << builder.status();
    return ExportGraph(graph);
  }

  std::string spec_;
  std::map<std::string, std::unique_ptr<Server>> servers_;
};

TEST_P(ServerTest, StepsCrossTasks) {
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
  ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  const Tensor x = Tensor::Vector<float>({1, 10});
  std::vector<Tensor> results;
  ASSERT_EQ(session->Run({{"x", x}}, {"y", "w/read"}, {}, &results), absl::OkStatus());
  EXPECT_EQ(results[0].ToString(), Tensor::Vector<float>({3, 31}).ToString());
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(session->Run({{"x", x}}, {}, {"grow"}, nullptr), absl::OkStatus());
  ASSERT_EQ(session->Run({}, {"w/read"}, {}, &results), absl::OkStatus());
  EXPECT_EQ(results[0].ToString(), Tensor::Vector<float>({52, 503}).ToString());

  // Another master sees the same variables.
  const std::unique_ptr<Session> other = NewSession("ps");
  ASSERT_EQ(other->Extend(TwoTaskGraph()), absl::OkStatus());
  ASSERT_EQ(other->Run({}, {"w/read"}, {}, &results), absl::OkStatus());
  EXPECT_EQ(results[0].data<float>()[0], 52);
}

TEST_P(ServerTest, TracesAndPartitionGraphsComeFromEveryTask) {
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
  ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  step::RunMetadata metadata;
  std::vector<Tensor> results;
  ASSERT_EQ(session->Run({.trace = true, .partition_graphs = true},
                         {{"x", Tensor::Vector<float>({1, 1})}}, {"y"}, {}, &results, &metadata),
            absl::OkStatus());
  EXPECT_EQ(metadata.partition_graphs.size(), 2u);
  std::set<std::string> devices;
  for (const executor::NodeTrace& node : metadata.trace) devices.insert(node.device);
  EXPECT_EQ(devices.size(), 2u);
}

// What a step says once the task is neither dialled in vain nor known by its old address.
Status RunUntilItAnswers(Session& session, const std::string& fetch) {
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  std::vector<Tensor> results;
  Status status;
  do {
    status = session.Run({}, {fetch}, {}, &results);
  } while (absl::IsUnavailable(status) && absl::Now() < give_up);
  return status;
}

TEST_P(ServerTest, ASessionOutlivesATaskThatIsStartedAgain) {
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
  std::vector<Tensor> results;
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
    ASSERT_EQ(session->Run({}, {"w/read"}, {}, &results), absl::OkStatus());
    servers_["ps"].reset();
    for (int i = 0; i < 2; ++i) {
      const Status down = session->Run({}, {"w/read"}, {}, &results);
      EXPECT_TRUE(absl::IsUnavailable(down)) << down;
      EXPECT_THAT(std::string(down.message()), HasSubstr("job:ps"));
    }
    // Signatures that were not seen before meet the new process too.
    StartTask("ps");
    const Status back = RunUntilItAnswers(*session, round == 0 ? "w/read" : "w");
    EXPECT_TRUE(absl::IsAborted(back)) << back;
    EXPECT_THAT(std::string(back.message()), HasSubstr("was started again"));
    const Status empty = session->Run({}, {"w/read"}, {}, &results);
    EXPECT_TRUE(absl::IsFailedPrecondition(empty)) << empty;
  }
  ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  ASSERT_EQ(session->Run({{"x", Tensor::Vector<float>({1, 10})}}, {"y"}, {}, &results),
            absl::OkStatus());
  EXPECT_EQ(results[0].ToString(), Tensor::Vector<float>({3, 31}).ToString());
}

// Whoever waited for a step is told before the thread that tells it is done: a server that goes at
// that moment must wait for its threads before it lets go of what they use.
TEST_P(ServerTest, MayGoTheMomentThatAStepHasEnded) {
  for (int round = 0; round < 20; ++round) {
    std::unique_ptr<Session> session = NewSession();
    ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
    ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
    ASSERT_EQ(session->Run({{"x", Tensor::Vector<float>({1, 10})}}, {"y"}, {}, nullptr),
              absl::OkStatus());
    session.reset();
    servers_.clear();
    StartTask("ps");
    StartTask("worker");
  }
}

TEST_P(ServerTest, ErrorsOfAnotherTaskSayWhere) {
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
  const Status missing = session->Run({{"x", Tensor::Vector<float>({1, 1})}}, {"y"}, {}, nullptr);
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("From /job:ps/replica:0/task:0:"));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("{{node w/read}}"));
}

// An error quotes what the user gave, whatever and however much that is.
TEST_P(ServerTest, AnErrorOfAnyBytesAndLengthEndsTheStepOnEveryTask) {
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder builder(&graph);
  builder.set_device("/job:worker/task:0");
  const Endpoint x =
      builder.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({1})}}, "x");
  const Endpoint here =
      builder.Op("CheckNumerics", {x}, {{"message", std::string(100000, 'm')}}, "here");
  builder.set_device("/job:ps/task:0");
  builder.Op("Identity", {here}, {}, "waits_there");
  builder.Op("CheckNumerics", {x}, {{"message", std::string("\xff\xfe")}}, "there");
  ASSERT_TRUE(builder.ok()) << builder.status();
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(ExportGraph(graph)), absl::OkStatus());
  for (const char* target : {"waits_there", "there"}) {
    const Status status =
        session->Run({.timeout = absl::Seconds(60)}, {{"x", Tensor::Vector<float>({NAN})}}, {},
                     {target}, nullptr, nullptr);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr(*target == 't' ? "had NaN" : "mmmm"));
  }
}

TEST_P(ServerTest, BadCallsAreRefusedAndHarmNothing) {
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
  const Tensor x = Tensor::Vector<float>({1, 1});
  const auto message = [&](const Status& status) { return std::string(status.message()); };
  EXPECT_THAT(message(session->Run({{"x", Tensor::Vector<float>({1, 1, 1})}}, {"y"}, {}, nullptr)),
              HasSubstr("Cannot feed value of shape [3] for Tensor 'x', which has shape [2]"));
  EXPECT_FALSE(session->Run({{"x", Tensor::Vector<int32_t>({1, 1})}}, {"y"}, {}, nullptr).ok());
  EXPECT_FALSE(session->Run({{"nobody", x}}, {"y"}, {}, nullptr).ok());
  EXPECT_THAT(message(session->Run({}, {"nothing:0"}, {}, nullptr)), HasSubstr("nothing"));
  EXPECT_FALSE(session->Run({}, {}, {"nothing"}, nullptr).ok());
  GraphDef nowhere;
  nowhere.nodes = {{.name = "lost", .op = "NoOp", .device = "/job:evaluator/task:0"}};
  EXPECT_THAT(message(session->Extend(nowhere)), HasSubstr("/job:evaluator/task:0"));
  nowhere.nodes[0].device = "/job:ps/task:0";
  EXPECT_EQ(session->Extend(nowhere), absl::OkStatus()) << "the failed one left nothing behind";
  ASSERT_EQ(session->Run({}, {}, {"init", "lost"}, nullptr), absl::OkStatus());
}

TEST_P(ServerTest, ADeadTaskIsUnavailableAndItsSuccessorAborts) {
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
  ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  const std::vector<step::Feed> feeds = {{"x", Tensor::Vector<float>({1, 1})}};
  servers_["ps"].reset();
  const Status dead = session->Run(feeds, {"y"}, {}, nullptr);
  EXPECT_EQ(dead.code(), absl::StatusCode::kUnavailable) << dead;
  EXPECT_THAT(std::string(dead.message()), HasSubstr("/job:ps/replica:0/task:0"));
  StartTask("ps");
  const Status restarted = session->Run(feeds, {"y"}, {}, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(restarted) || absl::IsAborted(restarted)) << restarted;

  const std::unique_ptr<Session> fresh = NewSession();
  ASSERT_EQ(fresh->Extend(TwoTaskGraph()), absl::OkStatus());
  ASSERT_EQ(fresh->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  EXPECT_EQ(fresh->Run(feeds, {"y"}, {}, nullptr), absl::OkStatus());
}

TEST_P(ServerTest, ManySessionsAtOnce) {
  {
    const std::unique_ptr<Session> session = NewSession();
    ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
    ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  }
  std::vector<Thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back("client", [&, i] {
      const std::unique_ptr<Session> session = NewSession(i % 2 ? "worker" : "ps");
      if (!session->Extend(TwoTaskGraph()).ok()) return;
      for (int k = 0; k < 20; ++k) {
        std::vector<Tensor> results;
        good +=
            session->Run({{"x", Tensor::Vector<float>({1, 1})}}, {"y"}, {"grow"}, &results).ok();
      }
    });
  }
  for (Thread& thread : threads) thread.Join();
  EXPECT_EQ(good, 8 * 20);
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Extend(TwoTaskGraph()), absl::OkStatus());
  std::vector<Tensor> results;
  ASSERT_EQ(session->Run({}, {"w/read"}, {}, &results), absl::OkStatus());
  EXPECT_EQ(results[0].data<float>()[0], 2 + 8 * 20);
}

TEST_P(ServerTest, ListsTheDevicesOfAll) {
  const StatusOr<std::vector<DeviceAttributes>> devices =
      client::ListClusterDevices(servers_["worker"]->target(), absl::Seconds(60));
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0].name, "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_FALSE(client::ListClusterDevices("127.0.0.1:1", absl::Seconds(2)).ok());
}

TEST_P(ServerTest, ATakenPortIsSaid) {
  ServerOptions options{
      .task = {"ps", 0}, .catalogue = &StandardCatalogue(), .devices = &StandardDevices()};
  options.cluster = *cluster::ClusterSpec::FromJson(spec_);
  const StatusOr<std::unique_ptr<Server>> second = Server::Start(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  options.task = {"chief", 0};
  EXPECT_THAT(std::string(Server::Start(options).status().message()),
              HasSubstr("/job:chief/task:0"));
}

TEST_P(ServerTest, ATakenDataPortIsSaidByItsFlag) {
  const int taken =
      ParseSocketAddress(servers_["ps"]->target().substr(std::string("grpc://").size()))->port;
  ServerOptions options{.task = {"ps", 0},
                        .catalogue = &StandardCatalogue(),
                        .devices = &StandardDevices(),
                        .data_port = taken};
  options.cluster =
      *cluster::ClusterSpec::FromJson(R"({"ps": ["127.0.0.1:1"]})");  // it does not come so far
  const Status refused = Server::Start(options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(absl::StrCat("--data_port ", taken)));
}

TEST_P(ServerTest, WhyNobodyAnswersIsSaid) {
  for (const auto& [target, why] :
       {std::pair("grpc://127.0.0.1:1", "Connection refused: is the server started?"),
        std::pair("grpc://nobody.invalid:2222",
                  "ost name")}) {  // is not known, or nobody says so in time
    const auto session =
        client::NewSession({.target = target, .connect_timeout = absl::Milliseconds(100)});
    ASSERT_TRUE(session.ok()) << session.status();
    const Status status = (*session)->Extend(GraphDef());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST_P(ServerTest, ASessionThatOutlivesItsServerSaysSo) {
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_TRUE(session->Extend(TwoTaskGraph()).ok());
  ASSERT_TRUE(session->Run({}, {}, {"init"}, nullptr).ok());
  servers_.erase("worker");
  EXPECT_EQ(session->Run({}, {"w/read:0"}, {}, nullptr).code(), absl::StatusCode::kUnavailable);
  session->Close().IgnoreError();
}

INSTANTIATE_TEST_SUITE_P(Dialled, ServerTest, ::testing::Values(true));
INSTANTIATE_TEST_SUITE_P(InProcess, ServerTest, ::testing::Values(false));

}  // namespace
}  // namespace weft::server
