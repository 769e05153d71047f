// SPDX-License-Identifier: Apache-2.0
// TensorFlow's premade estimators: linear, deep, and both at once. Names of variables, defaults and
// numbers are those of tf.compat.v1.estimator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/estimator/columns/feature_column.h"
#include "weft/estimator/model_fn/estimator.h"
#include "weft/estimator/model_fn/head.h"
#include "weft/train/layers.h"

namespace weft::estimator {

struct DnnOptions {
  std::vector<int64_t> hidden_units;
  std::vector<Column> feature_columns;  // dense ones
  OptimizerMaker optimizer = nullptr;   // null: Adagrad, 0.05 (beside a linear model 0.001)
  train::Activation activation = train::Relu;
  double dropout = 0;       // the part of each hidden layer's outputs that is 0 in training
  bool batch_norm = false;  // normalizes each hidden layer's outputs
};

struct LinearOptions {
  std::vector<Column> feature_columns;
  // Null: Ftrl, 0.2 (beside a deep model min(0.005, 1 / sqrt(columns))).
  OptimizerMaker optimizer = nullptr;
  std::string sparse_combiner = "sum";  // or "mean" or "sqrtn"
};

struct ClassifierOptions {
  int64_t n_classes = 2;
  HeadOptions head = {};
  RunConfig config = {};
  WarmStart warm_start = {};
};

struct RegressorOptions {
  int64_t label_dimension = 1;
  HeadOptions head = {};
  RunConfig config = {};
  WarmStart warm_start = {};
};

Estimator DNNClassifier(const DnnOptions& dnn, const ClassifierOptions& options);
Estimator DNNRegressor(const DnnOptions& dnn, const RegressorOptions& options);
Estimator LinearClassifier(const LinearOptions& linear, const ClassifierOptions& options);
Estimator LinearRegressor(const LinearOptions& linear, const RegressorOptions& options);
// The logits are the sum of both models', each of which has its own optimizer.
Estimator DNNLinearCombinedClassifier(const LinearOptions& linear, const DnnOptions& dnn,
                                      const ClassifierOptions& options);
Estimator DNNLinearCombinedRegressor(const LinearOptions& linear, const DnnOptions& dnn,
                                     const RegressorOptions& options);

// The logits alone, for model functions of one's own: [batch, units], variables under "dnn" and
// "linear".
Endpoint DnnLogits(const ModelCall& call, const DnnOptions& options, int64_t units);
Endpoint LinearLogits(const ModelCall& call, const LinearOptions& options, int64_t units);

}  // namespace weft::estimator
