// SPDX-License-Identifier: Apache-2.0
// The classes of layers by Keras's names, for models that are read from their configuration.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "weft/estimator/layer.h"

namespace weft::estimator {

class LayerClasses {
 public:
  // L has a constructor without arguments.
  template <typename L>
  void Add() {
    makers_[L().class_name()] = [] { return std::make_shared<L>(); };
  }
  // All of weft's.
  static const LayerClasses& Standard();

  bool Has(const std::string& class_name) const { return makers_.count(class_name) > 0; }
  // NotFound for a class that there is not; InvalidArgument, naming class and field, for a bad
  // configuration.
  StatusOr<LayerRef> Make(const std::string& class_name, const Json& config) const;

 private:
  std::map<std::string, std::function<std::shared_ptr<Layer>()>> makers_;
};

// One function a file of layers.
void AddActivationLayers(LayerClasses& classes);
void AddAdaptivePools(LayerClasses& classes);
void AddAttentionLayers(LayerClasses& classes);
void AddBidirectional(LayerClasses& classes);
void AddConvLstmLayers(LayerClasses& classes);
void AddConvolutionLayers(LayerClasses& classes);
void AddDenseLayers(LayerClasses& classes);
void AddEinsumDense(LayerClasses& classes);
void AddEmbeddingLayers(LayerClasses& classes);
void AddImageLayers(LayerClasses& classes);
void AddLocallyConnectedLayers(LayerClasses& classes);
void AddMergingLayers(LayerClasses& classes);
void AddNormalizationLayers(LayerClasses& classes);
void AddPoolingLayers(LayerClasses& classes);
void AddPreprocessingLayers(LayerClasses& classes);
void AddRandomImageLayers(LayerClasses& classes);
void AddRandomLayers(LayerClasses& classes);
void AddRecurrentLayers(LayerClasses& classes);
void AddRnn(LayerClasses& classes);
void AddReshapingLayers(LayerClasses& classes);
void AddTextLayers(LayerClasses& classes);
void AddWrappers(LayerClasses& classes);

}  // namespace weft::estimator
