// SPDX-License-Identifier: Apache-2.0
// Models and weights in Keras's files, both ways.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "weft/estimator/model.h"

namespace weft::estimator {

struct SaveOptions {
  // Which Keras shall open it: 3 (its files' form since 2023) or 2 (2.12 to 2.15).
  int keras = 3;
};

// By the name's end: `.keras` is an archive of settings and weights, `.h5` and `.hdf5` the older
// form of the same in HDF5.
Status SaveModel(Model& model, const std::string& path, const SaveOptions& options = {});
// What SaveModel or Keras (2.12 and newer, or 3) wrote, with its weights; not compiled.
// Unimplemented names all classes of layers that weft does not have.
StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& path,
                                           const ModelOptions& options = {});

// Weights alone: `.weights.h5` as Keras 3 and 2.13 write it, another `.h5` as Keras 2 did, any
// other path a checkpoint of TensorFlow's objects, as Keras 2's save_weights(path) writes.
Status SaveWeights(Model& model, const std::string& path, const SaveOptions& options = {});

struct LoadWeightsOptions {
  // Of `.h5` files with names of layers: layers that the file has too, and no others, by name. A
  // layer of another shape is an error even so, or is left out with skip_mismatch.
  bool by_name = false;
  bool skip_mismatch = false;
};
// InvalidArgument names the layer, its shape and the file's.
Status LoadWeights(Model& model, const std::string& path, const LoadWeightsOptions& options = {});

}  // namespace weft::estimator
