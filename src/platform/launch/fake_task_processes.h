// SPDX-License-Identifier: Apache-2.0
// Processes that live and die on a fake clock as a test scripts them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>

#include "base/clock.h"
#include "platform/launch/task_processes.h"

namespace weft::platform {

// Not thread-safe. Wait moves the clock to the next thing that happens.
class FakeTaskProcesses : public TaskProcesses {
 public:
  FakeTaskProcesses(const LocalJob* job, FakeClock* clock) : job_(job), clock_(clock) {}

  // The `nth` start (from 1; later ones repeat the last script) of `name` exits after `after`.
  void ExitsAfter(const std::string& name, absl::Duration after, ExitState exit) {
    scripts_[name].push_back(Life{after, exit});
  }
  void LivesOn(const std::string& name) {
    scripts_[name].push_back(Life{absl::InfiniteDuration(), {}});
  }
  void CannotStart(const std::string& name, Status status) {
    unstartable_[name] = std::move(status);
  }
  void IgnoresTerm(const std::string& name) { stubborn_.push_back(name); }
  void InterruptAt(absl::Duration at, int signal) { interrupts_.emplace(at, signal); }

  int starts(const std::string& name) const {
    const auto found = starts_.find(name);
    return found == starts_.end() ? 0 : found->second;
  }
  // "worker-0 SIGTERM" in the order sent.
  const std::vector<std::string>& signals() const { return signals_; }

  Status Start(size_t task) override {
    const std::string& name = job_->tasks[task].name;
    if (unstartable_.count(name) != 0) return unstartable_[name];
    const std::vector<Life>& lives = scripts_[name];
    const auto nth = static_cast<size_t>(starts_[name]++);
    Life life =
        lives.empty() ? Life{absl::InfiniteDuration(), {}} : lives[std::min(nth, lives.size() - 1)];
    deaths_[task] = Life{clock_->Monotonic() + life.after, life.exit};
    return absl::OkStatus();
  }

  void Signal(size_t task, int signal) override {
    const std::string& name = job_->tasks[task].name;
    signals_.push_back(name + (signal == SIGKILL ? " SIGKILL" : " SIGTERM"));
    const bool ignored =
        signal == SIGTERM && std::count(stubborn_.begin(), stubborn_.end(), name) != 0;
    if (deaths_.count(task) != 0 && !ignored)
      deaths_[task] = Life{clock_->Monotonic(), {0, signal}};
  }

  std::vector<TaskEvent> Wait(absl::Duration timeout) override {
    absl::Duration until = clock_->Monotonic() + timeout;
    for (const auto& [task, death] : deaths_) until = std::min(until, death.after);
    if (!interrupts_.empty()) until = std::min(until, interrupts_.begin()->first);
    clock_->Advance(until - clock_->Monotonic());
    std::vector<TaskEvent> events;
    for (auto death = deaths_.begin(); death != deaths_.end();) {
      if (death->second.after > until) {
        ++death;
        continue;
      }
      events.push_back({TaskEvent::Kind::kExited, death->first, death->second.exit, 0});
      death = deaths_.erase(death);
    }
    while (!interrupts_.empty() && interrupts_.begin()->first <= until) {
      events.push_back({TaskEvent::Kind::kInterrupt, 0, {}, interrupts_.begin()->second});
      interrupts_.erase(interrupts_.begin());
    }
    return events;
  }

  std::vector<std::string> LastLines(size_t task) const override {
    return {"last line of " + job_->tasks[task].name};
  }

 private:
  struct Life {
    absl::Duration after;  // in deaths_: when, on the clock
    ExitState exit;
  };
  const LocalJob* const job_;
  FakeClock* const clock_;
  std::map<std::string, std::vector<Life>> scripts_;
  std::map<std::string, Status> unstartable_;
  std::vector<std::string> stubborn_;
  std::multimap<absl::Duration, int> interrupts_;
  std::map<std::string, int> starts_;
  std::map<size_t, Life> deaths_;
  std::vector<std::string> signals_;
};

}  // namespace weft::platform
