// SPDX-License-Identifier: Apache-2.0
// Members in a simulated network: late, lost, repeated and reordered messages, tasks that die,
// stand still and come back, a network that is cut. The same by its seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "weft/membership/swim.h"

namespace weft::membership::testing {

// What a network does to each message.
struct Weather {
  double lost = 0;
  double repeated = 0;
  absl::Duration least = absl::Milliseconds(1);
  absl::Duration most = absl::Milliseconds(10);
  // Whoever sends to a process that is gone is told so, as connections do.
  bool tells_of_the_dead = false;
};

class Members {
 public:
  // `told`: member `at` got an event at `now()`.
  using Told = std::function<void(int at, const Event& event)>;
  Members(uint64_t seed, SwimOptions options, Weather weather, Told told);

  // Starts a process of a task; it asks the first three tasks who is there. With `known` it knows
  // all of them instead.
  void Start(int task, Roster known = Roster());
  void Kill(int task);
  void Pause(int task, absl::Duration how_long);
  void Leave(int task);
  // Messages between a task of `side` and another are lost until Heal.
  void Cut(std::set<int> side) { side_ = std::move(side); }
  void Heal() { side_.clear(); }

  void RunUntil(absl::Duration time);
  void After(absl::Duration delay, absl::AnyInvocable<void()> what);
  absl::Duration now() const { return now_; }
  bool is_running(int task) const { return processes_.contains(task); }
  const Swim& swim(int task) const { return processes_.at(task)->swim; }
  std::vector<int> running() const;
  int64_t messages() const { return messages_; }
  int64_t bytes() const { return bytes_; }
  uint64_t Pick(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }
  static std::string NameOf(int task);
  static int TaskOf(const std::string& name);

 private:
  struct Process {
    explicit Process(SwimOptions options, Roster known)
        : swim(std::move(options), std::move(known)) {}
    Swim swim;
    uint64_t number = 0;
    absl::Duration paused_until = -absl::InfiniteDuration();
    absl::Duration wakes = absl::InfiniteDuration();  // of the tick that is asked for
  };
  // Does `what` at the process if it is still this one, when it does not stand still.
  void At(int task, uint64_t number, absl::Duration time, std::function<void(Process&)> what);
  void Do(int task, Process& process, Actions actions);
  void Deliver(int from, int to, const MembershipMessage& message);
  void AskForTick(int task, Process& process);

  std::mt19937_64 random_;
  const SwimOptions options_;
  const Weather weather_;
  const Told told_;
  absl::Duration now_;
  uint64_t next_event_ = 0;
  uint64_t next_process_ = 1;
  std::map<std::pair<absl::Duration, uint64_t>, absl::AnyInvocable<void()>> queue_;
  std::map<int, std::unique_ptr<Process>> processes_;
  std::set<int> side_;
  int64_t messages_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace weft::membership::testing
