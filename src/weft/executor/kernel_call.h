// SPDX-License-Identifier: Apache-2.0
// The one place where kernels are called. What a kernel throws ends its step, not the process.
#pragma once

#include "absl/functional/any_invocable.h"

#include "base/exceptions.h"
#include "base/status.h"
#include "weft/kernel/op_kernel.h"

namespace weft::executor {

// Compute of a kernel that does not wait.
inline Status CallKernel(OpKernel& kernel, KernelContext& context) {
  try {
    return kernel.Compute(context);
  } catch (...) {
    return StatusOfException();
  }
}

// ComputeAsync of one that does. `done` is called once, whatever the kernel does: with the error if
// it throws, with Internal if it drops its callback without a call.
void CallAsyncKernel(OpKernel& kernel, KernelContext& context,
                     absl::AnyInvocable<void(Status)> done);

}  // namespace weft::executor
