// SPDX-License-Identifier: Apache-2.0
// Fits a line to points of y = 3x + 2: builds a graph, differentiates, trains, saves, predicts.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "weft/weft.h"

namespace op = weft::op;
namespace train = weft::train;
using weft::DType;
using weft::Endpoint;
using weft::Tensor;

weft::Status Fit(const std::string& target, const std::string& folder, int steps) {
  train::Program program;
  weft::GraphBuilder& b = program.builder();
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.shape = {-1}, .name = "x"});
  const Endpoint y = op::Placeholder(b, DType::kFloat, {.shape = {-1}, .name = "y"});
  const train::Variable slope = program.AddVariable("slope", DType::kFloat, {}, train::Zeros());
  const train::Variable offset = program.AddVariable("offset", DType::kFloat, {}, train::Zeros());
  const Endpoint line = op::AddV2(b, op::Mul(b, slope.value, x), offset.value, {.name = "line"});
  const Endpoint loss =
      op::Mean(b, op::SquaredDifference(b, line, y), b.Scalar<int32_t>(0), {.name = "loss"});
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::GradientDescent(0.1)->Minimize(program, loss));
  weft::Node* init = program.InitializeVariables();
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, weft::client::NewSession({.target = target}));
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  const Tensor xs = Tensor::Vector<float>({-1, 0, 1, 2});
  const Tensor ys = Tensor::Vector<float>({-1, 2, 5, 8});
  std::vector<Tensor> results;
  for (int i = 0; i < steps; ++i) {
    WEFT_RETURN_IF_ERROR(
        session->Run({{"x:0", xs}, {"y:0", ys}}, {"loss:0"}, {step->name()}, &results));
  }
  std::printf("loss %.6f after %d steps\n", results[0].scalar<float>(), steps);
  WEFT_ASSIGN_OR_RETURN(const std::string path, saver->Save(*session, folder, steps));
  WEFT_RETURN_IF_ERROR(
      session->Run({{"x:0", Tensor::Vector<float>({10})}}, {"line:0"}, {}, &results));
  std::printf("at 10: %.3f\nsaved: %s\n", results[0].span<float>()[0], path.c_str());
  return session->Close();
}

int main(int argc, char** argv) {
  std::string target, folder = "/tmp/weft-line";
  int steps = 200;
  CLI::App app("Fits a line to points");
  app.add_option("--target", target, "grpc://host:port of a cluster; empty: this process");
  app.add_option("--model_dir", folder, "Where the checkpoint goes");
  app.add_option("--steps", steps, "Steps of gradient descent")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = Fit(target, folder, steps);
  if (!status.ok())
    std::fprintf(stderr, "linear_regression: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
