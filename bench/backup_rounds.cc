// SPDX-License-Identifier: Apache-2.0
// A task of a job that trains synchronously, whose computation is a pause: how long a step takes
// when one worker is slow now and then.
//
//   backup_rounds STEPS BACKUPS PAUSE_MS SLOW_PERCENT     (TF_CONFIG says which task)
//
// The last worker pauses five times as long in SLOW_PERCENT of its steps. The chief prints how many
// microseconds each step took, a line each.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"

#include "weft/api/ops.h"
#include "weft/train/monitored_session.h"
#include "weft/train/sync_replicas.h"
#include "weft/train/task.h"

namespace weft {
namespace {

struct Options {
  int64_t steps = 0;
  int backups = 0;
  int pause_ms = 0;
  int slow_percent = 0;
};

Status Train(const train::Task& task, const Options& options) {
  train::Program program;
  program.set_placement(train::RoundRobinPlacement(std::max(1, task.num_ps)));
  GraphBuilder& b = program.builder();
  b.set_device(task.Device());
  const Endpoint x = op::Placeholder(b, DType::kFloat, {.shape = {-1, 64}, .name = "x"});
  const train::Variable w = program.AddVariable("w", DType::kFloat, {64, 64}, train::Zeros());
  const Endpoint axes = b.Constant(Tensor::Vector<int32_t>({0, 1}));
  const Endpoint loss = op::Mean(b, op::MatMul(b, x, w.value), axes);
  const int needed = std::max(1, task.num_workers - options.backups);
  train::SyncReplicas sync(train::GradientDescent(0.1), needed, task.num_workers, task.worker);
  WEFT_ASSIGN_OR_RETURN(Node* const step, sync.Minimize(program, loss));
  const auto stop = train::StopAtStep(options.steps);
  const auto chief = sync.ChiefHook();
  train::MonitoredOptions monitored{.make_session = [&] { return task.NewSession(); },
                                    .is_chief = task.is_chief,
                                    .hooks = {stop.get()},
                                    .train = step,
                                    .chief_init = sync.chief_init(),
                                    .chief_resume = sync.chief_resume()};
  if (task.is_chief) monitored.hooks.push_back(chief.get());
  WEFT_ASSIGN_OR_RETURN(const auto session, train::MonitoredSession::Create(program, monitored));
  WEFT_ASSIGN_OR_RETURN(const Tensor input, Tensor::Zeros(DType::kFloat, Shape{8, 64}));
  std::mt19937 random(7);
  std::vector<double> micros;
  absl::Time last = absl::Now();
  while (!session->ShouldStop()) {
    const bool is_slow = task.worker + 1 == task.num_workers &&
                         static_cast<int>(random() % 100) < options.slow_percent;
    absl::SleepFor(absl::Milliseconds(options.pause_ms * (is_slow ? 5 : 1)));
    WEFT_RETURN_IF_ERROR(session->Run({{"x:0", input}}, {}, {step}, nullptr));
    const absl::Time now = absl::Now();
    micros.push_back(absl::ToDoubleMicroseconds(now - last));
    last = now;
  }
  WEFT_RETURN_IF_ERROR(session->End());
  for (const double each : micros) {
    if (task.is_chief) std::printf("%.0f\n", each);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Options options;
  if (argc != 5 || !absl::SimpleAtoi(argv[1], &options.steps) ||
      !absl::SimpleAtoi(argv[2], &options.backups) ||
      !absl::SimpleAtoi(argv[3], &options.pause_ms) ||
      !absl::SimpleAtoi(argv[4], &options.slow_percent)) {
    std::fprintf(stderr, "usage: backup_rounds STEPS BACKUPS PAUSE_MS SLOW_PERCENT\n");
    return 2;
  }
  const weft::Status status = weft::train::RunTask(
      [&](const weft::train::Task& task) { return weft::Train(task, options); });
  if (status.ok()) return 0;
  std::fprintf(stderr, "backup_rounds: %s\n", std::string(status.message()).c_str());
  return 1;
}
