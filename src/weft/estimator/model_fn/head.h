// SPDX-License-Identifier: Apache-2.0
// The end of a model: what its logits mean, the loss, the metrics and what an export offers, with
// TensorFlow's names. Formulas are those of tf.compat.v1.estimator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/estimator/model_fn/estimator_spec.h"
#include "weft/train/optimizer.h"

namespace weft::estimator {

// How the losses of a batch become one: their sum, as in tf.compat.v1.estimator, or that divided by
// how many they are, as in tf.estimator of TensorFlow 2.
enum class LossReduction { kSum, kSumOverBatchSize };

struct HeadOptions {
  std::string weight_column = {};  // a feature with one number an example, which its loss is times
  LossReduction loss_reduction = LossReduction::kSum;
  // The labels' words by their classes; empty: labels are numbers of classes.
  std::vector<std::string> label_vocabulary = {};
};

// From a loss to the node that trains.
using TrainOpFn = std::function<StatusOr<Node*>(train::Program&, Endpoint loss)>;
// A new optimizer for each graph.
using OptimizerMaker = std::function<std::unique_ptr<train::Optimizer>()>;
// Minimizes with one of `maker`.
TrainOpFn MinimizeWith(OptimizerMaker maker);

// Immutable.
class Head {
 public:
  virtual ~Head() = default;
  virtual int64_t logits_dimension() const = 0;
  // `logits`: [batch, logits_dimension]. InvalidArgument tells what does not fit of the labels.
  virtual StatusOr<EstimatorSpec> Spec(const ModelCall& call, Endpoint logits,
                                       const TrainOpFn& train) const = 0;
};

// Two classes by one logit, or more by one each.
std::shared_ptr<const Head> ClassHead(int64_t num_classes, const HeadOptions& options = {});
// Numbers, and the squares of their errors.
std::shared_ptr<const Head> RegressionHead(int64_t label_dimension = 1,
                                           const HeadOptions& options = {});

}  // namespace weft::estimator
