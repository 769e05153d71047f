// SPDX-License-Identifier: Apache-2.0
// A small convolutional network on the digits, in this process.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

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

struct Flags {
  std::string data = "examples/digits/digits.csv";
  int steps = 2000;
  double learning_rate = 0.003;
  std::string optimizer = "adam";
  int num_layers = 2;
  int64_t seed = 1;
};

std::unique_ptr<train::Optimizer> MakeOptimizer(const Flags& flags) {
  const auto rate = train::LearningRate::Line(flags.learning_rate, 0, flags.steps);
  if (flags.optimizer == "sgd") return train::GradientDescent(rate);
  if (flags.optimizer == "ftrl") return train::Ftrl(rate);
  return train::Adam(rate);
}

Model Build(train::Program& program, int num_layers, int64_t seed) {
  weft::GraphBuilder& b = program.builder();
  Model m;
  m.images =
      op::Placeholder(b, weft::DType::kFloat, {.shape = {-1, digits::kPixels}, .name = "images"});
  m.labels = op::Placeholder(b, weft::DType::kInt64, {.shape = {-1}, .name = "labels"});
  m.training = op::Placeholder(b, weft::DType::kBool, {.shape = weft::Shape(), .name = "training"});
  Endpoint x = op::Reshape(b, m.images, b.Constant(Tensor::Vector<int32_t>({-1, 8, 8, 1})));
  x = train::Conv2D(program, "conv1", x, 16, 3, {.activation = train::Relu, .seed = seed});
  for (int i = 2; i <= num_layers; ++i) {
    x = train::Conv2D(program, "conv" + std::to_string(i), x, 32, 3,
                      {.activation = train::Relu, .seed = seed + 10 * i - 19});
  }
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

weft::Status Train(const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const digits::Data data, digits::Load(flags.data));
  train::Program program;
  const Model m = Build(program, flags.num_layers, flags.seed);
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, MakeOptimizer(flags)->Minimize(program, m.loss));
  weft::Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());

  WEFT_ASSIGN_OR_RETURN(const auto session, weft::client::NewSession({}));
  WEFT_RETURN_IF_ERROR(session->Extend(weft::ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  const Tensor yes = Tensor::Scalar<bool>(true), no = Tensor::Scalar<bool>(false);
  digits::Batches batches(data.train, 64, static_cast<unsigned>(flags.seed));
  std::vector<Tensor> results;
  const auto accuracy_of = [&](const digits::Set& set) -> weft::StatusOr<float> {
    WEFT_RETURN_IF_ERROR(
        session->Run({{"images:0", set.images}, {"labels:0", set.labels}, {"training:0", no}},
                     {"accuracy:0"}, {}, &results));
    return results[0].scalar<float>();
  };
  for (int i = 1; i <= flags.steps; ++i) {
    const digits::Set batch = batches.Next();
    WEFT_RETURN_IF_ERROR(
        session->Run({{"images:0", batch.images}, {"labels:0", batch.labels}, {"training:0", yes}},
                     {"loss:0"}, {step->name()}, &results));
    if (i % 200 == 0) std::printf("step %d  loss %.4f\n", i, results[0].scalar<float>());
  }
  // As searches for the best parameters read them.
  WEFT_ASSIGN_OR_RETURN(const float trained, accuracy_of(data.train));
  WEFT_ASSIGN_OR_RETURN(const float tested, accuracy_of(data.test));
  std::printf("Validation-accuracy=%.6f accuracy=%.6f\n", tested, trained);
  std::printf("Test accuracy: %.4f\n", tested);
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains a small convolutional network on the digits");
  app.add_option("--data", flags.data, "The digits: digits.csv");
  app.add_option("--steps", flags.steps, "Steps of 64 digits")->check(CLI::PositiveNumber);
  app.add_option("--learning_rate,--lr", flags.learning_rate, "At first; it falls to 0");
  app.add_option("--optimizer", flags.optimizer, "sgd, adam or ftrl")
      ->check(CLI::IsMember({"sgd", "adam", "ftrl"}));
  app.add_option("--num-layers", flags.num_layers, "Convolutions")->check(CLI::Range(1, 8));
  app.add_option("--seed", flags.seed, "Of first values, batches and dropout");
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = Train(flags);
  if (!status.ok()) std::fprintf(stderr, "convnet: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
