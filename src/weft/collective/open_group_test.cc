// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks come and go: tasks that die, start again and believe different things of who
// lives, over a network in which messages come late and twice. The same by the seed.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/collective/engine.h"

namespace weft::collective {
namespace {

constexpr int64_t kOpenFaultsEnd = 400;  // ms of simulated time
constexpr int64_t kOpenEnd = 5500;
constexpr int32_t kGroup = 7;

std::string NameOfRank(int task) { return absl::StrCat("/job:worker/replica:0/task:", task); }

class OpenWorld;

class Rank final : public Network {
 public:
  Rank(OpenWorld* world, int task, uint64_t incarnation);
  const CollectiveMember& self() const override { return self_; }
  void Send(const std::string& task, CollectiveMessage message, std::vector<Tensor> body) override;
  void Learn(const CollectiveMember&) override {}
  void After(absl::Duration delay, absl::AnyInvocable<void()> what) override;
  void BeRank() override;
  void Execute(absl::AnyInvocable<void()> what) override;

  // Forms the group, reduces in it until that fails or somebody waits, and forms it again.
  void Form();

  OpenWorld* const world;
  const int task;
  bool alive = true;
  bool is_rank = false;
  int64_t steps = 0;           // since it formed the group last
  std::vector<int32_t> ranks;  // of the group

  std::unique_ptr<Engine> engine;

 private:
  CollectiveCall Call(CollectiveKind kind, int32_t size, int32_t instance,
                      const std::vector<int32_t>& values);
  void Reduce();

  CollectiveMember self_;
};

class OpenWorld {
 public:
  explicit OpenWorld(uint64_t seed) : random_(seed), size_(Pick(1, 5)) {
    for (int task = 0; task < size_; ++task) At(Pick(0, 30), [this, task] { Start(task); });
    const int faults = Pick(0, 6);
    for (int i = 0; i < faults; ++i)
      At(Pick(40, static_cast<int>(kOpenFaultsEnd)), [this] { Fault(); });
    At(kOpenFaultsEnd + 100, [this] {
      for (int task = 0; task < size_; ++task) {
        if (!IsAlive(task)) Start(task);
      }
    });
  }

  void RunAndCheck() {
    while (!queue_.empty() && queue_.begin()->first.first < kOpenEnd) {
      now_ = queue_.begin()->first.first;
      auto what = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
      what();
    }
    for (int task = 0; task < size_; ++task) {
      EXPECT_EQ(current_[task]->ranks.size(), static_cast<size_t>(size_)) << "of task " << task;
      EXPECT_GT(current_[task]->steps, 10) << "of task " << task;
    }
  }

  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void At(int64_t delay, absl::AnyInvocable<void()> what) {
    queue_.emplace(std::pair(now_ + delay, next_event_++), std::move(what));
  }
  Rank* Of(int task) { return current_.contains(task) ? current_[task] : nullptr; }
  bool IsAlive(int task) { return Of(task) != nullptr && Of(task)->alive; }
  // Everybody hears at a time of its own who lives now.
  void TellRanks() {
    for (const auto& [task, rank] : current_) {
      At(Pick(1, 40), [this, rank = rank] {
        if (!rank->alive) return;
        std::vector<std::string> ranks;
        for (const auto& [other, of] : current_) {
          if (of->alive && of->is_rank) ranks.push_back(NameOfRank(other));
        }
        rank->engine->SetRanks(ranks);
      });
    }
  }

 private:
  void Start(int task) {
    ranks_.push_back(std::make_unique<Rank>(this, task, next_incarnation_ += 1000));
    current_[task] = ranks_.back().get();
    current_[task]->Form();
  }

  void Fault() {
    const int task = Pick(0, size_ - 1);
    if (!IsAlive(task)) return Start(task);
    current_[task]->alive = false;
    for (const auto& [other, rank] : current_) {
      At(Pick(1, 30), [rank = rank, task] {
        if (rank->alive) rank->engine->TaskLost(NameOfRank(task), Unavailable("Lost a task"));
      });
    }
    TellRanks();
  }

