// SPDX-License-Identifier: Apache-2.0
// What the heads share: labels in shape, weights, one loss of many, the parts of the spec that go
// by the mode.
#pragma once

#include <map>
#include <string>

#include "weft/estimator/model_fn/head.h"

namespace weft::estimator {

// The losses of a batch.
struct HeadLoss {
  Endpoint each;     // [batch, n], without weights
  Endpoint weights;  // [batch, 1]
  Endpoint whole;    // the scalar that is trained
};

// `labels` as [batch, dimension]; fails for others.
Endpoint LabelsInShape(GraphBuilder& b, Endpoint labels, int64_t dimension);
// The weights of the examples, [batch, 1]; ones without a column.
Endpoint WeightsOf(const ModelCall& call, const std::string& column, Endpoint logits);
Endpoint ReducedLoss(GraphBuilder& b, Endpoint each, Endpoint weights, LossReduction reduction);
// Fills in what training needs: the step and the summary of the loss.
Status AddTraining(const ModelCall& call, const TrainOpFn& train, EstimatorSpec* spec);
// Signatures of the methods of TensorFlow Serving, without inputs.
train::Signature OfferedAs(GraphBuilder& b, const char* method,
                           const std::map<std::string, Endpoint>& outputs);

}  // namespace weft::estimator
