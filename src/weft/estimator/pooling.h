// SPDX-License-Identifier: Apache-2.0
// Pools over windows and over whole inputs, [batch, sizes..., channels].
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

struct PoolOptions {
  Sizes strides = {};  // empty: the window's sizes
  std::string padding = "valid";
  std::string name = {};
};
LayerRef MaxPooling1D(const Sizes& pool_size = 2, const PoolOptions& options = {});
LayerRef MaxPooling2D(const Sizes& pool_size = 2, const PoolOptions& options = {});
LayerRef MaxPooling3D(const Sizes& pool_size = 2, const PoolOptions& options = {});
LayerRef AveragePooling1D(const Sizes& pool_size = 2, const PoolOptions& options = {});
LayerRef AveragePooling2D(const Sizes& pool_size = 2, const PoolOptions& options = {});
LayerRef AveragePooling3D(const Sizes& pool_size = 2, const PoolOptions& options = {});

struct GlobalPoolOptions {
  bool keepdims = false;
  std::string name = {};
};
LayerRef GlobalMaxPooling1D(const GlobalPoolOptions& options = {});
LayerRef GlobalMaxPooling2D(const GlobalPoolOptions& options = {});
LayerRef GlobalMaxPooling3D(const GlobalPoolOptions& options = {});
// Of 1-D inputs with a mask only what is there counts.
LayerRef GlobalAveragePooling1D(const GlobalPoolOptions& options = {});
LayerRef GlobalAveragePooling2D(const GlobalPoolOptions& options = {});
LayerRef GlobalAveragePooling3D(const GlobalPoolOptions& options = {});

// As many windows as `output_size` says, which share out the whole input. The newest Keras has
// them.
LayerRef AdaptiveMaxPooling1D(const Sizes& output_size, const std::string& name = "");
LayerRef AdaptiveMaxPooling2D(const Sizes& output_size, const std::string& name = "");
LayerRef AdaptiveMaxPooling3D(const Sizes& output_size, const std::string& name = "");
LayerRef AdaptiveAveragePooling1D(const Sizes& output_size, const std::string& name = "");
LayerRef AdaptiveAveragePooling2D(const Sizes& output_size, const std::string& name = "");
LayerRef AdaptiveAveragePooling3D(const Sizes& output_size, const std::string& name = "");

}  // namespace weft::estimator
