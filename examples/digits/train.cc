// SPDX-License-Identifier: Apache-2.0
// Trains a digit classifier on a cluster: one process a task, which TF_CONFIG tells who it is.
// Without TF_CONFIG it trains in this process. `weft run examples/digits/tfjob.yaml` starts all
// tasks.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "digits_data.h"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::DType;
using weft::Endpoint;
using weft::GraphBuilder;
using weft::Node;
using weft::Status;
using weft::Tensor;

constexpr int64_t kFirst = 256;
constexpr int64_t kSecond = 128;
constexpr int64_t kThird = 64;

struct Flags {
  std::string data = "examples/digits/digits.csv";
  std::string model_dir = "/tmp/weft-digits";
  std::string summary_dir;
  int64_t steps = 4000;
  int64_t batch = 64;
  int64_t seed = 1;
  int64_t backups = 0;
  double learning_rate = 0.003;
  bool async = false;
};

struct Model {
  Endpoint images, labels, loss, correct;
};

Model Build(train::Program& program, int64_t seed) {
  GraphBuilder& b = program.builder();
  Model m;
  m.images = op::Placeholder(b, DType::kFloat, {.shape = {-1, digits::kPixels}, .name = "images"});
  m.labels = op::Placeholder(b, DType::kInt64, {.shape = {-1}, .name = "labels"});
  // The first values are those of `seed`, whatever else is random.
  const auto layer = [&](const std::string& name, Endpoint x, int64_t in, int64_t out,
                         int64_t number) {
    const train::Variable w = program.AddVariable(name + "/w", DType::kFloat, {in, out},
                                                  train::GlorotUniform(seed, number));
    const train::Variable bias =
        program.AddVariable(name + "/b", DType::kFloat, {out}, train::Zeros());
    return op::BiasAdd(b, op::MatMul(b, x, w.value), bias.value);
  };
  const Endpoint first = op::Relu(b, layer("first", m.images, digits::kPixels, kFirst, 1));
  const Endpoint second = op::Relu(b, layer("second", first, kFirst, kSecond, 2));
  const Endpoint third = op::Relu(b, layer("third", second, kSecond, kThird, 3));
  const Endpoint logits = layer("out", third, kThird, digits::kClasses, 4);
  const Endpoint losses = op::SparseSoftmaxCrossEntropyWithLogits(b, logits, m.labels).loss;
  m.loss = op::Mean(b, losses, b.Scalar<int32_t>(0));
  const Endpoint hits = op::Equal(b, op::ArgMax(b, logits, b.Scalar<int32_t>(1)), m.labels);
  m.correct = op::Mean(b, op::Cast(b, hits, DType::kFloat), b.Scalar<int32_t>(0));
  program.AddSummary(op::ScalarSummary(b, b.Scalar<std::string>("loss"), m.loss));
  return m;
}

void TellWhereItStarts(const Flags& flags, int64_t step) {
  if (step >= flags.steps) {
    std::printf(
        "Trained already, to step %ld: more --steps train on, another --model_dir starts anew\n",
        step);
  } else if (step > 0) {
    std::printf("Resuming at step %ld of %ld from %s\n", step, flags.steps,
                flags.model_dir.c_str());
  }
}

