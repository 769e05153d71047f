// SPDX-License-Identifier: Apache-2.0
// Normalizations by batch, by example, by group of channels, and by length.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// (x - mean) / sqrt(variance + epsilon) * gamma + beta over all axes but `axis` (Ioffe and Szegedy
// 2015). Training takes the batch's mean and variance and moves the averages toward them; inference
// takes the averages. The moving variance is that of the batch as it is, as in Keras 3; Keras 2
// scales it by n / (n - 1) for images.
struct BatchNormalizationOptions {
  int64_t axis = -1;
  double momentum = 0.99;
  double epsilon = 0.001;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
};
LayerRef BatchNormalization(const BatchNormalizationOptions& options = {});

// The same for each example by itself along `axis` (Ba, Kiros and Hinton 2016).
struct LayerNormalizationOptions {
  Axes axis = {-1};
  double epsilon = 0.001;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
};
LayerRef LayerNormalization(const LayerNormalizationOptions& options = {});

// The same for each example and each of `groups` parts of the channels (Wu and He 2018); -1 groups:
// each channel by itself.
struct GroupNormalizationOptions {
  int64_t groups = 32;
  double epsilon = 0.001;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
};
LayerRef GroupNormalization(const GroupNormalizationOptions& options = {});

// x / its length along `axis`.
LayerRef UnitNormalization(const Axes& axis = {-1}, const std::string& name = "");
// x by the root of the mean of its squares along `axis`, times a learned "scale" (Keras 3 has it).
struct RmsNormalizationOptions {
  Axes axis = {-1};
  double epsilon = 1e-6;
  std::string name = {};
};
LayerRef RMSNormalization(const RmsNormalizationOptions& options = {});

}  // namespace weft::estimator
