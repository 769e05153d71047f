// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/functional/function_ref.h"

#include "weft/kernel/kernel_context.h"

namespace weft::ops {

// Shares work out over the threads of the kernel's device, as functions of device/cpu ask for it.
inline auto SharerOf(const KernelContext& c) {
  return [&c](int64_t total, int64_t least, absl::FunctionRef<void(int64_t, int64_t)> body) {
    c.ParallelFor(total, least, body);
  };
}

}  // namespace weft::ops
