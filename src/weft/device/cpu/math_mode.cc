// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/math_mode.h"

#include <atomic>

namespace weft {
namespace {
std::atomic<bool> exact_math{false};
}  // namespace

void SetExactMath(bool exact) { exact_math.store(exact, std::memory_order_relaxed); }
bool UsesExactMath() { return exact_math.load(std::memory_order_relaxed); }

}  // namespace weft
