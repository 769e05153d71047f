// SPDX-License-Identifier: Apache-2.0
// LSTMs whose products are convolutions: over steps of [batch, time, sizes..., channels].
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

struct ConvLstmOptions {
  Sizes strides = 1;  // of the inputs' convolution
  std::string padding = "valid";
  Sizes dilation_rate = 1;
  ActivationName activation = "tanh";
  ActivationName recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;  // as in RecurrentOptions
  std::string name = {};
};
// All sizes but the batch and the time must be known.
LayerRef ConvLSTM1D(int64_t filters, const Sizes& kernel_size, const ConvLstmOptions& options = {});
LayerRef ConvLSTM2D(int64_t filters, const Sizes& kernel_size, const ConvLstmOptions& options = {});
LayerRef ConvLSTM3D(int64_t filters, const Sizes& kernel_size, const ConvLstmOptions& options = {});

}  // namespace weft::estimator
