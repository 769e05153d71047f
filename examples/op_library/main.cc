// SPDX-License-Identifier: Apache-2.0
// An optimizer of a library that is loaded at run time: its op applied to variables, like weft's
// own.
#include <cmath>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "weft/kernel/op_library.h"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::DType;
using weft::Endpoint;
using weft::Node;
using weft::Tensor;

class LionOptimizer final : public train::Optimizer {
 public:
  explicit LionOptimizer(train::LearningRate rate) : Optimizer("Lion"), rate_(rate) {}

 private:
  std::vector<weft::Argument> Arguments(train::Program& p, const train::Variable& v) {
    const train::Variable m = Slot(p, v, name(), train::Zeros());
    const auto number = [&](double value) { return Scalar(p, v.dtype, value); };
    return {v.handle, m.handle, rate_.Value(p, v.dtype), number(0.9), number(0.99), number(0)};
  }
  Node* ApplyDense(train::Program& p, const train::Variable& v, Endpoint gradient) override {
    std::vector<weft::Argument> arguments = Arguments(p, v);
    arguments.push_back(gradient);
    return p.builder().AddNode("ResourceApplyLion", arguments);
  }
  Node* ApplySparse(train::Program& p, const train::Variable& v, Endpoint values,
                    Endpoint indices) override {
    std::vector<weft::Argument> arguments = Arguments(p, v);
    arguments.push_back(values);
    arguments.push_back(indices);
    return p.builder().AddNode("ResourceSparseApplyLion", arguments);
  }
  const train::LearningRate rate_;
};

// Fits a line: y = 3x - 1.
weft::Status Train(const std::string& library, int steps) {
  weft::Catalogue catalogue;
  weft::RegisterOps(catalogue);
  WEFT_ASSIGN_OR_RETURN(const auto ops, weft::LoadOpLibrary(library, &catalogue));
  for (const std::string& name : ops) std::printf("loaded %s\n", name.c_str());

  train::Program program(&catalogue.ops());
  weft::GraphBuilder& b = program.builder();
  const Endpoint x = b.Constant(Tensor::Vector<float>({-1, 0, 1, 2}));
  const Endpoint y = b.Constant(Tensor::Vector<float>({-4, -1, 2, 5}));
  const train::Variable w = program.AddVariable("w", DType::kFloat, {}, train::Zeros());
  const train::Variable bias = program.AddVariable("bias", DType::kFloat, {}, train::Zeros());
  const Endpoint guess = op::AddV2(b, op::Mul(b, x, w.value), bias.value);
  const Endpoint loss = op::Mean(b, op::SquaredDifference(b, guess, y), b.Scalar<int32_t>(0));
  LionOptimizer lion(train::LearningRate::Line(0.1, 0, steps));
  WEFT_ASSIGN_OR_RETURN(Node * step, lion.Minimize(program, loss));
  Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, weft::client::NewSession({.catalogue = &catalogue}));
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  for (int i = 0; i < steps; ++i) {
    WEFT_RETURN_IF_ERROR(session->Run({}, {}, {step->name()}, nullptr));
  }
  std::vector<Tensor> found;
  WEFT_RETURN_IF_ERROR(
      session->Run({}, {w.value.node->name() + ":0", bias.value.node->name() + ":0"}, {}, &found));
  std::printf("y = %.2f x + %.2f\n", found[0].scalar<float>(), found[1].scalar<float>());
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  std::string library = "lion.so";
  int steps = 200;
  CLI::App app("Trains with an optimizer of an op library");
  app.add_option("library", library, "The library")->capture_default_str();
  app.add_option("--steps", steps, "Steps of Lion")->check(CLI::Range(1, 1000000));
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = Train(library, steps);
  if (!status.ok()) std::fprintf(stderr, "op_library: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
