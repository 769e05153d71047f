// SPDX-License-Identifier: Apache-2.0
// Whatever a step waits for stands in the registry of the task where it waits, with the device that
// waits and the number of the step: on every path that a step can take to a kernel.
#include "base/waits.h"

#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"

#include "base/threads.h"
#include "net/http_client.h"
#include "net/socket_address.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/session/direct_session.h"

namespace weft::server {
namespace {

using session::Session;
using ::testing::HasSubstr;

constexpr char kTaken[] = "QueueDequeueV2";
constexpr char kWaitedFor[] = "1 of FIFOQueue 'queue'";

NodeDef Take(const std::string& queue) {
  NodeDef take{.name = "take", .op = kTaken, .inputs = {queue}};
  take.attrs["component_types"] = AttrValue::TypeList{DType::kFloat};
  return take;
}

// (handle) -> what it takes out of the queue
FunctionDef TakingFunction() {
  FunctionDef function;
  function.signature.name = "taking";
  function.signature.inputs = {{.name = "queue", .dtype = DType::kResource}};
  function.signature.outputs = {{.name = "out", .dtype = DType::kFloat}};
  function.signature.is_stateful = true;
  function.nodes = {Take("queue")};
  function.returns["out"] = "take:components:0";
  return function;
}

// (handle) -> the handle, once it has taken something
FunctionDef TakingBody() {
  FunctionDef function = TakingFunction();
  function.signature.name = "taking_body";
  function.signature.outputs = {{.name = "out", .dtype = DType::kResource}};
  NodeDef pass{.name = "pass", .op = "Identity", .inputs = {"queue", "^take"}};
  pass.attrs["T"] = DType::kResource;
  function.nodes.push_back(pass);
  function.returns["out"] = "pass:output:0";
  return function;
}

FunctionDef Always() {
  FunctionDef function;
  function.signature.name = "always";
  function.signature.inputs = {{.name = "queue", .dtype = DType::kResource}};
  function.signature.outputs = {{.name = "out", .dtype = DType::kBool}};
  NodeDef yes{.name = "yes", .op = "Const"};
  yes.attrs["dtype"] = DType::kBool;
  yes.attrs["value"] = Tensor::Scalar<bool>(true);
  function.nodes = {yes};
  function.returns["out"] = "yes:output:0";
  return function;
}

// A queue on `device` that stays empty, and nodes that wait for what is in it: by themselves, in a
// function, in the body of a While and in a loop of Enter and Exit nodes.
GraphDef WaitingGraph(const std::string& device) {
  Graph graph(&StandardCatalogue().ops());
  EXPECT_TRUE(graph.AddFunction(TakingFunction()).ok());
  EXPECT_TRUE(graph.AddFunction(TakingBody()).ok());
  EXPECT_TRUE(graph.AddFunction(Always()).ok());
  GraphBuilder b(&graph);
  b.set_device(device);
  const AttrValue::TypeList types{DType::kFloat};
  const Endpoint queue = b.Op("FIFOQueueV2", {}, {{"component_types", types}}, "queue");
  b.Op(kTaken, {queue}, {{"component_types", types}}, "plain");
  b.Op("StatefulPartitionedCall", {std::vector<Endpoint>{queue}},
       {{"f", FunctionRef{"taking"}},
        {"Tin", AttrValue::TypeList{DType::kResource}},
        {"Tout", AttrValue::TypeList{DType::kFloat}}},
       "call");
  b.Op("While", {std::vector<Endpoint>{queue}},
       {{"cond", FunctionRef{"always"}},
        {"body", FunctionRef{"taking_body"}},
        {"T", AttrValue::TypeList{DType::kResource}}},
       "while");
  const Endpoint inside = b.Op("Enter", {queue}, {{"frame_name", "loop"}, {"is_constant", true}});
  const Endpoint first = b.Op("Enter", {b.Scalar<float>(0)}, {{"frame_name", "loop"}});
  Node* const merge = b.AddNode("Merge", {std::vector<Endpoint>{first, first}});
  const Endpoint goes_on = b.Op("LoopCond", {b.Op("GreaterEqual", {Endpoint{merge, 0}, first})});
  Node* const turn = b.AddNode("Switch", {Endpoint{merge, 0}, goes_on});
  b.Op("Exit", {Endpoint{turn, 0}}, {}, "loop");
  b.set_control_inputs({b.Op("Identity", {Endpoint{turn, 1}}).node});
  const Endpoint taken = b.Op(kTaken, {inside}, {{"component_types", types}});
  b.set_control_inputs({});
  EXPECT_TRUE(graph.SetInput(merge, 1, b.Op("NextIteration", {taken})).ok());
  EXPECT_TRUE(b.ok()) << b.status();
  return ExportGraph(graph);
}

// Runs `target` until `told` has shown its wait; the step must end when the session is closed.
void ExpectWaitOf(Session& session, const std::string& target, const std::string& device,
                  const std::function<std::string()>& told) {
  SCOPED_TRACE(target);
  Status ended;
  {
    const Thread step("step", [&] { ended = session.Run({}, {}, {target}, nullptr); });
    const absl::Time give_up = absl::Now() + absl::Seconds(20);
    std::string waits = told();
    while (waits.find(kWaitedFor) == std::string::npos && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(10));
      waits = told();
    }
    EXPECT_THAT(waits, HasSubstr(kWaitedFor));
    EXPECT_THAT(waits, HasSubstr(device));
    EXPECT_THAT(waits, HasSubstr("of step "));
    EXPECT_EQ(session.Close(), absl::OkStatus());
  }
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  EXPECT_THAT(told(), ::testing::Not(HasSubstr(kWaitedFor)));
}

constexpr const char* kTargets[] = {"plain", "call", "while", "loop"};

TEST(Waits, OfASessionInThisProcess) {
  RealClock clock;
  WaitRegistry waits(&clock);
  for (const char* target : kTargets) {
    StatusOr<std::unique_ptr<Session>> session = session::NewDirectSession(
        {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .waits = &waits});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_EQ((*session)->Extend(WaitingGraph("")), absl::OkStatus());
    ExpectWaitOf(**session, target, "/job:localhost/replica:0/task:0/device:CPU:0", [&] {
      std::string all;
      for (const WaitRecord& wait : waits.Snapshot()) absl::StrAppend(&all, DescribeWait(wait));
      return all;
    });
  }
}

class ServerWaits : public ::testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(2);
    ASSERT_TRUE(ports.ok()) << ports.status();
    const StatusOr<cluster::ClusterSpec> cluster = cluster::ClusterSpec::FromJson(
        absl::StrCat(R"({"ps":["127.0.0.1:)", (*ports)[0], R"("],"worker":["127.0.0.1:)",
                     (*ports)[1], R"("]})"));
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (const char* job : {"ps", "worker"}) {
      StatusOr<std::unique_ptr<Server>> server = Server::Start({.cluster = *cluster,
                                                                .task = {job, 0},
                                                                .catalogue = &StandardCatalogue(),
                                                                .devices = &StandardDevices(),
                                                                .num_threads = 2,
                                                                .status_port = 0});
      ASSERT_TRUE(server.ok()) << server.status();
      servers_[job] = *std::move(server);
    }
  }

  // Steps that the worker's master starts wait at `job`.
  void ExpectWaitsAt(const std::string& job) {
    const std::string device = absl::StrCat("/job:", job, "/replica:0/task:0/device:CPU:0");
    for (const char* target : kTargets) {
      StatusOr<std::unique_ptr<Session>> session =
          client::NewSession({.target = servers_["worker"]->target()});
      ASSERT_TRUE(session.ok()) << session.status();
      ASSERT_EQ((*session)->Extend(WaitingGraph(device)), absl::OkStatus());
      ExpectWaitOf(**session, target, device, [&] { return Waits(job); });
    }
  }

  std::string Waits(const std::string& job) {
    const StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(
        absl::StrCat("http://127.0.0.1:", servers_[job]->status_port()), TlsClientOptions());
    if (!client.ok()) return std::string(client.status().message());
    const StatusOr<HttpAnswer> answer = (*client)->Send({.path = "/waits"});
    return answer.ok() ? answer->body : std::string(answer.status().message());
  }

  std::map<std::string, std::unique_ptr<Server>> servers_;
};

TEST_F(ServerWaits, OfStepsAtTheMastersOwnTask) { ExpectWaitsAt("worker"); }

TEST_F(ServerWaits, OfStepsAtAnotherTask) { ExpectWaitsAt("ps"); }

}  // namespace
}  // namespace weft::server
