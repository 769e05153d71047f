// SPDX-License-Identifier: Apache-2.0
// An op of one's own: signature, shape, gradient and kernel, registered by the program and used in
// training.
#include <cmath>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::DType;
using weft::Endpoint;
using weft::Tensor;

// y = exp(-x * x)
class BumpKernel final : public weft::OpKernel {
 public:
  weft::Status Compute(weft::KernelContext& c) override {
    const Tensor& x = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
    c.ParallelFor(x.num_elements(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y->data<float>()[i] = std::exp(-x.data<float>()[i] * x.data<float>()[i]);
    });
    return absl::OkStatus();
  }
};

// dL/dx = dL/dy * -2xy
weft::Status BumpGradient(weft::GradientContext& c) {
  weft::GraphBuilder& b = c.builder();
  const Endpoint slope = op::Mul(b, b.Scalar<float>(-2), op::Mul(b, c.input(0), c.output(0)));
  c.set_input(0, op::Mul(b, c.gradient(), slope));
  return absl::OkStatus();
}

void RegisterBump(weft::Catalogue& catalogue) {
  catalogue.Add(weft::OpSpec("Bump")
                    .Doc("Computes exp(-x * x) element-wise.")
                    .Input("x: float")
                    .Output("y: float")
                    .Shape(weft::shapes::SameAsInput)
                    .Gradient(BumpGradient)
                    .Kernel(weft::MakeKernel<BumpKernel>()));
}

// Fits a sine with a layer of bumps.
weft::Status Train(const weft::Catalogue& catalogue, int steps) {
  train::Program program(&catalogue.ops());
  weft::GraphBuilder& b = program.builder();
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.shape = {-1, 1}, .name = "x"});
  const Endpoint y = op::Placeholder(b, DType::kFloat, {.shape = {-1, 1}, .name = "y"});
  const auto bump = [](weft::GraphBuilder& builder, Endpoint in) {
    return builder.Op("Bump", {in});
  };
  const Endpoint hidden = train::Dense(program, "bumps", x, 24, {.activation = bump, .seed = 1});
  const Endpoint guess = train::Dense(program, "sum", hidden, 1, {.seed = 2});
  const Endpoint axes = b.Constant(Tensor::Vector<int32_t>({0, 1}));
  const Endpoint loss = op::Mean(b, op::SquaredDifference(b, guess, y), axes, {.name = "loss"});
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::Adam(0.02)->Minimize(program, loss));
  weft::Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, weft::client::NewSession({.catalogue = &catalogue}));
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  std::vector<float> xs, ys;
  for (float at = -3; at <= 3; at += 0.1f) {
    xs.push_back(at);
    ys.push_back(std::sin(at));
  }
  const weft::Shape shape = {static_cast<int64_t>(xs.size()), 1};
  std::vector<Tensor> first, last;
  for (int i = 0; i < steps; ++i) {
    WEFT_RETURN_IF_ERROR(session->Run(
        {{"x:0", Tensor::FromSpan<float>(shape, xs)}, {"y:0", Tensor::FromSpan<float>(shape, ys)}},
        {"loss:0"}, {step->name()}, i == 0 ? &first : &last));
  }
  std::printf("loss %.5f at first, %.5f at last\n", first[0].scalar<float>(),
              last[0].scalar<float>());
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 600;
  CLI::App app("Trains a network with an op of the program's own");
  app.add_option("--steps", steps, "Steps of Adam")->check(CLI::Range(2, 1000000));
  CLI11_PARSE(app, argc, argv);
  weft::Catalogue catalogue;
  weft::RegisterOps(catalogue);
  RegisterBump(catalogue);
  const weft::Status status =
      catalogue.status().ok() ? Train(catalogue, steps) : catalogue.status();
  if (!status.ok()) std::fprintf(stderr, "custom_op: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
