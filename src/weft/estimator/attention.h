// SPDX-License-Identifier: Apache-2.0
// Attention: rows of values, averaged by how well their keys fit a query.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Called on {query, value} or {query, value, key}, each [batch, time, features]. Masks of query and
// value count; CallArguments::use_causal_mask lets no step see later ones.
struct AttentionOptions {
  bool use_scale = false;  // a learned factor of the products; AdditiveAttention: true by default
  double dropout = 0;
  std::string name = {};
};
// Scores are products (Luong et al. 2015).
LayerRef Attention(const AttentionOptions& options = {});
// Scores are sums of tanh(query + key) (Bahdanau et al. 2014).
LayerRef AdditiveAttention(const AttentionOptions& options = {.use_scale = true});

// `num_heads` attentions over projections of `key_dim` features each, projected back (Vaswani et
// al. 2017). Called in the same way.
struct MultiHeadAttentionOptions {
  int64_t value_dim = -1;  // -1: key_dim
  double dropout = 0;
  bool use_bias = true;
  int64_t output_dim = -1;  // -1: the query's features; Keras calls it output_shape
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};
LayerRef MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                            const MultiHeadAttentionOptions& options = {});
// Several heads of the query share one of key and value (Ainslie et al. 2023). Sizes are those of
// the query: value_dim and output_dim say nothing here.
LayerRef GroupQueryAttention(int64_t head_dim, int64_t num_query_heads, int64_t num_key_value_heads,
                             const MultiHeadAttentionOptions& options = {});

}  // namespace weft::estimator
