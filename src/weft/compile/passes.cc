// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/passes.h"

#include <vector>

namespace weft::compile {

Status RunPasses(const PlanOptions&, Graph*) { return absl::OkStatus(); }

}  // namespace weft::compile
