// SPDX-License-Identifier: Apache-2.0
// Calls of one op with the same attributes and dtypes: what is made once for all of them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "weft/graph/op_call.h"
#include "weft/kernel/op_kernel.h"

namespace weft::imperative {

class Backward;

struct OpKind {
  OpCall call;
  size_t device = 0;
  std::unique_ptr<OpKernel> kernel;
  // How gradients flow back, by which outputs have one; made when first asked for.
  mutable std::map<std::vector<bool>, std::shared_ptr<const Backward>> backward;
};

}  // namespace weft::imperative
