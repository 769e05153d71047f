// SPDX-License-Identifier: Apache-2.0
// A small convolutional network on the digits, in this process.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "digits/digits_data.h"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::Endpoint;
using weft::Tensor;

struct Model {
  Endpoint images, labels, training, loss, accuracy;
};

Model Build(train::Program& program, int64_t seed) {
  weft::GraphBuilder& b = program.builder();
  Model m;
  m.images =
      op::Placeholder(b, weft::DType::kFloat, {.shape = {-1, digits::kPixels}, .name = "images"});
  m.labels = op::Placeholder(b, weft::DType::kInt64, {.shape = {-1}, .name = "labels"});
  m.training = op::Placeholder(b, weft::DType::kBool, {.shape = weft::Shape(), .name = "training"});
  Endpoint x = op::Reshape(b, m.images, b.Constant(Tensor::Vector<int32_t>({-1, 8, 8, 1})));
  x = train::Conv2D(program, "conv1", x, 16, 3, {.activation = train::Relu, .seed = seed});
  x = train::Conv2D(program, "conv2", x, 32, 3, {.activation = train::Relu, .seed = seed + 1});
  x = train::Flatten(b, train::MaxPool(b, x, 2));
  x = train::Dense(program, "hidden", x, 128, {.activation = train::Relu, .seed = seed + 2});
  x = train::Dropout(b, x, 0.5, m.training, seed + 3);
  const Endpoint logits = train::Dense(program, "logits", x, digits::kClasses, {.seed = seed + 4});
  const Endpoint losses = op::SparseSoftmaxCrossEntropyWithLogits(b, logits, m.labels).loss;
  m.loss = op::Mean(b, losses, b.Scalar<int32_t>(0), {.name = "loss"});
  const Endpoint hits = op::Equal(b, op::ArgMax(b, logits, b.Scalar<int32_t>(1)), m.labels);
  m.accuracy = op::Mean(b, op::Cast(b, hits, weft::DType::kFloat), b.Scalar<int32_t>(0),
                        {.name = "accuracy"});
  return m;
}

weft::Status Train(const std::string& path, int steps, double learning_rate, int64_t seed) {
  WEFT_ASSIGN_OR_RETURN(const digits::Data data, digits::Load(path));
  train::Program program;
  const Model m = Build(program, seed);
  WEFT_ASSIGN_OR_RETURN(
      weft::Node * step,
      train::Adam(train::LearningRate::Line(learning_rate, 0, steps))->Minimize(program, m.loss));
  weft::Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, weft::client::NewSession({}));
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  const Tensor yes = Tensor::Scalar<bool>(true), no = Tensor::Scalar<bool>(false);
  digits::Batches batches(data.train, 64, static_cast<unsigned>(seed));
  std::vector<Tensor> results;
  for (int i = 1; i <= steps; ++i) {
    const digits::Set batch = batches.Next();
    WEFT_RETURN_IF_ERROR(
        session->Run({{"images:0", batch.images}, {"labels:0", batch.labels}, {"training:0", yes}},
                     {"loss:0"}, {step->name()}, &results));
    if (i % 200 == 0) std::printf("step %d  loss %.4f\n", i, results[0].scalar<float>());
  }
  WEFT_RETURN_IF_ERROR(session->Run(
      {{"images:0", data.test.images}, {"labels:0", data.test.labels}, {"training:0", no}},
      {"accuracy:0"}, {}, &results));
  std::printf("Test accuracy: %.4f\n", results[0].scalar<float>());
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  std::string data = "examples/digits/digits.csv";
  int steps = 2000;
  double learning_rate = 0.003;
  int64_t seed = 1;
  CLI::App app("Trains a small convolutional network on the digits");
  app.add_option("--data", data, "The digits: digits.csv");
  app.add_option("--steps", steps, "Steps of 64 digits")->check(CLI::PositiveNumber);
  app.add_option("--learning_rate", learning_rate, "Of Adam, at first; it falls to 0");
  app.add_option("--seed", seed, "Of first values, batches and dropout");
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = Train(data, steps, learning_rate, seed);
  if (!status.ok()) std::fprintf(stderr, "convnet: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
