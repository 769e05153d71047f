// SPDX-License-Identifier: Apache-2.0
// The features of a batch, by name, and how they are read from serialized examples.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/graph/builder.h"
#include "weft/tensor/shape.h"
#include "weft/tensor/tensor.h"

namespace weft::estimator {

// Dense, [batch, ...], or sparse where there are indices: values [n] with indices [n, rank] and the
// shape [rank] that they lie in, all of them int64.
struct Feature {
  Feature() = default;
  Feature(Endpoint dense) : values(dense) {}  // NOLINT: a tensor is a feature
  Feature(Endpoint places, Endpoint at_places, Endpoint shape)
      : values(at_places), indices(places), dense_shape(shape) {}

  bool is_sparse() const { return static_cast<bool>(indices); }

  Endpoint values, indices, dense_shape;
};

using Features = std::map<std::string, Feature>;

// One feature of tensorflow.Example records.
struct ExampleFeature {
  DType dtype = DType::kFloat;  // int64, float or string
  // Of one record; without a shape there may be any number of values, and the feature is sparse.
  bool is_sparse = true;
  Shape shape = {};
  Tensor default_value = {};  // of records without the feature; empty: every record must have it
};

using ExampleSpec = std::map<std::string, ExampleFeature>;

// The features of `serialized` records, a string vector: TensorFlow's parse_example.
Features ParseExamples(GraphBuilder& b, Endpoint serialized, const ExampleSpec& spec);

}  // namespace weft::estimator
