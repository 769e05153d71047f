// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/tuning_controllers.h"

#include <algorithm>
#include <utility>

#include "platform/tuning/experiment_kind.h"
#include "platform/tuning/trial_kind.h"

namespace weft::platform {

TuningControllers::TuningControllers(Options options) {
  ObjectStore* const store = options.frame.store;
  all_.push_back(std::make_unique<Controller>(
      options.frame,
      std::make_unique<ExperimentKind>(store, options.frame.metrics, options.services)));
  auto metrics = std::make_shared<const TrialMetricsReader>(store, std::move(options.read_output),
                                                            std::move(options.pod_address));
  all_.push_back(std::make_unique<Controller>(
      options.frame, std::make_unique<TrialKind>(store, std::move(metrics))));
}

void TuningControllers::Start(int threads) {
  for (const std::unique_ptr<Controller>& controller : all_) controller->Start(threads);
}

bool TuningControllers::HasSynced() const {
  return std::all_of(all_.begin(), all_.end(),
                     [](const auto& controller) { return controller->HasSynced(); });
}

void TuningControllers::Settle() {
  bool has_done = true;
  while (has_done) {
    has_done = false;
    for (const std::unique_ptr<Controller>& controller : all_) {
      controller->Maintain();
      while (controller->Step()) has_done = true;
    }
  }
}

}  // namespace weft::platform
