// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/loop_run.h"

#include <utility>

namespace weft::executor {

void LoopRun::Start(PlanRunner* condition, PlanRunner* body, RunRequest request, RunDone done) {
  Ref<LoopRun> loop(new LoopRun(condition, body, std::move(request), std::move(done)));
  loop->Advance();
}

void LoopRun::Advance() {
  Ref<LoopRun> self(this);
  while (true) {
    met_.store(false, std::memory_order_relaxed);
    RunRequest request{.environment = request_.environment, .trace = request_.trace};
    // The body's results take their place: it may write them where the values lie.
    request.arguments = in_condition_ ? request_.arguments : std::move(request_.arguments);
    (in_condition_ ? condition_ : body_)
        ->Run(std::move(request), [self](Status status, std::vector<Tensor> results) {
          self->status_ = std::move(status);
          self->results_ = std::move(results);
          if (self->met_.exchange(true, std::memory_order_acq_rel) && self->TakeIn())
            self->Advance();
        });
    if (!met_.exchange(true, std::memory_order_acq_rel)) return;
    if (!TakeIn()) return;
  }
}

bool LoopRun::TakeIn() {
  if (status_.ok() && request_.environment.cancellation->IsCancelled()) {
    status_ = request_.environment.cancellation->status();
  }
  if (status_.ok() && in_condition_) {
    StatusOr<bool> again =
        results_.size() == 1
            ? Truth(results_[0])
            : InvalidArgument("Expected a single scalar of a loop's condition, got ",
                              results_.size(), " tensors.");
    if (again.ok() && *again) {
      in_condition_ = false;
      return true;
    }
    if (again.ok()) {
      done_(absl::OkStatus(), std::move(request_.arguments));
      return false;
    }
    status_ = again.status();
  } else if (status_.ok() && results_.size() != num_values_) {
    status_ = InvalidArgument("While loop body returned ", results_.size(),
                              " arguments. Expected: ", num_values_);
  }
  if (!status_.ok()) {
    done_(status_, {});
    return false;
  }
  request_.arguments = std::move(results_);
  in_condition_ = true;
  return true;
}

}  // namespace weft::executor
