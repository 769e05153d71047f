// SPDX-License-Identifier: Apache-2.0
// Fits y = slope * x + offset to points and writes it as a version that `weft serve` answers with.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "weft/weft.h"

namespace op = weft::op;
namespace train = weft::train;
using weft::DType;
using weft::Endpoint;
using weft::Tensor;

weft::Status Fit(const std::string& folder, float slope_of_points) {
  train::Program program;
  weft::GraphBuilder& b = program.builder();
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.shape = {-1}, .name = "x"});
  const Endpoint y = op::Placeholder(b, DType::kFloat, {.shape = {-1}, .name = "y"});
  const train::Variable slope = program.AddVariable("slope", DType::kFloat, {}, train::Zeros());
  const train::Variable offset = program.AddVariable("offset", DType::kFloat, {}, train::Zeros());
  const Endpoint line = op::AddV2(b, op::Mul(b, slope.value, x), offset.value);
  const Endpoint loss = op::Mean(b, op::SquaredDifference(b, line, y), b.Scalar<int32_t>(0));
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::GradientDescent(0.1)->Minimize(program, loss));
  weft::Node* init = program.InitializeVariables();
  WEFT_ASSIGN_OR_RETURN(const auto saver, train::Saver::Create(program));
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, weft::client::NewSession({}));
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  const float s = slope_of_points;
  const Tensor xs = Tensor::Vector<float>({-1, 0, 1, 2});
  const Tensor ys = Tensor::Vector<float>({2 - s, 2, 2 + s, 2 + 2 * s});
  std::vector<Tensor> now;
  for (int i = 0; i < 400; ++i) {
    WEFT_RETURN_IF_ERROR(
        session->Run({{"x:0", xs}, {"y:0", ys}}, {train::NameOf(loss)}, {step->name()}, &now));
    if (i % 5 == 0 && i <= 60)
      std::fprintf(stderr, "step %d loss %.6f\n", i, now[0].scalar<float>());
  }

  train::ExportOptions options;
  options.signatures["serving_default"] = train::MakeSignature(b, {{"x", x}}, {{"y", line}});
  WEFT_RETURN_IF_ERROR(train::ExportSavedModel(program, *saver, *session, folder, options));
  std::printf("wrote %s\n", folder.c_str());
  return session->Close();
}

int main(int argc, char** argv) {
  std::string folder;
  float slope = 3;
  CLI::App app("Writes a model for `weft serve`");
  app.add_option("folder", folder, "Of the version: the model's folder and a number")->required();
  app.add_option("--slope", slope, "Of the points");
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = Fit(folder, slope);
  if (!status.ok()) std::fprintf(stderr, "serving: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
