// SPDX-License-Identifier: Apache-2.0
// Convolutions. Inputs are [batch, sizes..., channels] ("channels_last"), all but the batch and the
// sizes known.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Settings of all of them; each knows those that Keras's class has.
struct ConvOptions {
  Sizes strides = 1;
  std::string padding = "valid";  // "valid", "same"; "causal" too for Conv1D
  Sizes dilation_rate = 1;
  int64_t groups = 1;
  ActivationName activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};
LayerRef Conv1D(int64_t filters, const Sizes& kernel_size, const ConvOptions& options = {});
LayerRef Conv2D(int64_t filters, const Sizes& kernel_size, const ConvOptions& options = {});
LayerRef Conv3D(int64_t filters, const Sizes& kernel_size, const ConvOptions& options = {});
// The gradient of a convolution by its input: sizes grow by `strides`.
LayerRef Conv1DTranspose(int64_t filters, const Sizes& kernel_size,
                         const ConvOptions& options = {});
LayerRef Conv2DTranspose(int64_t filters, const Sizes& kernel_size,
                         const ConvOptions& options = {});
LayerRef Conv3DTranspose(int64_t filters, const Sizes& kernel_size,
                         const ConvOptions& options = {});

// Each channel convolved by itself with `depth_multiplier` kernels; then, for the separable ones,
// mixed by a 1 x 1 convolution.
struct DepthwiseOptions {
  Sizes strides = 1;
  std::string padding = "valid";
  Sizes dilation_rate = 1;
  int64_t depth_multiplier = 1;
  ActivationName activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer pointwise_initializer = "glorot_uniform";  // of the separable ones
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};
LayerRef DepthwiseConv1D(const Sizes& kernel_size, const DepthwiseOptions& options = {});
LayerRef DepthwiseConv2D(const Sizes& kernel_size, const DepthwiseOptions& options = {});
LayerRef SeparableConv1D(int64_t filters, const Sizes& kernel_size,
                         const DepthwiseOptions& options = {});
LayerRef SeparableConv2D(int64_t filters, const Sizes& kernel_size,
                         const DepthwiseOptions& options = {});

// Another kernel and bias at each place of the output, without padding. Keras 3 has them no more.
struct LocallyConnectedOptions {
  Sizes strides = 1;
  ActivationName activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};
LayerRef LocallyConnected1D(int64_t filters, const Sizes& kernel_size,
                            const LocallyConnectedOptions& options = {});
LayerRef LocallyConnected2D(int64_t filters, const Sizes& kernel_size,
                            const LocallyConnectedOptions& options = {});

}  // namespace weft::estimator
