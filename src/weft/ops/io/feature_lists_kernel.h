// SPDX-License-Identifier: Apache-2.0
// Features that come once a step of a sequence (tensorflow.SequenceExample), as batches.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::io {

// Values of all records and steps: [batch, step, value] as one sparse tensor.
struct SparseList {
  std::string key;
  DType dtype = DType::kInvalid;
};

// As many values at each step: [batch, longest] + shape, filled up with zeros.
struct DenseList {
  std::string key;
  DType dtype = DType::kInvalid;
  Shape shape;
  bool may_be_missing = false;  // then it has no steps
};

// Values of all records and steps behind each other, with where those of each step begin, and
// which steps are each record's.
struct RaggedList {
  std::string key;
  DType dtype = DType::kInvalid;
  DType splits = DType::kInvalid;
};

struct ListSpec {
  std::vector<SparseList> sparse;
  std::vector<DenseList> dense;
  std::vector<RaggedList> ragged;
};

struct ParsedLists {
  std::vector<Tensor> sparse_indices;
  std::vector<Tensor> sparse_values;
  std::vector<Tensor> sparse_shapes;
  std::vector<Tensor> dense;
  std::vector<Tensor> dense_lengths;
  std::vector<Tensor> ragged_values;
  std::vector<Tensor> ragged_outer_splits;
  std::vector<Tensor> ragged_inner_splits;
};

// `names` is empty, or says for each record what errors call it. Without a batch there is one
// record, and no dimension for it. InvalidArgument names record and feature list.
StatusOr<ParsedLists> ParseFeatureLists(const ListSpec& spec, absl::Span<const std::string> records,
                                        absl::Span<const std::string> names, bool is_batch);

}  // namespace weft::ops::io
