// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/variant.h"

#include "weft/tensor/tensor.h"

namespace weft {

std::vector<Tensor> VariantValue::EncodeTensors() const { return {}; }

}  // namespace weft
