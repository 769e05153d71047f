// SPDX-License-Identifier: Apache-2.0
// Where a model's weights lie in each form of Keras's files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/estimator/model.h"
#include "weft/storage/hdf5.h"

namespace weft::estimator {

// The weights of a layer of the model, in the order in which Keras's older files have them, and the
// layer's description for messages: "Layer 'dense' (Dense)".
struct LayerWeights {
  std::string layer;
  std::string description;
  std::vector<const Weight*> weights;
};
std::vector<LayerWeights> WeightsByLayer(Model& model);

// In archives: folder and number, "layers/dense/vars/0", and a second place that holds the same, or
// "". Older Kerases name folders of MultiHeadAttention with "_" before.
struct ArchivePlace {
  std::string place, also;
};
std::map<const Weight*, ArchivePlace> ArchivePlaces(Model& model, int keras);

// By weight's name.
using WeightValues = std::map<std::string, Tensor>;

// Into archives' weights.
void StoreInArchive(Model& model, const WeightValues& values, int keras, storage::Hdf5Group* root);
StatusOr<std::vector<NamedWeight>> ReadFromArchive(Model& model, const storage::Hdf5Group& root);

// Into files with names of layers.
Status StoreByLayers(Model& model, const WeightValues& values, int keras, storage::Hdf5Group* root);
struct LoadWeightsOptions;
StatusOr<std::vector<NamedWeight>> ReadByLayers(Model& model, const storage::Hdf5Group& root,
                                                const LoadWeightsOptions& options);

// Checkpoints of objects.
Status SaveObjects(Model& model, const WeightValues& values, const std::string& prefix);
StatusOr<std::vector<NamedWeight>> ReadObjects(Model& model, const std::string& prefix);

// `value` for `weight`; InvalidArgument, naming the layer, for another shape or dtype.
StatusOr<NamedWeight> Fitting(const Weight& weight, const Tensor& value,
                              const std::string& description);

}  // namespace weft::estimator
