// SPDX-License-Identifier: Apache-2.0
// Tasks that compute together over a network in which messages come late, twice and in another
// order, tasks die and start again, and steps are cancelled: 10,000 schedules, each the same by its
// number. In a quarter of them tasks of a host have boards.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/collective/engine.h"

namespace weft::collective {
namespace {

constexpr int64_t kFaultsEnd = 200;  // ms of simulated time
constexpr int64_t kSettled = 1000;
constexpr int64_t kEnd = 1500;
constexpr int64_t kMostEvents = 200000;

class World;

// A process of a task. Stays until the world ends, so that what it was still told finds it.
class Process final : public Network {
 public:
  Process(World* world, int task, uint64_t incarnation);

  const CollectiveMember& self() const override { return self_; }
  void Send(const std::string& task, CollectiveMessage message, std::vector<Tensor> body) override;
  void Learn(const CollectiveMember&) override {}
  void After(absl::Duration delay, absl::AnyInvocable<void()> what) override;
  void Execute(absl::AnyInvocable<void()> what) override;

  Engine& engine() { return *engine_; }
  int task() const { return task_; }
  bool alive = true;
  std::set<int> connected;  // tasks

 private:
  World* const world_;
  const int task_;
  CollectiveMember self_;
  std::unique_ptr<Engine> engine_;
};

std::string TaskName(int task) { return absl::StrCat("/job:worker/replica:0/task:", task); }

struct Size {
  int tasks = 0;
  int devices = 0;  // of each
  int ranks() const { return tasks * devices; }
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    size_ = {.tasks = Pick(1, 5), .devices = Pick(1, 2)};
    constexpr const char* kAlgorithms[] = {
        "auto", "direct", "parts", "ring", "halving-doubling", "hub", "hierarchical"};
    algorithm_ = kAlgorithms[Pick(0, 6)];
    fault_rate_ = Pick(0, 3);
    boards_ = Pick(0, 3) == 0;
    for (int task = 0; task < size_.tasks; ++task) Start(task);
    for (int i = 0; i < fault_rate_; ++i) {
      At(Pick(1, static_cast<int>(kFaultsEnd)), [this] { Fault(); });
    }
  }

  void Run() {
    int64_t events = 0;
    while (!queue_.empty() && now_ < kEnd && ++events < kMostEvents) {
      auto next = queue_.begin();
      now_ = next->first.first;
      auto what = std::move(next->second);
      queue_.erase(next);
      what();
    }
    EXPECT_LT(events, kMostEvents) << "the world never rests";
  }

  // What each rank got is what the others got, of the same calls.
  void Check() {
    for (const auto& [call, result] : results_) {
      const auto& [rank, id] = call;
      EXPECT_EQ(result[static_cast<size_t>(rank)], id);
      for (int other = 0; other < size_.ranks(); ++other) {
        const auto found = results_.find({other, result[static_cast<size_t>(other)]});
        if (found != results_.end()) {
          EXPECT_EQ(found->second, result) << "ranks " << rank << " and " << other;
        }
        EXPECT_NE(result[static_cast<size_t>(other)], 0) << "rank " << other << " is missing";
      }
    }
    for (int rank = 0; rank < size_.ranks(); ++rank) {
      EXPECT_GT(after_faults_[rank], 0) << "rank " << rank << " of " << size_.ranks()
                                        << " got nothing any more; algorithm " << algorithm_;
    }
    if (fault_rate_ == 0) {
      EXPECT_EQ(failures_, 0);
    }
  }

  void At(int64_t delay, absl::AnyInvocable<void()> what) {
    queue_.emplace(std::pair(now_ + delay, next_event_++), std::move(what));
  }
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  Process* Of(int task) { return current_[task]; }
  int64_t successes() const { return static_cast<int64_t>(results_.size()); }
  int64_t failures() const { return failures_; }
  bool boards() const { return boards_; }

  void Deliver(Process* from, Process* to, const CollectiveMessage& message, const Tensor& body) {
    if (!to->alive || Of(to->task()) != to || !from->alive) return;
    to->engine().Received(TaskName(from->task()), message, body);
  }

 private:
  void Start(int task) {
    processes_.push_back(std::make_unique<Process>(this, task, next_incarnation_));
    next_incarnation_ += 1000;
    current_[task] = processes_.back().get();
    for (int device = 0; device < size_.devices; ++device) {
      At(Pick(0, 20), [this, process = current_[task], device] { Call(process, device, 1); });
    }
  }

