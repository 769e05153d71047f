// SPDX-License-Identifier: Apache-2.0
// One model over two tasks: the first layer lies and computes on one, the second on the other.
// Device strings are all it takes; activations and their gradients cross between the tasks.
//   weft run --workers 2 -- build/bin/split_model
#include <cstdio>

#include "CLI/CLI.hpp"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::Endpoint;
using weft::Tensor;

weft::Status Train(const train::Task& task, int steps) {
  train::Program program;
  weft::GraphBuilder& b = program.builder();
  const int last = task.num_workers > 1 ? 1 : 0;
  b.set_device(task.WorkerDevice(0));
  const Endpoint x = op::Placeholder(b, weft::DType::kFloat, {.shape = {4, 2}, .name = "x"});
  const Endpoint hidden =
      train::Dense(program, "first", x, 16, {.activation = train::Tanh, .seed = 3});
  b.set_device(task.WorkerDevice(last));
  const Endpoint y = op::Placeholder(b, weft::DType::kFloat, {.shape = {4, 1}, .name = "y"});
  const Endpoint logits = train::Dense(program, "second", hidden, 1, {.seed = 4});
  const Endpoint guess = op::Sigmoid(b, logits, {.name = "guess"});
  const Endpoint axes = b.Constant(Tensor::Vector<int32_t>({0, 1}));
  const Endpoint loss = op::Mean(b, op::SquaredDifference(b, guess, y), axes, {.name = "loss"});
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::Adam(0.05)->Minimize(program, loss));
  weft::Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, task.NewClusterSession());
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  // Exclusive or: no single layer can learn it.
  const std::vector<weft::session::Feed> feeds = {
      {"x:0", Tensor::FromSpan<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1})},
      {"y:0", Tensor::FromSpan<float>({4, 1}, {0, 1, 1, 0})}};
  for (int i = 0; i < steps; ++i)
    WEFT_RETURN_IF_ERROR(session->Run(feeds, {}, {step->name()}, nullptr));
  std::vector<Tensor> results;
  WEFT_RETURN_IF_ERROR(session->Run(feeds, {"loss:0", "guess:0"}, {}, &results));
  std::printf("layers on '%s' and '%s', loss %.6f\n", task.WorkerDevice(0).c_str(),
              task.WorkerDevice(last).c_str(), results[0].scalar<float>());
  std::printf("xor: %.2f %.2f %.2f %.2f\n", results[1].data<float>()[0],
              results[1].data<float>()[1], results[1].data<float>()[2],
              results[1].data<float>()[3]);
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 300;
  CLI::App app("Trains one model whose layers lie on two tasks");
  app.add_option("--steps", steps, "Steps")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = train::RunTask(
      [&](const train::Task& task) { return Train(task, steps); }, {.only_chief_trains = true});
  if (!status.ok())
    std::fprintf(stderr, "split_model: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
