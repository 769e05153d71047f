// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/activity.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

void AddActivityLoss(LayerCall& call, const Regularizer& regularizer, Endpoint y, Endpoint x) {
  if (regularizer.empty() || !call.b().ok()) return;
  GraphBuilder& b = call.b();
  const Endpoint batch = CastTo(b, SizeOf(b, x, 0), TypeOf(y));
  call.AddLoss(b.Op("RealDiv", {regularizer.Loss(b, y), batch}));
}

}  // namespace weft::estimator
