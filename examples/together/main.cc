// SPDX-License-Identifier: Apache-2.0
// One program for all ways of training together; how is configuration:
//   together --devices 2                              two devices of one process
//   weft run --workers 2 -- together                  two workers, no parameter servers
//   weft run --ps 1 --workers 2 -- together           parameter servers
//   weft run examples/together/tfjob.yaml             workers that may be lost and come back
#include <cmath>
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
constexpr int kHidden = 16;
constexpr int kBatch = 64;  // of all replicas together

struct Input {
  std::string x, y;
};

// The rows of one replica of the batch of a step: the same data however many replicas there are.
void AddRows(int64_t step, int replica, int replicas, const Input& input,
             std::vector<weft::session::Feed>* feeds) {
  std::mt19937 random(static_cast<unsigned>(step));
  std::normal_distribution<float> normal;
  std::vector<float> x(kBatch * kInputs), y(kBatch, 0);
  for (size_t i = 0; i < x.size(); ++i) x[i] = normal(random);
  for (int row = 0; row < kBatch; ++row) {
    for (int i = 0; i < kInputs; ++i) y[row] += x[row * kInputs + i] * static_cast<float>(i - 3);
    y[row] = std::tanh(y[row] / 8);
  }
  const int rows = kBatch / replicas;
  const auto first = static_cast<ptrdiff_t>(replica) * rows;
  feeds->push_back(
      {input.x, Tensor::FromSpan<float>({rows, kInputs}, absl::MakeConstSpan(x).subspan(
                                                             first * kInputs, rows * kInputs))});
  feeds->push_back(
      {input.y, Tensor::FromSpan<float>({rows, 1}, absl::MakeConstSpan(y).subspan(first, rows))});
}

weft::StatusOr<Endpoint> Model(train::Program& program, Input* input) {
  weft::GraphBuilder& b = program.builder();
  const Endpoint x = op::Placeholder(b, weft::DType::kFloat, {.shape = {-1, kInputs}, .name = "x"});
  const Endpoint y = op::Placeholder(b, weft::DType::kFloat, {.shape = {-1, 1}, .name = "y"});
  *input = {train::NameOf(x), train::NameOf(y)};
  const auto weights = [&](const char* name, const weft::Shape& shape) {
    return program.AddVariable(name, weft::DType::kFloat, shape, train::GlorotUniform(1, 2)).value;
  };
  const Endpoint hidden = op::Tanh(b, op::MatMul(b, x, weights("hidden", {kInputs, kHidden})));
  const Endpoint guess = op::MatMul(b, hidden, weights("out", {kHidden, 1}));
  const Endpoint axes = b.Constant(Tensor::Vector<int32_t>({0, 1}));
  return op::Mean(b, op::SquaredDifference(b, guess, y), axes);
}

struct Options {
  int64_t steps = 200;
  int devices = 1;
  std::string folder;
  int sleep_ms = 0;
  int log_every = 20;
};

weft::Status Train(const train::Task& task, const Options& options) {
  train::Program program;
  WEFT_ASSIGN_OR_RETURN(const auto strategy,
                        train::Strategy::Make(task, {.devices = options.devices}));
  std::vector<Input> inputs;
  WEFT_ASSIGN_OR_RETURN(weft::Node * step,
                        strategy->Minimize(program, train::Adam(0.02), [&](train::Program& p, int) {
                          return Model(p, &inputs.emplace_back());
                        }));
  const auto stop = train::StopAtStep(options.steps);
  WEFT_ASSIGN_OR_RETURN(
      const auto session,
      strategy->NewSession(
          program, {.checkpoint_folder = options.folder, .hooks = {stop.get()}, .train = step}));
  const std::vector<int> replicas = strategy->replicas();
  std::vector<Tensor> results;
  while (!session->ShouldStop()) {
    std::vector<weft::session::Feed> feeds;
    for (size_t i = 0; i < replicas.size(); ++i)
      AddRows(session->global_step(), replicas[i], strategy->num_replicas(), inputs[i], &feeds);
    WEFT_RETURN_IF_ERROR(session->Run(feeds, {strategy->loss()}, {step}, &results));
    if (session->global_step() % options.log_every == 0) {
      std::printf("worker %d, step %ld: loss %.9g\n", task.worker, session->global_step(),
                  results[0].scalar<float>());
      std::fflush(stdout);
    }
    if (options.sleep_ms > 0) absl::SleepFor(absl::Milliseconds(options.sleep_ms));
  }
  return session->End();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains together with others, in the way that configuration says");
  app.add_option("--steps", options.steps, "Steps");
  app.add_option("--devices", options.devices, "CPU devices of this process, a replica on each");
  app.add_option("--model_dir", options.folder, "Where checkpoints go; training resumes there");
  app.add_option("--sleep_ms", options.sleep_ms, "Rest between steps, to look on");
  app.add_option("--log_every", options.log_every, "Steps between lines")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  weft::CpuDevices devices(options.devices);
  const weft::Status status = train::RunTask(
      [&](const train::Task& task) { return Train(task, options); }, {.devices = &devices});
  if (!status.ok()) std::fprintf(stderr, "together: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
