// SPDX-License-Identifier: Apache-2.0
// Calls that run ahead of who takes their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"

#include "weft/data/iterator_context.h"

namespace weft::data {

// Up to `most` groups of calls in flight, on the threads of the device; their results come in the
// order of the arguments. A group is one call. Where calls are so short that to hand one over takes
// as long, groups grow: the calls of a group run one after another. What is running is cancelled
// and waited for before this goes. One thread takes.
class CallsAhead {
 public:
  using Done = FunctionRunner::Done;
  // A call; several run at once. The context is cancelled when the taker goes.
  using Body = std::function<void(IteratorContext& context, Element argument, Done done)>;
  // Gives the next argument and true, or false when there are no more, or an error, which comes out
  // after the results before it.
  using Input = absl::FunctionRef<StatusOr<bool>(Element* argument)>;

  CallsAhead(const ContextPtr& context, int64_t most, Body body);
  ~CallsAhead();
  // The next result; false at the end.
  StatusOr<bool> Take(Input input, Element* element);

 private:
  struct Group;
  struct State;
  // Starts groups while there is room for them.
  void Fill(Input input);
  void Learn(const Group& group);

  const int64_t most_;
  const std::shared_ptr<State> state_;
  std::deque<std::shared_ptr<Group>> groups_;  // under way or done, in order
  std::shared_ptr<Group> current_;  // whose results are being taken; null before the first
  size_t num_taken_ = 0;            // of them
  size_t group_size_ = 1;           // of the next group
  bool is_exhausted_ = false;
};

}  // namespace weft::data
