// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/make_op_kernel.h"

#include "base/exceptions.h"

namespace weft {

StatusOr<std::unique_ptr<OpKernel>> MakeOpKernel(const KernelDef& def, const OpCall& call,
                                                 Device* device) {
  KernelConstruction construction(call, device);
  try {
    return def.factory(construction);
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace weft
