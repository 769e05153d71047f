// SPDX-License-Identifier: Apache-2.0
// How much an op computes and moves, told from its name and the shapes around it.
#pragma once

#include <vector>

#include "platform/placement/cost_file.h"

namespace weft::platform {

struct OpWork {
  double flops = 0;
  double bytes = 0;  // read and written
};

// `inputs` are the tensors that it reads, null where nothing is known of one. Sizes that are not
// known (-1) count as 1.
OpWork WorkOf(const OpCost& op, const std::vector<const TensorCost*>& inputs);

// Ops that pass on what they read, or hold a value: no work, and their outputs take no memory.
bool IsFree(const std::string& op);
// Ops that change a variable, which is their first input.
bool IsUpdate(const std::string& op);
// Ops that read some rows of a variable, which is their first input.
bool IsLookup(const std::string& op);
bool IsVariable(const std::string& op);

}  // namespace weft::platform
