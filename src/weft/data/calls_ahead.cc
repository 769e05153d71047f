// SPDX-License-Identifier: Apache-2.0
#include "weft/data/calls_ahead.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/threads.h"

namespace weft::data {
namespace {

using Clock = std::chrono::steady_clock;

// What a group should take: several times what it costs to wake the thread that runs it.
constexpr std::chrono::microseconds kGroupTime{50};
constexpr size_t kMostInGroup = 64;
constexpr size_t kMostGroupBytes = size_t{1} << 20;  // of arguments

size_t BytesOf(const Element& element) {
  size_t bytes = 0;
  for (const Tensor& tensor : element) bytes += tensor.size_bytes();
  return bytes;
}

}  // namespace

struct CallsAhead::Group {
  std::vector<Element> arguments;
  std::vector<StatusOr<Element>> results;
  Status error;          // of the input, after these
  bool is_last = false;  // the input has no more
  Clock::time_point started;
  Clock::duration took{};
  bool is_done = false;  // under the state's mutex
};

struct CallsAhead::State {
  State(ContextPtr context_in, Body body_in)
      : context(std::move(context_in)), body(std::move(body_in)) {}
  const ContextPtr context;
  const Body body;
  absl::Mutex mutex;
  int64_t running ABSL_GUARDED_BY(mutex) = 0;

  void End(Group& group) {
    absl::MutexLock lock(&mutex);
    group.is_done = true;
    --running;
  }

  // Makes the group's calls from `next` on. Where one does not end at once, its end goes on.
  static void Run(const std::shared_ptr<State>& state, const std::shared_ptr<Group>& group,
                  size_t next) {
    for (; next < group->arguments.size(); ++next) {
      // Of the call's end and of this loop, the second goes on.
      auto one_was_here = std::make_shared<std::atomic<bool>>(false);
      state->body(*state->context, std::move(group->arguments[next]),
                  [state, group, next, one_was_here](StatusOr<Element> result) {
                    group->results[next] = std::move(result);
                    if (!one_was_here->exchange(true)) return;
                    // What follows is not this thread's to do, unless it is the group's end.
                    if (next + 1 == group->arguments.size()) return Finish(*state, *group);
                    state->context->device().threads().Schedule(
                        [state, group, next] { Run(state, group, next + 1); });
                  });
      if (!one_was_here->exchange(true)) return;
    }
    Finish(*state, *group);
  }

  static void Finish(State& state, Group& group) {
    group.took = Clock::now() - group.started;
    state.End(group);
  }
};

CallsAhead::CallsAhead(const ContextPtr& context, int64_t most, Body body)
    : most_(most), state_(std::make_shared<State>(context->Child(), std::move(body))) {}

CallsAhead::~CallsAhead() {
  state_->context->cancellation().Cancel(Cancelled("The iterator is gone"));
  absl::MutexLock lock(&state_->mutex);
  const auto is_idle = [this]() { return state_->running == 0; };
  state_->mutex.Await(absl::Condition(&is_idle));
}

void CallsAhead::Fill(Input input) {
  while (!is_exhausted_ && static_cast<int64_t>(groups_.size()) < most_) {
    const auto group = std::make_shared<Group>();
    const Clock::time_point latest = Clock::now() + kGroupTime;
    size_t bytes = 0;
    do {
      Element argument;
      const StatusOr<bool> found = input(&argument);
      if (!found.ok()) group->error = found.status();
      if (found.ok() && !*found) group->is_last = is_exhausted_ = true;
      if (!found.ok() || !*found) break;
      bytes += BytesOf(argument);
      group->arguments.push_back(std::move(argument));
    } while (group->arguments.size() < group_size_ && bytes < kMostGroupBytes &&
             Clock::now() < latest);
    group->results.resize(group->arguments.size(), Element());
    groups_.push_back(group);
    if (group->arguments.empty()) {
      group->is_done = true;
    } else {
      {
        absl::MutexLock lock(&state_->mutex);
        ++state_->running;
      }
      state_->context->device().threads().Schedule([state = state_, group] {
        group->started = Clock::now();
        State::Run(state, group, 0);
      });
    }
    if (!group->error.ok()) return;
  }
}

void CallsAhead::Learn(const Group& group) {
  if (group.results.empty()) return;
  const Clock::duration of_one =
      std::max<Clock::duration>(group.took / group.results.size(), std::chrono::nanoseconds(1));
  group_size_ = std::clamp(static_cast<size_t>(kGroupTime / of_one), size_t{1},
                           std::min(kMostInGroup, 2 * group.results.size()));
}

StatusOr<bool> CallsAhead::Take(Input input, Element* element) {
  Fill(input);
  while (current_ == nullptr || num_taken_ == current_->results.size()) {
    if (current_ != nullptr && !current_->error.ok()) {
      return std::exchange(current_->error, absl::OkStatus());
    }
    if (groups_.empty()) return false;
    current_ = groups_.front();
    groups_.pop_front();
    num_taken_ = 0;
    {
      absl::MutexLock lock(&state_->mutex);
      state_->mutex.Await(absl::Condition(&current_->is_done));
    }
    Learn(*current_);
  }
  StatusOr<Element> result = std::move(current_->results[num_taken_++]);
  if (!result.ok()) return result.status();
  *element = *std::move(result);
  return true;
}

}  // namespace weft::data
