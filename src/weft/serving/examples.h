// SPDX-License-Identifier: Apache-2.0
// tf.Examples in, classes or values out.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"

#include "base/status.h"
#include "proto/serving/inference.pb.h"
#include "weft/serving/model_version.h"
#include "weft/serving/predict.h"

namespace weft::serving {

template <typename Response>
using AnswerDone = absl::AnyInvocable<void(StatusOr<Response>)>;

// Each calls `done` once, maybe before it returns, and holds `model` until then. InvalidArgument
// for an empty input, for a signature that is none of its kind, and for outputs that are not what
// such a signature gives.
void Classify(std::shared_ptr<const ModelVersion> model,
              const tensorflow::serving::ClassificationRequest& request, const CallLimits& limits,
              AnswerDone<tensorflow::serving::ClassificationResponse> done);
void Regress(std::shared_ptr<const ModelVersion> model,
             const tensorflow::serving::RegressionRequest& request, const CallLimits& limits,
             AnswerDone<tensorflow::serving::RegressionResponse> done);
// All tasks name the same model, in one step.
void InferAll(std::shared_ptr<const ModelVersion> model,
              const tensorflow::serving::MultiInferenceRequest& request, const CallLimits& limits,
              AnswerDone<tensorflow::serving::MultiInferenceResponse> done);

// What answered.
void FillSpec(const ModelVersion& model, const std::string& signature,
              tensorflow::serving::ModelSpec* spec);

}  // namespace weft::serving
