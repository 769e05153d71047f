// SPDX-License-Identifier: Apache-2.0
// The controllers of experiments and trials.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/reconcile/controller.h"
#include "platform/tuning/suggestion_services.h"
#include "platform/tuning/trial_metrics.h"

namespace weft::platform {

// Thread-safe. Borrows what the options name.
class TuningControllers {
 public:
  struct Options {
    Controller::Options frame;
    TrialOutputReader read_output;
    std::string pod_address;  // of pods that have none of their own; empty: they are not reached
    const SuggestionServices* services = nullptr;  // algorithms of others; null: none
  };
  explicit TuningControllers(Options options);

  // Work on threads, so many each, until destroyed.
  void Start(int threads);
  bool HasSynced() const;
  // For tests and simulations instead: all look until nothing is left to do now.
  void Settle();
  const std::vector<std::unique_ptr<Controller>>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Controller>> all_;
};

}  // namespace weft::platform
