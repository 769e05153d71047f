// SPDX-License-Identifier: Apache-2.0
// weft's side of the session benchmarks. Reads a line, measures one round, prints it as JSON;
// bench/run.py starts it beside its peers and takes turns, so that all see the same machine.
//
//   session_rounds dispatch (matmul|add) (chain|wide) THREADS (plain|fused)
//   session_rounds kernels CHAINS THREADS DEVICES    chains of 50 kernels that do not share
//   themselves out, the chains spread over CPU devices
//   session_rounds mlp BATCH THREADS
//   session_rounds cluster TARGET WORKER BATCH    the seeds' MLP, variables on /job:ps/task:0
//   session_rounds worker CLUSTER INDEX BATCH     the same in a process that is the worker too
//   session_rounds bounce TARGET WORKER ELEMENTS  float32 from the worker to the parameter server
//   and back
//
// {"us": microseconds a step, "check": what the tenth step gave: peers must agree on it}
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "bench/rounds.h"
#include "weft/api/ops.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/session/direct_session.h"
#include "weft/train/optimizer.h"

namespace weft {
namespace {

using bench::Step;
using session::Session;

StatusOr<std::unique_ptr<Session>> Open(const Graph& graph, int threads, bool optimise,
                                        DeviceFactory* devices = &StandardDevices()) {
  WEFT_ASSIGN_OR_RETURN(auto session, session::NewDirectSession({.catalogue = &StandardCatalogue(),
                                                                 .devices = devices,
                                                                 .num_threads = threads,
                                                                 .fold = optimise,
                                                                 .fuse = optimise}));
  WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(graph)));
  return session;
}

Tensor Filled(const Shape& shape, float value) {
  return Tensor::FromSpan<float>(shape, std::vector<float>(shape.num_elements(), value));
}

// 1,000 nodes of 4x4: in a row, or side by side on the parts of one tensor.
StatusOr<Step> Dispatch(const std::string& kind, bool chain, int threads, bool optimise) {
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder b(&graph);
  constexpr int kNodes = 1000;
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.name = "x"});
  const Endpoint y = op::Placeholder(b, DType::kFloat, {.shape = {4, 4}, .name = "y"});
  const auto node = [&](Endpoint a) {
    return kind == "matmul" ? op::MatMul(b, a, y) : op::AddV2(b, a, y);
  };
  Endpoint out = x;
  if (chain) {
    for (int i = 0; i < kNodes; ++i) out = node(out);
  } else {
    std::vector<Endpoint> parts = op::Unpack(b, x, kNodes);
    for (Endpoint& part : parts) part = node(part);
    out = op::AddN(b, parts);
  }
  WEFT_RETURN_IF_ERROR(b.status());
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Session> opened, Open(graph, threads, optimise));
  std::shared_ptr<Session> session = std::move(opened);  // shared by copies of the step
  const std::string fetch = absl::StrCat(out.node->name(), ":0");
  const Tensor fed_x = Filled(chain ? Shape{4, 4} : Shape{kNodes, 4, 4}, 1);
  const Tensor fed_y = Filled(Shape{4, 4}, 0.25f);
  return Step([=]() -> StatusOr<double> {
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session->Run({{"x:0", fed_x}, {"y:0", fed_y}}, {fetch}, {}, &results));
    return results[0].data<float>()[0];
  });
}

// Chains of 50 sorts of a row each, which one thread has to do.
StatusOr<Step> Kernels(int chains, int threads, int devices) {
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder b(&graph);
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.name = "x"});
  constexpr int kRow = 6'000;
  const Endpoint all = b.Scalar<int32_t>(kRow);
  std::vector<Endpoint> ends;
  for (int i = 0; i < chains; ++i) {
    if (devices > 1) b.set_device(absl::StrCat("/device:CPU:", i % devices));
    Endpoint end = op::Add(b, x, b.Scalar<float>(0));
    for (int k = 0; k < 50; ++k) end = op::Neg(b, op::TopKV2(b, end, all).values);
    ends.push_back(end);
  }
  b.set_device("");
  const Endpoint out = op::AddN(b, ends);
  WEFT_RETURN_IF_ERROR(b.status());
  static CpuDevices cpus(devices);  // outlives the session
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Session> opened, Open(graph, threads, false, &cpus));
  std::shared_ptr<Session> session = std::move(opened);  // shared by copies of the step
  const std::string fetch = absl::StrCat(out.node->name(), ":0");
  Tensor fed = Filled(Shape{kRow}, 0);
  for (int i = 0; i < kRow; ++i) fed.data<float>()[i] = static_cast<float>(i * 997 % kRow);
  return Step([=]() -> StatusOr<double> {
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session->Run({{"x:0", fed}}, {fetch}, {}, &results));
    return results[0].data<float>()[0];
  });
}

