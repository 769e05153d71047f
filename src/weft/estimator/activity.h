// SPDX-License-Identifier: Apache-2.0
// What a layer's outputs cost.
#pragma once

#include "weft/estimator/layer_call.h"

namespace weft::estimator {

// Adds regularizer(y) / batch to the loss, as Keras does; `x` has the batch. Nothing for no
// regularizer.
void AddActivityLoss(LayerCall& call, const Regularizer& regularizer, Endpoint y, Endpoint x);

}  // namespace weft::estimator