  void Call(Process* process, int device, int64_t step) {
    if (!process->alive) return;
    const int rank = process->task() * size_.devices + device;
    const int64_t id = ++next_id_;
    CollectiveCall call;
    call.group_key = 7;
    call.group_size = size_.ranks();
    call.instance_key = 1;
    call.algorithm = algorithm_;
    call.device = absl::StrCat(TaskName(process->task()), "/device:CPU:", device);
    call.node = "sum";
    call.step_id = step * 8 + device;  // devices step by themselves
    call.session = reinterpret_cast<const void*>(static_cast<uintptr_t>(device + 1));
    std::vector<int64_t> values(static_cast<size_t>(size_.ranks()));
    values[static_cast<size_t>(rank)] = id;
    call.input = Tensor::FromSpan<int64_t>(Shape{size_.ranks()}, absl::MakeConstSpan(values));
    call.dtype = DType::kInt64;
    call.shape = call.input.shape();
    cancellations_.push_back(std::make_unique<Cancellation>());
    Cancellation* const cancellation = cancellations_.back().get();
    call.cancellation = cancellation;
    running_[{process, device}] = cancellation;
    process->engine().Run(std::move(call), [=, this](StatusOr<Tensor> result) {
      running_.erase({process, device});
      if (!process->alive) return;
      if (result.ok()) {
        const auto got = result->span<int64_t>();
        results_[{rank, id}] = std::vector<int64_t>(got.begin(), got.end());
        if (now_ > kSettled) ++after_faults_[rank];
      } else {
        ++failures_;
      }
      At(result.ok() ? Pick(20, 100) : Pick(1, 40), [=, this] { Call(process, device, step + 1); });
    });
  }

  void Fault() {
    const int task = Pick(0, size_.tasks - 1);
    Process* const process = Of(task);
    if (Pick(0, 2) == 0) {
      const auto running = running_.find({process, Pick(0, size_.devices - 1)});
      if (running != running_.end()) running->second->Cancel(Aborted("The step was given up"));
      return;
    }
    if (!process->alive) return;
    process->alive = false;
    constexpr int kHeardWithin = 30;
    for (const auto& [other, at] : current_) {
      if (other == task || !(at->connected.contains(task) || process->connected.contains(other)))
        continue;
      at->connected.erase(task);
      At(Pick(1, kHeardWithin), [at = at, task] {
        if (at->alive) at->engine().TaskLost(TaskName(task), Unavailable("Lost ", TaskName(task)));
      });
    }
    At(Pick(kHeardWithin + 1, 120), [this, task] { Start(task); });
  }

  std::mt19937_64 random_;
  Size size_;
  std::string algorithm_;
  int fault_rate_ = 0;
  bool boards_ = false;
  int64_t now_ = 0;
  uint64_t next_event_ = 0;
  uint64_t next_incarnation_ = 1000;
  int64_t next_id_ = 0;
  int64_t failures_ = 0;
  std::vector<std::unique_ptr<Cancellation>> cancellations_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<int, Process*> current_;
  std::map<std::pair<Process*, int>, Cancellation*> running_;
  std::map<std::pair<int64_t, uint64_t>, absl::AnyInvocable<void()>> queue_;
  std::map<std::pair<int, int64_t>, std::vector<int64_t>> results_;  // by rank and call
  std::map<int, int> after_faults_;
};

Process::Process(World* world, int task, uint64_t incarnation) : world_(world), task_(task) {
  self_.set_task(TaskName(task));
  self_.set_address(absl::StrCat("10.0.0.", task / 2, ":", 4000 + task));  // two on a host
  self_.set_incarnation(incarnation);
  self_.set_rank(-1);
  engine_ = std::make_unique<Engine>(
      EngineOptions{.leader = TaskName(0), .tasks = {}, .boards = world->boards()}, this);
}

void Process::Send(const std::string& task, CollectiveMessage message, std::vector<Tensor> body) {
  const int to = task.back() - '0';
  Process* const peer = world_->Of(to);
  if (!alive) return;
  if (!peer->alive) {
    world_->At(world_->Pick(1, 10), [this, task] {
      if (alive) engine_->TaskLost(task, Unavailable("Cannot reach ", task));
    });
    return;
  }
  connected.insert(to);
  peer->connected.insert(task_);
  Tensor bytes;
  std::vector<uint8_t> all;
  for (const Tensor& part : body) {
    const auto* data = reinterpret_cast<const uint8_t*>(part.bytes());
    all.insert(all.end(), data, data + part.size_bytes());
  }
  if (!all.empty()) {
    bytes = Tensor::FromSpan<uint8_t>(Shape{static_cast<int64_t>(all.size())},
                                      absl::MakeConstSpan(all));
  }
  const int copies = world_->Pick(0, 19) == 0 ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    world_->At(world_->Pick(1, 10),
               [this, peer, message, bytes] { world_->Deliver(this, peer, message, bytes); });
  }
}

void Process::After(absl::Duration delay, absl::AnyInvocable<void()> what) {
  world_->At(absl::ToInt64Milliseconds(delay), [this, what = std::move(what)]() mutable {
    if (alive) what();
  });
}

void Process::Execute(absl::AnyInvocable<void()> what) {
  world_->At(0, [this, what = std::move(what)]() mutable {
    if (alive) what();
  });
}

TEST(CollectiveSimulationTest, TenThousandSchedulesGiveEverybodyTheSameOrAnError) {
  int64_t successes = 0;
  int64_t failures = 0;
  for (uint64_t seed = 0; seed < 10000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world(seed);
    world.Run();
    world.Check();
    successes += world.successes();
    failures += world.failures();
    if (testing::Test::HasFailure()) break;
  }
  // Else faults hit nothing, or everything.
  EXPECT_GT(successes, 200000);
  EXPECT_GT(failures, 10000);
}

}  // namespace
}  // namespace weft::collective