struct Mlp {
  Endpoint loss;
  Node* train = nullptr;
};

// 784-100-10 with sigmoid, softmax cross entropy and SGD, as in the seeds' first program.
StatusOr<Mlp> BuildMlp(train::Program& program) {
  GraphBuilder& b = program.builder();
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.shape = {-1, 784}, .name = "x"});
  const Endpoint y = op::Placeholder(b, DType::kFloat, {.shape = {-1, 10}, .name = "y"});
  const auto w1 = program.AddVariable("w1", DType::kFloat, {784, 100}, train::Constant(0.01));
  const auto b1 = program.AddVariable("b1", DType::kFloat, {100}, train::Zeros());
  const auto w2 = program.AddVariable("w2", DType::kFloat, {100, 10}, train::Constant(0.01));
  const auto b2 = program.AddVariable("b2", DType::kFloat, {10}, train::Zeros());
  const Endpoint hidden = op::Relu(b, op::BiasAdd(b, op::MatMul(b, x, w1.value), b1.value));
  const Endpoint logits = op::BiasAdd(b, op::MatMul(b, hidden, w2.value), b2.value);
  Mlp mlp;
  mlp.loss =
      op::Mean(b, op::SoftmaxCrossEntropyWithLogits(b, logits, y).loss, b.Scalar<int32_t>(0));
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(mlp.train, train::GradientDescent(0.001)->Minimize(program, mlp.loss));
  return mlp;
}

StatusOr<Step> MlpStep(std::unique_ptr<Session> opened, const Mlp& mlp,
                       const std::vector<std::string>& init, int64_t batch) {
  std::shared_ptr<Session> session = std::move(opened);  // shared by copies of the step
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, init, nullptr));
  Tensor x = Filled(Shape{batch, 784}, 0);
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.data<float>()[i] = static_cast<float>(i % 97) / 97;
  Tensor y = Filled(Shape{batch, 10}, 0);
  for (int64_t i = 0; i < batch; ++i) y.data<float>()[i * 10 + i % 10] = 1;
  const std::string loss = absl::StrCat(mlp.loss.node->name(), ":0");
  const std::string train = mlp.train->name();
  return Step([=]() -> StatusOr<double> {
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session->Run({{"x:0", x}, {"y:0", y}}, {loss}, {train}, &results));
    return results[0].data<float>()[0];
  });
}

StatusOr<Step> LocalMlp(int64_t batch, int threads) {
  train::Program program;
  WEFT_ASSIGN_OR_RETURN(const Mlp mlp, BuildMlp(program));
  Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(auto session, Open(program.graph(), threads, true));
  return MlpStep(std::move(session), mlp, {init->name()}, batch);
}

StatusOr<Step> ClusterMlp(const std::string& target, const std::string& worker, int64_t batch) {
  train::Program program;
  program.set_placement(train::RoundRobinPlacement(1));
  program.builder().set_device(worker);
  WEFT_ASSIGN_OR_RETURN(const Mlp mlp, BuildMlp(program));
  Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(
      auto session, client::NewSession({.target = target, .device_filters = {"/job:ps", worker}}));
  WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(program.graph())));
  return MlpStep(std::move(session), mlp, {init->name()}, batch);
}

