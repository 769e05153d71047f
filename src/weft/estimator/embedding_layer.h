// SPDX-License-Identifier: Apache-2.0
// Rows of a learned table, by number.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Whole numbers of [0, input_dim) of any shape become rows of a table: [..., output_dim]. On
// parameter servers a large table is spread over all of them by rows (ModelOptions::split_from).
struct EmbeddingOptions {
  Initializer embeddings_initializer = "random_uniform";
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  bool mask_zero = false;  // 0 stands for nothing: the mask is where ids are not 0
  std::string name = {};
};
LayerRef Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {});

}  // namespace weft::estimator
