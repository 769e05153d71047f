// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/layer_classes.h"

#include "absl/strings/str_cat.h"

namespace weft::estimator {

const LayerClasses& LayerClasses::Standard() {
  static const LayerClasses* const standard = [] {
    auto* classes = new LayerClasses();
    AddActivationLayers(*classes);
    AddAttentionLayers(*classes);
    AddConvLstmLayers(*classes);
    AddConvolutionLayers(*classes);
    AddDenseLayers(*classes);
    AddEmbeddingLayers(*classes);
    AddImageLayers(*classes);
    AddLocallyConnectedLayers(*classes);
    AddMergingLayers(*classes);
    AddNormalizationLayers(*classes);
    AddPoolingLayers(*classes);
    AddPreprocessingLayers(*classes);
    AddRandomLayers(*classes);
    AddRecurrentLayers(*classes);
    AddReshapingLayers(*classes);
    AddTextLayers(*classes);
    AddWrappers(*classes);
    return classes;
  }();
  return *standard;
}

StatusOr<LayerRef> LayerClasses::Make(const std::string& class_name, const Json& config) const {
  const auto found = makers_.find(class_name);
  if (found == makers_.end()) return NotFound("There is no layer class '", class_name, "'");
  LayerRef layer(found->second());
  WEFT_RETURN_IF_ERROR(
      Annotate(layer->ReadConfig(config), absl::StrCat("Layer class ", class_name)));
  return layer;
}

}  // namespace weft::estimator