StatusOr<Step> Bounce(const std::string& target, const std::string& worker, int64_t elements) {
  constexpr char kServer[] = "/job:ps/task:0";
  train::Program program;
  GraphBuilder& b = program.builder();
  b.set_device(worker);
  const train::Variable there =
      program.AddVariable("there", DType::kFloat, {elements}, train::Zeros(), {.device = kServer});
  const train::Variable here =
      program.AddVariable("here", DType::kFloat, {elements}, train::Ones(), {.device = worker});
  const Endpoint sent = op::Neg(b, here.value);
  b.set_device(kServer);
  Node* pushed = op::AssignVariableOp(b, there.handle, sent);
  b.set_control_inputs({pushed});
  const Endpoint got = op::ReadVariableOp(b, there.handle, DType::kFloat);
  b.set_control_inputs({});
  b.set_device(worker);
  const Endpoint back = op::Neg(b, got);
  Node* stored = op::AssignVariableOp(b, here.handle, back);
  const Endpoint first = op::Squeeze(b, op::Slice(b, back, b.Constant(Tensor::Vector<int32_t>({0})),
                                                  b.Constant(Tensor::Vector<int32_t>({1}))));
  Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(
      auto opened, client::NewSession({.target = target, .device_filters = {"/job:ps", worker}}));
  std::shared_ptr<Session> session = std::move(opened);  // shared by copies of the step
  WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  return Step([session, fetch = absl::StrCat(first.node->name(), ":0"),
               target_node = stored->name()]() -> StatusOr<double> {
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session->Run({}, {fetch}, {target_node}, &results));
    return results[0].data<float>()[0];
  });
}

// A server that the step needs goes into `server`.
StatusOr<Step> Choose(const std::vector<std::string>& args,
                      std::unique_ptr<server::Server>* server) {
  int threads = 0;
  int64_t batch = 0;
  if (args.size() == 5 && args[0] == "dispatch" && absl::SimpleAtoi(args[3], &threads)) {
    return Dispatch(args[1], args[2] == "chain", threads, args[4] == "fused");
  }
  int chains = 0;
  int devices = 0;
  if (args.size() == 4 && args[0] == "kernels" && absl::SimpleAtoi(args[1], &chains) &&
      absl::SimpleAtoi(args[2], &threads) && absl::SimpleAtoi(args[3], &devices) && devices > 0) {
    return Kernels(chains, threads, devices);
  }
  if (args.size() == 3 && args[0] == "mlp" && absl::SimpleAtoi(args[1], &batch) &&
      absl::SimpleAtoi(args[2], &threads)) {
    return LocalMlp(batch, threads);
  }
  if (args.size() == 4 && args[0] == "cluster" && absl::SimpleAtoi(args[3], &batch)) {
    return ClusterMlp(args[1], args[2], batch);
  }
  if (args.size() == 4 && args[0] == "worker" && absl::SimpleAtoi(args[2], &threads) &&
      absl::SimpleAtoi(args[3], &batch)) {
    WEFT_ASSIGN_OR_RETURN(cluster::ClusterSpec spec, cluster::ClusterSpec::FromJson(args[1]));
    const cluster::TaskId task{.job = "worker", .index = threads};
    WEFT_ASSIGN_OR_RETURN(*server, server::Server::Start({.cluster = std::move(spec),
                                                          .task = task,
                                                          .catalogue = &StandardCatalogue(),
                                                          .devices = &StandardDevices()}));
    return ClusterMlp((*server)->target(), task.ToString(), batch);
  }
  if (args.size() == 4 && args[0] == "bounce" && absl::SimpleAtoi(args[3], &batch)) {
    return Bounce(args[1], args[2], batch);
  }
  return InvalidArgument(
      "usage: session_rounds dispatch (matmul|add) (chain|wide) THREADS (plain|fused) | "
      "kernels CHAINS THREADS DEVICES | mlp BATCH THREADS | cluster TARGET WORKER BATCH | worker "
      "CLUSTER "
      "INDEX BATCH | bounce "
      "TARGET WORKER ELEMENTS");
}

Status Main(const std::vector<std::string>& args) {
  std::unique_ptr<server::Server> server;
  WEFT_ASSIGN_OR_RETURN(const Step step, Choose(args, &server));
  return bench::Serve(step);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const weft::Status status = weft::Main({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "session_rounds: %s\n", std::string(status.message()).c_str());
  return 1;
}
