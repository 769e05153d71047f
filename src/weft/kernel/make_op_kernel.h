// SPDX-License-Identifier: Apache-2.0
// The one place where kernels are made.
#pragma once

#include <memory>

#include "base/status.h"
#include "weft/kernel/kernel_registry.h"

namespace weft {

// The kernel of a call. What its factory throws is the status. `call` and `device` must outlive it.
StatusOr<std::unique_ptr<OpKernel>> MakeOpKernel(const KernelDef& def, const OpCall& call,
                                                 Device* device);

}  // namespace weft
