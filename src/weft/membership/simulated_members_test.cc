// SPDX-License-Identifier: Apache-2.0
#include "weft/membership/simulated_members_test.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft::membership::testing {

std::string Members::NameOf(int task) { return absl::StrCat("/job:w/task:", 100000 + task); }

int Members::TaskOf(const std::string& name) {
  int task = 0;
  return absl::SimpleAtoi(name.substr(name.rfind(':') + 1), &task) ? task - 100000 : -1;
}

Members::Members(uint64_t seed, SwimOptions options, Weather weather, Told told)
    : random_(seed), options_(std::move(options)), weather_(weather), told_(std::move(told)) {}

std::vector<int> Members::running() const {
  std::vector<int> tasks;
  for (const auto& [task, process] : processes_) tasks.push_back(task);
  return tasks;
}

void Members::After(absl::Duration delay, absl::AnyInvocable<void()> what) {
  queue_.emplace(std::pair(now_ + delay, next_event_++), std::move(what));
}

void Members::RunUntil(absl::Duration time) {
  while (!queue_.empty() && queue_.begin()->first.first <= time) {
    now_ = queue_.begin()->first.first;
    auto what = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    what();
  }
  now_ = time;
}

void Members::Start(int task, Roster known) {
  SwimOptions options = options_;
  options.seed = random_();
  const uint64_t number = next_process_++;
  options.self = {.name = NameOf(task),
                  .address = absl::StrCat("10.0.0.1:", task),
                  .process = number,
                  .incarnation = 1000 + static_cast<uint64_t>(absl::ToInt64Milliseconds(now_))};
  const bool knows = known.size() > 0;
  auto process = std::make_unique<Process>(std::move(options), std::move(known));
  process->number = number;
  Process& started = *process;
  processes_[task] = std::move(process);
  // Others begin their intervals at other moments.
  At(task, number, now_ + absl::Milliseconds(Pick(0, 250)), [this, task, knows](Process& at) {
    Actions actions;
    at.swim.Tick(now_, &actions);
    for (int seed = 0; seed < 3 && !knows; ++seed) at.swim.JoinThrough(NameOf(seed), &actions);
    Do(task, at, std::move(actions));
  });
  // Seeds that were not there yet are asked again.
  for (int again = 1; again <= 20 && !knows; ++again) {
    At(task, started.number, now_ + absl::Seconds(again), [this, task](Process& at) {
      if (at.swim.num_alive() > 1) return;
      Actions actions;
      for (int seed = 0; seed < 3; ++seed) at.swim.JoinThrough(NameOf(seed), &actions);
      Do(task, at, std::move(actions));
    });
  }
}

void Members::Kill(int task) {
  processes_.erase(task);
  if (!weather_.tells_of_the_dead) return;
  for (const auto& [other, process] : processes_) {
    At(other, process->number, now_ + absl::Milliseconds(Pick(1, 5)),
       [this, task, other = other](Process& at) {
         Actions actions;
         at.swim.Unreachable(NameOf(task), now_, &actions);
         Do(other, at, std::move(actions));
       });
  }
}

void Members::Pause(int task, absl::Duration how_long) {
  processes_.at(task)->paused_until = now_ + how_long;
}

void Members::Leave(int task) {
  Process& process = *processes_.at(task);
  Actions actions;
  process.swim.Leave(&actions);
  Do(task, process, std::move(actions));
  processes_.erase(task);
}

void Members::At(int task, uint64_t number, absl::Duration time,
                 std::function<void(Process&)> what) {
  queue_.emplace(std::pair(time, next_event_++), [=, this, what = std::move(what)]() mutable {
    const auto found = processes_.find(task);
    if (found == processes_.end() || found->second->number != number) return;
    if (now_ < found->second->paused_until) {
      return At(task, number, found->second->paused_until, std::move(what));
    }
    what(*found->second);
  });
}

void Members::Do(int task, Process& process, Actions actions) {
  const uint64_t number = process.number;
  for (const Event& event : actions.events) told_(task, event);
  for (const Outgoing& outgoing : actions.messages) {
    ++messages_;
    bytes_ += static_cast<int64_t>(outgoing.message.ByteSizeLong());
    const int to = TaskOf(outgoing.to);
    if (side_.contains(task) != side_.contains(to) && !side_.empty()) continue;
    if (!processes_.contains(to) && weather_.tells_of_the_dead) {
      At(task, number, now_ + absl::Milliseconds(Pick(1, 5)),
         [this, task, name = outgoing.to](Process& at) {
           Actions told;
           at.swim.Unreachable(name, now_, &told);
           Do(task, at, std::move(told));
         });
      continue;
    }
    int copies = 1;
    if (weather_.lost > 0 && std::bernoulli_distribution(weather_.lost)(random_)) copies = 0;
    if (weather_.repeated > 0 && std::bernoulli_distribution(weather_.repeated)(random_)) ++copies;
    for (int copy = 0; copy < copies; ++copy) {
      const absl::Duration delay =
          absl::Microseconds(Pick(static_cast<uint64_t>(absl::ToInt64Microseconds(weather_.least)),
                                  static_cast<uint64_t>(absl::ToInt64Microseconds(weather_.most))));
      After(delay, [this, task, to, message = outgoing.message] { Deliver(task, to, message); });
    }
  }
  AskForTick(task, process);
}

void Members::Deliver(int from, int to, const MembershipMessage& message) {
  const auto found = processes_.find(to);
  if (found == processes_.end()) return;
  const auto receive = [this, from, to, message](Process& at) {
    Actions actions;
    at.swim.Receive(NameOf(from), message, now_, &actions);
    Do(to, at, std::move(actions));
  };
  if (now_ < found->second->paused_until) {
    // Timers are due at once when it goes on; what has come meanwhile is read little by little.
    const absl::Duration later = absl::Milliseconds(Pick(1, 40));
    return At(to, found->second->number, found->second->paused_until + later, receive);
  }
  receive(*found->second);
}

void Members::AskForTick(int task, Process& process) {
  const absl::Duration due = process.swim.NextDue();
  if (due >= process.wakes && process.wakes > now_) return;
  if (due == absl::InfiniteDuration()) return;
  process.wakes = std::max(due, now_);
  At(task, process.number, process.wakes, [this, task](Process& at) {
    if (now_ < at.wakes) return;
    at.wakes = absl::InfiniteDuration();
    Actions actions;
    at.swim.Tick(now_, &actions);
    Do(task, at, std::move(actions));
  });
}

}  // namespace weft::membership::testing
