// SPDX-License-Identifier: Apache-2.0
// Between-graph replication: every worker builds the same graph and applies its gradients to the
// variables of the parameter servers when it has them, without waiting for others.
//   weft run --ps 1 --workers 2 -- build/bin/between_graph
#include <cstdio>
#include <random>

#include "CLI/CLI.hpp"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::Endpoint;
using weft::Tensor;

constexpr int kInputs = 8;
constexpr int kBatch = 32;

// Points of y = sum of (i + 1) * x[i], each worker's own.
std::vector<weft::session::Feed> MakeBatch(std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(kBatch * kInputs), y(kBatch, 0);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(random);
    y[i / kInputs] += static_cast<float>(i % kInputs + 1) * x[i];
  }
  return {{"x:0", Tensor::FromSpan<float>({kBatch, kInputs}, x)},
          {"y:0", Tensor::FromSpan<float>({kBatch, 1}, y)}};
}

weft::Status Train(const train::Task& task, int64_t steps, const std::string& folder) {
  train::Program program;
  program.set_placement(task.Placement());
  weft::GraphBuilder& b = program.builder();
  b.set_device(task.Device());
  const Endpoint x = op::Placeholder(b, weft::DType::kFloat, {.shape = {-1, kInputs}, .name = "x"});
  const Endpoint y = op::Placeholder(b, weft::DType::kFloat, {.shape = {-1, 1}, .name = "y"});
  const Endpoint guess = train::Dense(program, "line", x, 1);
  const Endpoint axes = b.Constant(Tensor::Vector<int32_t>({0, 1}));
  const Endpoint loss = op::Mean(b, op::SquaredDifference(b, guess, y), axes);
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::GradientDescent(0.02)->Minimize(program, loss));
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));

  const auto stop = train::StopAtStep(steps);
  const auto save = train::SaveCheckpoints(saver.get(), folder, train::Every::Steps(500));
  const auto count = train::CountSteps("", train::Every::Steps(1000));
  train::MonitoredOptions options{.make_session = [&] { return task.NewSession(); },
                                  .is_chief = task.is_chief,
                                  .saver = saver.get(),
                                  .checkpoint_folder = folder,
                                  .hooks = {stop.get(), count.get()},
                                  .train = step};
  if (task.is_chief) options.hooks.push_back(save.get());
  WEFT_ASSIGN_OR_RETURN(const auto session, train::MonitoredSession::Create(program, options));
  std::mt19937 random(static_cast<unsigned>(task.worker + 1));
  std::vector<Tensor> results;
  int64_t own = 0;
  for (; !session->ShouldStop(); ++own) {
    WEFT_RETURN_IF_ERROR(session->Run(MakeBatch(random), {loss}, {step}, &results));
  }
  if (!results.empty()) {
    std::printf("worker %d: %ld of %ld steps, loss %.6f\n", task.worker, own,
                session->global_step(), results[0].scalar<float>());
    std::fflush(stdout);
  }
  return session->End();
}

}  // namespace

int main(int argc, char** argv) {
  int64_t steps = 1000;
  std::string folder = "/tmp/weft-between-graph";
  CLI::App app("Trains on parameter servers, asynchronously");
  app.add_option("--steps", steps, "Steps of all workers together");
  app.add_option("--model_dir", folder, "Where checkpoints go; training resumes there");
  CLI11_PARSE(app, argc, argv);
  const weft::Status status =
      train::RunTask([&](const train::Task& task) { return Train(task, steps, folder); });
  if (!status.ok())
    std::fprintf(stderr, "between_graph: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