  std::mt19937_64 random_;
  const int size_;
  int64_t now_ = 0;
  uint64_t next_event_ = 0;
  uint64_t next_incarnation_ = 1000;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<int, Rank*> current_;
  std::map<std::pair<int64_t, uint64_t>, absl::AnyInvocable<void()>> queue_;
};

Rank::Rank(OpenWorld* all, int number, uint64_t incarnation) : world(all), task(number) {
  self_.set_task(NameOfRank(number));
  self_.set_address(absl::StrCat("10.0.0.1:", 4000 + number));
  self_.set_incarnation(incarnation);
  self_.set_rank(-1);
  EngineOptions options;
  options.open_groups = true;
  engine = std::make_unique<Engine>(std::move(options), this);
}

CollectiveCall Rank::Call(CollectiveKind kind, int32_t size, int32_t instance,
                          const std::vector<int32_t>& values) {
  CollectiveCall call;
  call.kind = kind;
  call.group_key = kGroup;
  call.group_size = size;
  call.instance_key = instance;
  call.device = absl::StrCat(NameOfRank(task), "/device:CPU:0");
  call.node = "node";
  call.step_id = world->Pick(0, 1 << 30);
  call.input = Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(values.size())},
                                         absl::MakeConstSpan(values));
  call.dtype = DType::kInt32;
  call.shape = call.input.shape();
  return call;
}

void Rank::Form() {
  engine->Run(Call(CollectiveKind::kGather, -1, 1, {task}), [this](StatusOr<Tensor> result) {
    if (!alive) return;
    steps = 0;
    ranks.clear();
    if (!result.ok())
      return world->At(world->Pick(1, 10), [this] {
        if (alive) Form();
      });
    const auto got = result->span<int32_t>();
    ranks.assign(got.begin(), got.end());
    EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
    EXPECT_NE(std::find(ranks.begin(), ranks.end(), task), ranks.end());
    Reduce();
  });
}

void Rank::Reduce() {
  // Everybody learns together whether somebody waits, and that nobody else is in it.
  const int32_t changed = engine->ViewOf(kGroup).changed ? 1 : 0;
  engine->Run(Call(CollectiveKind::kReduce, kOpenGroup, 2, {changed, 1 << task, 1}),
              [this](StatusOr<Tensor> result) {
                if (!alive) return;
                if (!result.ok())
                  return world->At(world->Pick(1, 20), [this] {
                    if (alive) Form();
                  });
                const auto got = result->span<int32_t>();
                int32_t expected = 0;
                for (int32_t rank : ranks) expected += 1 << rank;
                EXPECT_EQ(got[1], expected) << "others are in it than said";
                EXPECT_EQ(got[2], static_cast<int32_t>(ranks.size()));
                ++steps;
                const bool forms = got[0] > 0;
                world->At(world->Pick(1, 60), [this, forms] {
                  if (alive) forms ? Form() : Reduce();
                });
              });
}

void Rank::Send(const std::string& to, CollectiveMessage message, std::vector<Tensor> body) {
  if (!alive) return;
  const int number = to.back() - '0';
  Rank* const peer = world->Of(number);
  if (peer == nullptr || !peer->alive) {
    return world->At(world->Pick(1, 10), [this, to] {
      if (alive) engine->TaskLost(to, Unavailable("Cannot reach ", to));
    });
  }
  std::vector<uint8_t> all;
  for (const Tensor& part : body) {
    const auto* const data = reinterpret_cast<const uint8_t*>(part.bytes());
    all.insert(all.end(), data, data + part.size_bytes());
  }
  const int copies = world->Pick(0, 19) == 0 ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    world->At(world->Pick(1, 10), [this, peer, message, all] {
      if (!alive || !peer->alive) return;
      const Tensor bytes = all.empty()
                               ? Tensor()
                               : Tensor::FromSpan<uint8_t>(Shape{static_cast<int64_t>(all.size())},
                                                           absl::MakeConstSpan(all));
      peer->engine->Received(NameOfRank(task), message, bytes);
    });
  }
}

void Rank::After(absl::Duration delay, absl::AnyInvocable<void()> what) {
  world->At(absl::ToInt64Milliseconds(delay), [this, what = std::move(what)]() mutable {
    if (alive) what();
  });
}

void Rank::BeRank() {
  if (is_rank) return;
  is_rank = true;
  world->TellRanks();
}

void Rank::Execute(absl::AnyInvocable<void()> what) {
  world->At(0, [this, what = std::move(what)]() mutable {
    if (alive) what();
  });
}

TEST(OpenGroupTest, WhoIsThereComputesTogetherWhoeverComesAndGoes) {
  const char* const first = std::getenv("WEFT_FIRST_SEED");
  const uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* const count = std::getenv("WEFT_SEEDS");
  const uint64_t seeds = count == nullptr ? 2000 : std::strtoull(count, nullptr, 10);
  for (uint64_t seed = begin; seed < begin + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("WEFT_FIRST_SEED=", seed));
    OpenWorld(seed).RunAndCheck();
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace weft::collective
