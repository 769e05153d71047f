// SPDX-License-Identifier: Apache-2.0
// A recommender in small: users and items have embeddings whose rows are spread over the parameter
// servers; a click is likely where the two agree. Only the rows of a batch travel, and only they
// are updated.
//   weft run --ps 2 --workers 2 -- build/bin/recommender
#include <cstdio>

#include "CLI/CLI.hpp"
#include "clicks.h"
#include "weft/weft.h"

namespace {

namespace op = weft::op;
namespace train = weft::train;
using weft::Endpoint;
using weft::Tensor;

constexpr int64_t kWidth = 8;

struct Model {
  Endpoint loss, scores, item_ids;
  std::vector<train::Variable> items;
};

Model Build(train::Program& program, int num_parts) {
  weft::GraphBuilder& b = program.builder();
  const auto ids = [&](const char* name) {
    return op::Placeholder(b, weft::DType::kInt64, {.shape = {-1}, .name = name});
  };
  const Endpoint users = ids("users"), items = ids("items");
  const Endpoint clicks =
      op::Placeholder(b, weft::DType::kFloat, {.shape = {-1}, .name = "clicks"});
  const auto small = train::RandomNormal(0, 0.1f, 7, 7);
  Model m;
  m.items = train::AddEmbedding(program, "items", clicks::kItems, kWidth, num_parts, small);
  const auto table =
      train::AddEmbedding(program, "users", clicks::kUsers, kWidth, num_parts, small);
  const Endpoint taste = train::EmbeddingLookup(b, table, users, train::PartitionStrategy::kMod);
  const Endpoint look = train::EmbeddingLookup(b, m.items, items, train::PartitionStrategy::kMod);
  m.scores = op::Sum(b, op::Mul(b, taste, look), b.Scalar<int32_t>(1));
  // Cross entropy of sigmoid(scores), written so that large scores do not overflow.
  const Endpoint losses = op::Sub(b, op::Softplus(b, m.scores), op::Mul(b, clicks, m.scores));
  m.loss = op::Mean(b, losses, b.Scalar<int32_t>(0));
  return m;
}

// How many items' rows differ between two readings of all parts.
int64_t RowsMoved(const std::vector<Tensor>& before, const std::vector<Tensor>& after) {
  int64_t moved = 0;
  for (size_t p = 0; p < before.size(); ++p) {
    for (int64_t row = 0; row < before[p].dim(0); ++row) {
      const float* old_row = before[p].data<float>() + row * kWidth;
      moved += std::equal(old_row, old_row + kWidth, after[p].data<float>() + row * kWidth) ? 0 : 1;
    }
  }
  return moved;
}

weft::Status Train(const train::Task& task, int64_t steps) {
  train::Program program;
  program.set_placement(task.Placement());
  program.builder().set_device(task.Device());
  const Model m = Build(program, std::max(1, task.num_ps));
  WEFT_ASSIGN_OR_RETURN(weft::Node * step, train::Adagrad(0.1, 1e-5)->Minimize(program, m.loss));
  const auto stop = train::StopAtStep(steps);
  WEFT_ASSIGN_OR_RETURN(
      const auto session,
      train::MonitoredSession::Create(program, {.make_session = [&] { return task.NewSession(); },
                                                .is_chief = task.is_chief,
                                                .hooks = {stop.get()},
                                                .train = step}));

  clicks::World world(static_cast<unsigned>(task.worker + 1));
  const clicks::Batch unseen = clicks::World(99).Next(4000);
  std::vector<Endpoint> tables;
  for (const train::Variable& part : m.items) tables.push_back(part.value);
  std::vector<Tensor> before, after, scores, results;
  WEFT_RETURN_IF_ERROR(session->RunPlain(unseen.feeds, {m.scores}, {}, &scores));
  if (task.is_chief) std::printf("AUC before: %.3f\n", clicks::Auc(scores[0], unseen.clicks));
  if (task.num_workers == 1) {  // one step alone, to see which rows it touches
    const clicks::Batch batch = world.Next(16);
    WEFT_RETURN_IF_ERROR(session->RunPlain({}, tables, {}, &before));
    WEFT_RETURN_IF_ERROR(session->Run(batch.feeds, {}, {step}, nullptr));
    WEFT_RETURN_IF_ERROR(session->RunPlain({}, tables, {}, &after));
    std::printf("rows moved: %ld, rows in the batch: %ld, rows: %ld\n", RowsMoved(before, after),
                batch.distinct_items, clicks::kItems);
  }
  while (!session->ShouldStop())
    WEFT_RETURN_IF_ERROR(session->Run(world.Next(256).feeds, {}, {step}, nullptr));
  if (!task.is_chief) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(session->RunPlain(unseen.feeds, {m.scores}, {}, &scores));
  std::printf("AUC after:  %.3f\n", clicks::Auc(scores[0], unseen.clicks));
  return session->End();
}

}  // namespace

int main(int argc, char** argv) {
  int64_t steps = 2000;
  CLI::App app("Learns who clicks what, with embeddings spread over parameter servers");
  app.add_option("--steps", steps, "Steps of all workers together")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const weft::Status status =
      train::RunTask([&](const train::Task& task) { return Train(task, steps); });
  if (!status.ok())
    std::fprintf(stderr, "recommender: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
