// SPDX-License-Identifier: Apache-2.0
// Records of training data (tensorflow.Example) as batches: what several ops parse in the same way.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

#include "base/status.h"
#include "weft/graph/attr_value.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::io {

// A feature whose values of all records come as one sparse tensor.
struct SparseFeature {
  std::string key;
  DType dtype = DType::kInvalid;
};

// A feature with as many values in each record: [batch] + shape. An unknown first size means as
// many as the longest record has; the others are filled up.
struct DenseFeature {
  std::string key;
  DType dtype = DType::kInvalid;
  PartialShape shape;
  Tensor fallback;  // for records without it; of no elements if it must be there

  bool is_variable() const { return shape.rank() > 0 && shape.dim(0) < 0; }
};

// A feature whose values of all records follow each other, with where each record's begin.
struct RaggedFeature {
  std::string key;
  DType dtype = DType::kInvalid;
  DType splits = DType::kInvalid;
};

struct ParsedExamples {
  std::vector<Tensor> sparse_indices;  // [n, 2], or [n, 1] for a record alone
  std::vector<Tensor> sparse_values;
  std::vector<Tensor> sparse_shapes;
  std::vector<Tensor> dense;
  std::vector<Tensor> ragged_values;
  std::vector<Tensor> ragged_splits;
};

struct ExampleSpec {
  std::vector<SparseFeature> sparse;
  std::vector<DenseFeature> dense;
  std::vector<RaggedFeature> ragged;
  // InvalidArgument for fallbacks that do not fit.
  Status Check() const;
};

// `names` is empty, or says for each record what errors call it. Without a batch there is one
// record, and no dimension for it. InvalidArgument names record and feature.
StatusOr<ParsedExamples> ParseExamples(const ExampleSpec& spec,
                                       absl::Span<const std::string> records,
                                       absl::Span<const std::string> names, bool is_batch);

}  // namespace weft::ops::io
