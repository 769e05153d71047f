// SPDX-License-Identifier: Apache-2.0
#include "weft/data/transform.h"

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace weft::data {

struct CallsAhead::State {
  struct Call {
    bool is_done = false;
    bool is_end = false;
    StatusOr<Element> result = Element();
  };
  absl::Mutex mutex;
  std::deque<std::shared_ptr<Call>> calls ABSL_GUARDED_BY(mutex);
  int64_t running ABSL_GUARDED_BY(mutex) = 0;
  bool is_exhausted = false;  // only the taker looks
};

CallsAhead::CallsAhead(const ContextPtr& context, int64_t most)
    : context_(context->Child()), most_(most), state_(std::make_shared<State>()) {}

CallsAhead::~CallsAhead() {
  context_->cancellation().Cancel(Cancelled("The iterator is gone"));
  absl::MutexLock lock(&state_->mutex);
  const auto is_idle = [this]() { return state_->running == 0; };
  state_->mutex.Await(absl::Condition(&is_idle));
}

StatusOr<bool> CallsAhead::Take(Start& start, Element* element) {
  State& state = *state_;
  while (!state.is_exhausted) {
    auto call = std::make_shared<State::Call>();
    {
      absl::MutexLock lock(&state.mutex);
      if (static_cast<int64_t>(state.calls.size()) >= most_) break;
      state.calls.push_back(call);
      ++state.running;
    }
    const StatusOr<bool> started = start([call, kept = state_](StatusOr<Element> result) {
      absl::MutexLock lock(&kept->mutex);
      call->result = std::move(result);
      call->is_done = true;
      --kept->running;
    });
    if (started.ok() && *started) continue;
    absl::MutexLock lock(&state.mutex);
    call->is_done = true;
    call->is_end = started.ok();
    if (!started.ok()) call->result = started.status();
    --state.running;
    state.is_exhausted = started.ok();
    if (!started.ok()) break;
  }
  absl::MutexLock lock(&state.mutex);
  if (state.calls.empty()) return false;
  const std::shared_ptr<State::Call> call = state.calls.front();
  state.mutex.Await(absl::Condition(&call->is_done));
  state.calls.pop_front();
  if (call->is_end) return false;
  if (!call->result.ok()) return call->result.status();
  *element = *std::move(call->result);
  return true;
}

}  // namespace weft::data
