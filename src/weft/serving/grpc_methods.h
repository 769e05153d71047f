// SPDX-License-Identifier: Apache-2.0
// TensorFlow Serving's gRPC interface: PredictionService, ModelService, and gRPC's health.
#pragma once

#include "weft/serving/metrics.h"
#include "weft/serving/model_set.h"
#include "weft/wire/grpc_service.h"

namespace weft::serving {

// Both must outlive the methods.
void AddServingMethods(ModelSet* models, ServingMetrics* metrics, bool with_health,
                       wire::MethodTable* methods);

}  // namespace weft::serving
