// SPDX-License-Identifier: Apache-2.0
// TensorFlow Serving's gRPC interface: PredictionService, ModelService, and gRPC's health.
#pragma once

#include <functional>

#include "weft/serving/metrics.h"
#include "weft/serving/model_set.h"
#include "weft/wire/grpc_service.h"

namespace weft::serving {

// Both must outlive the methods. `is_ready` is what Health answers; null: there is no Health.
void AddServingMethods(ModelSet* models, ServingMetrics* metrics,
                       const std::function<bool()>& is_ready, wire::MethodTable* methods);

}  // namespace weft::serving
