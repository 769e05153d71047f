// SPDX-License-Identifier: Apache-2.0
// Hooks that every training of an estimator has.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/train/hooks.h"

namespace weft::estimator {

// Ends training `steps` after where it began, or when the global step reaches `max_steps`; 0: not.
std::unique_ptr<train::Hook> StopAfter(int64_t steps, int64_t max_steps);
// FailedPrecondition where the loss is NaN; logs it each `every` steps and at the end (0: not).
std::unique_ptr<train::Hook> WatchLoss(Endpoint loss, int64_t every);

}  // namespace weft::estimator