Status Train(const Flags& flags, const train::Task& task) {
  WEFT_ASSIGN_OR_RETURN(const digits::Data data, digits::Load(flags.data));
  train::Program program;
  if (task.num_ps > 0) program.set_placement(train::GreedyPlacement(task.num_ps));
  program.builder().set_device(task.Device());
  const Model model = Build(program, flags.seed);
  WEFT_RETURN_IF_ERROR(program.status());
  const bool sync = task.num_workers > 1 && !flags.async;
  const train::LearningRate rate = train::LearningRate::Line(flags.learning_rate, 0, flags.steps);
  const int needed = std::max<int>(1, task.num_workers - static_cast<int>(flags.backups));
  train::SyncReplicas replicas(train::Adam(rate), needed, task.num_workers, task.worker);
  std::unique_ptr<train::Optimizer> adam = train::Adam(rate);
  Node* train_node = nullptr;
  if (sync) {
    WEFT_ASSIGN_OR_RETURN(train_node, replicas.Minimize(program, model.loss));
  } else {
    WEFT_ASSIGN_OR_RETURN(train_node, adam->Minimize(program, model.loss));
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<train::Saver> saver, train::Saver::Create(program));
  std::vector<std::unique_ptr<train::Hook>> hooks;
  hooks.push_back(train::StopAtStep(flags.steps));
  if (task.is_chief) {
    hooks.push_back(train::SaveCheckpoints(saver.get(), flags.model_dir, train::Every::Steps(100)));
    hooks.push_back(train::ReportProgress(model.loss, flags.steps,
                                          flags.batch * (sync ? needed : 1),
                                          absl::Milliseconds(500), train::ProgressPrinter()));
    if (sync) hooks.push_back(replicas.ChiefHook());
  }
  // Each worker's summaries are a run of their own, where they have folders of their own.
  const std::string summary_dir = flags.summary_dir.empty() ? flags.model_dir : flags.summary_dir;
  if (task.is_chief || !flags.summary_dir.empty())
    hooks.push_back(train::WriteSummaries(summary_dir, train::Every::Steps(20)));
  train::MonitoredOptions options{.make_session = [&] { return task.NewSession(); },
                                  .is_chief = task.is_chief,
                                  .saver = saver.get(),
                                  .checkpoint_folder = flags.model_dir};
  for (const auto& hook : hooks) options.hooks.push_back(hook.get());
  options.train = train_node;
  if (sync) {
    options.chief_init = replicas.chief_init();
    options.chief_resume = replicas.chief_resume();
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<train::MonitoredSession> session,
                        train::MonitoredSession::Create(program, options));
  if (task.is_chief) TellWhereItStarts(flags, session->global_step());
  digits::Batches batches(data.train, static_cast<int>(flags.batch),
                          static_cast<unsigned>(flags.seed * 1000 + task.worker));
  while (!session->ShouldStop() && session->global_step() < flags.steps) {
    const digits::Set batch = batches.Next();
    WEFT_RETURN_IF_ERROR(session->Run({{"images:0", batch.images}, {"labels:0", batch.labels}}, {},
                                      {train_node}, nullptr));
  }
  if (!task.is_chief) return absl::OkStatus();
  std::vector<Tensor> accuracy;
  WEFT_RETURN_IF_ERROR(
      session->RunPlain({{"images:0", data.test.images}, {"labels:0", data.test.labels}},
                        {model.correct}, {}, &accuracy));
  WEFT_RETURN_IF_ERROR(session->End());
  std::printf("Test accuracy: %.4f (%d digits not seen in training)\n", accuracy[0].scalar<float>(),
              digits::kTest);
  std::printf("Checkpoints and TensorBoard files: %s\n", flags.model_dir.c_str());
  std::printf("Next: tensorboard --logdir %s\n      weft inspect %s\n", flags.model_dir.c_str(),
              flags.model_dir.c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains a digit classifier, alone or as a task of a job");
  app.add_option("--data", flags.data, "The digits: digits.csv");
  app.add_option("--model_dir", flags.model_dir,
                 "Where checkpoints and summaries go; training resumes there");
  app.add_option("--summary_dir", flags.summary_dir,
                 "Where this task's own summaries go; without it the chief's go to --model_dir")
      ->envname("WEFT_SUMMARY_FOLDER");
  app.add_option("--steps", flags.steps, "Global steps");
  app.add_option("--batch", flags.batch, "Digits a step and worker");
  app.add_option("--learning_rate", flags.learning_rate, "Of Adam");
  app.add_option("--seed", flags.seed, "Of first values and batches");
  app.add_option("--backups", flags.backups,
                 "Workers whose gradients a synchronous step does not wait for");
  app.add_flag("--async", flags.async,
               "Workers apply their gradients without waiting for each other");
  CLI11_PARSE(app, argc, argv);
  const Status status = train::RunTask([&](const train::Task& task) { return Train(flags, task); });
  if (status.ok()) return 0;
  std::fprintf(stderr, "digits: %s\n", std::string(status.message()).c_str());
  return 1;
}
