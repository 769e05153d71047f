// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/training_hooks.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace weft::estimator {
namespace {

class StopAfterHook final : public train::Hook {
 public:
  StopAfterHook(int64_t steps, int64_t max_steps)
      : steps_(steps), last_(max_steps > 0 ? max_steps : std::numeric_limits<int64_t>::max()) {}

  Status AfterCreate(session::Session&, int64_t global_step) override {
    // A session after a failure has the same end.
    if (steps_ > 0 && !begun_) last_ = global_step + steps_;
    begun_ = true;
    return absl::OkStatus();
  }
  bool Done(int64_t global_step) override { return global_step >= last_; }
  Status AfterRun(const train::StepContext& context) override {
    if (Done(context.global_step)) *context.stop = true;
    return absl::OkStatus();
  }

 private:
  const int64_t steps_;
  int64_t last_;
  bool begun_ = false;
};

class WatchLossHook final : public train::Hook {
 public:
  WatchLossHook(std::string loss, int64_t every) : loss_(std::move(loss)), every_(every) {}

  std::vector<std::string> Fetches() override { return {loss_}; }
  Status AfterRun(const train::StepContext& context) override {
    const Tensor& value = (*context.values)[0];
    if (value.dtype() != DType::kFloat || value.num_elements() != 1) {
      return InvalidArgument("The loss is ", DTypeName(value.dtype()), " ",
                             value.shape().ToString(), ", expected a float scalar");
    }
    const float loss = value.data<float>()[0];
    if (std::isnan(loss)) {
      return FailedPrecondition("The loss is NaN at step ", context.global_step);
    }
    if (every_ > 0 && (next_ < 0 || context.global_step >= next_)) {
      next_ = context.global_step + every_;
      WEFT_LOG(INFO) << "loss = " << loss << ", step = " << context.global_step;
    }
    last_ = loss;
    return absl::OkStatus();
  }
  Status End(session::Session&, int64_t global_step) override {
    if (every_ > 0) WEFT_LOG(INFO) << "Loss for final step " << global_step << ": " << last_;
    return absl::OkStatus();
  }

 private:
  const std::string loss_;
  const int64_t every_;
  int64_t next_ = -1;
  float last_ = 0;
};

}  // namespace

std::unique_ptr<train::Hook> StopAfter(int64_t steps, int64_t max_steps) {
  return std::make_unique<StopAfterHook>(steps, max_steps);
}

std::unique_ptr<train::Hook> WatchLoss(Endpoint loss, int64_t every) {
  return std::make_unique<WatchLossHook>(train::NameOf(loss), every);
}

}  // namespace weft::estimator
