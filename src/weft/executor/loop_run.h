// SPDX-License-Identifier: Apache-2.0
// One functional loop: condition and body in turn.
#pragma once

#include <atomic>
#include <vector>

#include "base/ref.h"
#include "weft/executor/plan_runner.h"

namespace weft::executor {

// Runs `body` on its own results while `condition` says so. A part that ends before its call
// returns goes on in the same loop, one that ends elsewhere goes on there: the stack stays flat.
class LoopRun final : public RefCounted {
 public:
  static void Start(PlanRunner* condition, PlanRunner* body, RunRequest request, RunDone done);

 private:
  LoopRun(PlanRunner* condition, PlanRunner* body, RunRequest request, RunDone done)
      : condition_(condition),
        body_(body),
        request_(std::move(request)),
        done_(std::move(done)),
        num_values_(request_.arguments.size()) {}

  void Advance();
  // Takes in what the part gave; false when the loop is over (done_ has been called).
  bool TakeIn();

  PlanRunner* const condition_;
  PlanRunner* const body_;
  RunRequest request_;  // arguments are the loop's values
  RunDone done_;
  const size_t num_values_;
  bool in_condition_ = true;
  Status status_;
  std::vector<Tensor> results_;
  // Set by whoever is second of "the call returned" and "the part ended": that one goes on.
  std::atomic<bool> met_{false};
};

}  // namespace weft::executor
