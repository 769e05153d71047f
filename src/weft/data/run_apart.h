// SPDX-License-Identifier: Apache-2.0
// How kernels of a step wait for elements without holding its threads.
#pragma once

#include "absl/functional/any_invocable.h"

#include "weft/kernel/op_kernel.h"

namespace weft::data {

// Runs `body` on a thread of its own, since it waits for elements, and tells `done` on the device's
// pool. The thread ends by itself.
void RunApart(KernelContext& c, absl::AnyInvocable<Status()> body, OpKernel::Done done);

// A kernel whose whole work is K::Work(context), which may wait for elements.
template <typename K>
class ApartKernel : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) final {
    RunApart(
        c, [&c]() { return K::Work(c); }, std::move(done));
  }
};

}  // namespace weft::data
