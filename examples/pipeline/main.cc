// SPDX-License-Identifier: Apache-2.0
// The digits from their file to a model that TensorFlow serves: a pipeline reads, parses, shuffles
// and batches them on each worker, a monitored session trains, saves where the pipeline stood and
// goes on there, and the chief exports a SavedModel.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using train::Dataset;
using weft::DType;
using weft::Endpoint;
using weft::GraphBuilder;
using weft::Tensor;
using Tensors = std::vector<Endpoint>;
using Arguments = absl::Span<const Endpoint>;

constexpr int kPixels = 64;
constexpr int kTrain = 1437;  // the first so many lines are for training, as in DATA.md

// "0,0,5,...,9": the pixels [64] in 0..1 and the digit.
Tensors ParseDigit(GraphBuilder& b, Arguments line) {
  const Tensors columns(kPixels + 1, b.Constant(Tensor::Vector<int32_t>({0})));
  Tensors numbers = op::DecodeCSV(b, line[0], columns);
  if (!b.ok()) return {};
  const Endpoint label = numbers.back();
  numbers.pop_back();
  const Endpoint pixels = op::Cast(b, op::Pack(b, numbers), DType::kFloat);
  return {op::Mul(b, pixels, b.Scalar<float>(1.0f / 16)), op::Cast(b, label, DType::kInt64)};
}

Dataset Lines(GraphBuilder& b, const std::string& path) {
  return Dataset::Lines(b, b.Scalar<std::string>(path));
}

struct Model {
  Endpoint images, scores, loss, accuracy;
};

// Trains on the pipeline's digits; `use_others` lets a step say which it means instead.
Model Build(train::Program& program, Endpoint images, Endpoint labels) {
  GraphBuilder& b = program.builder();
  Model m;
  m.images =
      op::PlaceholderWithDefault(b, images, weft::PartialShape{-1, kPixels}, {.name = "images"});
  const Endpoint asked =
      op::PlaceholderWithDefault(b, labels, weft::PartialShape{-1}, {.name = "labels"});
  const Endpoint hidden =
      train::Dense(program, "hidden", m.images, 64, {.activation = train::Relu, .seed = 1});
  m.scores =
      op::Identity(b, train::Dense(program, "scores", hidden, 10, {.seed = 2}), {.name = "scores"});
  const Endpoint losses = op::SparseSoftmaxCrossEntropyWithLogits(b, m.scores, asked).loss;
  const Endpoint all = b.Constant(Tensor::Vector<int32_t>({0}));
  m.loss = op::Mean(b, losses, all, {.name = "loss"});
  const Endpoint hits = op::Equal(b, op::ArgMax(b, m.scores, b.Scalar<int32_t>(1)), asked);
  m.accuracy = op::Mean(b, op::Cast(b, hits, DType::kFloat), all, {.name = "accuracy"});
  return m;
}

weft::Status Train(const train::Task& task, const std::string& data, const std::string& folder,
                   const std::string& exported, int64_t steps) {
  train::Program program;
  program.set_placement(task.Placement());
  GraphBuilder& b = program.builder();
  b.set_device(task.Device());
  const Dataset digits = Lines(b, data)
                             .Take(kTrain)
                             .Shard(task.num_workers, task.worker)
                             .Cache()
                             .Shuffle(kTrain, {.seed = 3, .seed2 = 4})
                             .Repeat()
                             .Map(ParseDigit, {.parallel_calls = 2})
                             .Batch(32)
                             .Prefetch(2);
  const train::DatasetIterator next = train::AddIterator(program, digits, "digits", task.is_chief);
  // All of the test digits at once, each time they are asked for.
  const Dataset test = Lines(b, data).Skip(kTrain).Map(ParseDigit).Batch(1000).Cache().Repeat();
  const train::DatasetIterator all = train::AddIterator(program, test, "test", /*saved=*/false);
  const Model m = Build(program, next.next[0], next.next[1]);
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::Adam(0.002)->Minimize(program, m.loss));
  program.AddSummary(op::ScalarSummary(b, b.Scalar<std::string>("loss"), m.loss));
  WEFT_ASSIGN_OR_RETURN(const auto values, train::Saver::Create(program));

  const auto stop = train::StopAtStep(steps);
  train::TrainingOptions options{.make_session = [&] { return task.NewSession(); },
                                 .is_chief = task.is_chief,
                                 .checkpoint_folder = folder,
                                 .hooks = {stop.get()},
                                 .save_checkpoint = train::Every::Steps(100),
                                 .train = step,
                                 .check_chief = [&] { return task.CheckChief(); }};
  WEFT_ASSIGN_OR_RETURN(const auto session,
                        train::MonitoredSession::CreateTraining(program, options));
  const int64_t first = session->global_step();
  while (!session->ShouldStop()) {
    WEFT_RETURN_IF_ERROR(session->Run({}, {m.loss}, {step}, nullptr));
  }
  if (!task.is_chief) return session->End();
  std::vector<Tensor> results;
  WEFT_RETURN_IF_ERROR(session->RunPlain({}, {all.next[0], all.next[1]}, {}, &results));
  WEFT_RETURN_IF_ERROR(session->RunPlain({{"images:0", results[0]}, {"labels:0", results[1]}},
                                         {m.accuracy}, {}, &results));
  std::printf("Steps %ld to %ld, test accuracy: %.3f\n", first, session->global_step(),
              results[0].scalar<float>());
  if (!exported.empty()) {
    train::ExportOptions to;
    to.signatures["serving_default"] =
        train::MakeSignature(b, {{"images", m.images}}, {{"scores", m.scores}});
    WEFT_RETURN_IF_ERROR(
        train::ExportSavedModel(program, *values, session->session(), exported, to));
  }
  return session->End();
}

}  // namespace

int main(int argc, char** argv) {
  std::string data = "examples/digits/digits.csv", folder = "/tmp/weft-pipeline", exported;
  int64_t steps = 600;
  CLI::App app("Trains on a pipeline of digits");
  app.add_option("--data", data, "The file of digits");
  app.add_option("--model_dir", folder, "Where checkpoints go; training resumes there");
  app.add_option("--export", exported, "Where the SavedModel goes; empty: none is written");
  app.add_option("--steps", steps, "Steps of all workers together");
  CLI11_PARSE(app, argc, argv);
  const weft::Status status = train::RunTask(
      [&](const train::Task& task) { return Train(task, data, folder, exported, steps); });
  if (!status.ok()) std::fprintf(stderr, "pipeline: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
