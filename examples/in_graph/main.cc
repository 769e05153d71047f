// SPDX-License-Identifier: Apache-2.0
// In-graph replication: one client builds one graph with a replica for each worker task; the
// workers lend their devices.
//   weft run --workers 3 -- build/bin/in_graph
#include <cstdio>
#include <random>

#include "CLI/CLI.hpp"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::Endpoint;
using weft::Tensor;

constexpr int kInputs = 4;
constexpr int kBatch = 60;

// The mean loss of one replica's part of the batch, on its worker's device.
Endpoint Replica(train::Program& program, const train::Task& task, int n, const train::Variable& w,
                 Endpoint x, Endpoint y) {
  weft::GraphBuilder& b = program.builder();
  b.set_device(task.WorkerDevice(n));
  b.PushName("replica_" + std::to_string(n));
  const Endpoint guess = op::MatMul(b, x, w.value);
  const Endpoint axes = b.Constant(Tensor::Vector<int32_t>({0, 1}));
  const Endpoint loss = op::Mean(b, op::SquaredDifference(b, guess, y), axes);
  b.PopName();
  b.set_device("");
  return loss;
}

weft::Status Train(const train::Task& task, int steps) {
  train::Program program;
  weft::GraphBuilder& b = program.builder();
  const Endpoint x =
      op::Placeholder(b, weft::DType::kFloat, {.shape = {kBatch, kInputs}, .name = "x"});
  const Endpoint y = op::Placeholder(b, weft::DType::kFloat, {.shape = {kBatch, 1}, .name = "y"});
  const train::Variable w = program.AddVariable("w", weft::DType::kFloat, {kInputs, 1},
                                                train::Zeros(), {.device = task.WorkerDevice(0)});
  const std::vector<Endpoint> xs = op::Split(b, b.Scalar<int32_t>(0), x, task.num_workers);
  const std::vector<Endpoint> ys = op::Split(b, b.Scalar<int32_t>(0), y, task.num_workers);
  std::vector<Endpoint> losses;
  for (int n = 0; n < task.num_workers; ++n)
    losses.push_back(Replica(program, task, n, w, xs[n], ys[n]));
  const Endpoint share = b.Scalar<float>(1.0f / static_cast<float>(task.num_workers));
  const Endpoint loss = op::Mul(b, op::AddN(b, losses), share, {.name = "loss"});
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::GradientDescent(0.1)->Minimize(program, loss));
  weft::Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, task.NewClusterSession());
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Tensor> results;
  for (int i = 0; i < steps; ++i) {
    std::vector<float> points(kBatch * kInputs), values(kBatch, 0);
    for (size_t k = 0; k < points.size(); ++k) {
      points[k] = normal(random);
      values[k / kInputs] += static_cast<float>(k % kInputs) * points[k];
    }
    WEFT_RETURN_IF_ERROR(session->Run({{"x:0", Tensor::FromSpan<float>({kBatch, kInputs}, points)},
                                       {"y:0", Tensor::FromSpan<float>({kBatch, 1}, values)}},
                                      {"loss:0"}, {step->name()}, &results));
  }
  std::printf("%d replicas, loss %.6f\n", task.num_workers, results[0].scalar<float>());
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 200;
  CLI::App app("Trains one graph with a replica on each worker");
  app.add_option("--steps", steps, "Steps")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = train::RunTask(
      [&](const train::Task& task) { return Train(task, steps); }, {.only_chief_trains = true});
  if (!status.ok()) std::fprintf(stderr, "in_graph: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
