// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a partitioned variable, written and read by two parameter servers in this process.
//   partitioned_tool save FOLDER PARTS AXIS      a table [7, 3] of 0, 1, 2, ... and its momentum;
//   prints the path partitioned_tool restore PATH PARTS AXIS     prints the table of the
//   checkpoint, a number a line
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/train/optimizer.h"
#include "weft/train/saver.h"

namespace {

using weft::DType;
using weft::Endpoint;
using weft::GraphBuilder;
using weft::Shape;
using weft::Status;
using weft::StatusOr;
using weft::Tensor;
namespace client = weft::client;
namespace cluster = weft::cluster;
namespace server = weft::server;
namespace train = weft::train;

constexpr int kTasks = 3;

StatusOr<std::vector<std::string>> FreeAddresses() {
  std::vector<int> sockets;
  std::vector<std::string> addresses;
  for (int i = 0; i < kTasks; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
    if (bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return weft::Unavailable("No free port");
    }
    addresses.push_back(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)));
  }
  for (const int socket : sockets) close(socket);
  return addresses;
}

struct Cluster {
  std::vector<std::unique_ptr<server::Server>> servers;
  std::unique_ptr<weft::session::Session> session;
};

StatusOr<Cluster> Start() {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> at, FreeAddresses());
  WEFT_ASSIGN_OR_RETURN(
      const cluster::ClusterSpec spec,
      cluster::ClusterSpec::FromJson(absl::StrCat(R"({"ps":[")", at[0], R"(",")", at[1],
                                                  R"("],"worker":[")", at[2], R"("]})")));
  Cluster out;
  for (int i = 0; i < kTasks; ++i) {
    const cluster::TaskId task = i < 2 ? cluster::TaskId{"ps", i} : cluster::TaskId{"worker", 0};
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<server::Server> server,
                          server::Server::Start({.cluster = spec,
                                                 .task = task,
                                                 .catalogue = &weft::StandardCatalogue(),
                                                 .devices = &weft::StandardDevices(),
                                                 .num_threads = 1}));
    out.servers.push_back(std::move(server));
  }
  WEFT_ASSIGN_OR_RETURN(out.session, client::NewSession({.target = out.servers[2]->target()}));
  return out;
}

Status Run(const std::string& what, const std::string& where, int64_t parts, int axis) {
  train::Program program;
  GraphBuilder& b = program.builder();
  program.set_placement(train::RoundRobinPlacement(2));
  const std::vector<train::Variable> table = program.AddPartitionedVariable(
      "table", DType::kFloat, {7, 3}, train::Zeros(), train::FixedSizePartitioner(parts, axis));
  b.set_device("/job:worker/task:0");
  const Endpoint whole = train::JoinParts(b, table);
  // The gradient is -weights, so one step from 0 makes the table 0, 1, 2, ...
  std::vector<float> weights;
  for (int i = 0; i < 21; ++i) weights.push_back(static_cast<float>(-i));
  const Endpoint product =
      b.Op("Mul", {whole, b.Constant(Tensor::FromSpan<float>(Shape{7, 3}, weights))});
  const Endpoint loss = b.Op("Sum", {product, b.Constant(Tensor::Vector<int32_t>({0, 1}))});
  const auto optimizer = train::Momentum(1, 0.9);
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, optimizer->Minimize(program, loss));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<train::Saver> saver, train::Saver::Create(program));
  weft::Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(const Cluster tasks, Start());
  WEFT_RETURN_IF_ERROR(tasks.session->Extend(weft::ExportGraph(program.graph())));
  if (what == "save") {
    WEFT_RETURN_IF_ERROR(tasks.session->Run({}, {}, {init->name()}, nullptr));
    WEFT_RETURN_IF_ERROR(tasks.session->Run({}, {}, {step->name()}, nullptr));
    WEFT_ASSIGN_OR_RETURN(const std::string path, saver->Save(*tasks.session, where, 1));
    std::printf("%s\n", path.c_str());
    return absl::OkStatus();
  }
  WEFT_RETURN_IF_ERROR(saver->Restore(*tasks.session, where));
  std::vector<Tensor> values;
  WEFT_RETURN_IF_ERROR(
      tasks.session->Run({}, {absl::StrCat(whole.node->name(), ":", whole.port)}, {}, &values));
  for (const float value : values[0].span<float>()) std::printf("%.9g\n", value);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: partitioned_tool save|restore PATH PARTS AXIS\n");
    return 2;
  }
  const Status status = Run(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "partitioned_tool: %s\n", std::string(status.message()).c_str());
  return 1;
}
