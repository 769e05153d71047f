// SPDX-License-Identifier: Apache-2.0
// Batches of sparse tensors taken apart and put together: how they are serialized and kept.
#pragma once

#include <vector>

#include "absl/types/span.h"

#include "weft/kernel/kernel_context.h"
#include "weft/ops/sparse/sparse_input.h"
#include "weft/tensor/variant.h"

namespace weft::ops::sparse {

// One sparse tensor: positions [n, rank], values [n], shape [rank].
struct SparseParts {
  Tensor indices;
  Tensor values;
  Tensor shape;
};

// The rows of a sparse tensor, along its first dimension. InvalidArgument unless it has two
// dimensions or more and its positions come in the order of rows.
StatusOr<std::vector<SparseParts>> SplitRows(const SparseInput& input);

// InvalidArgument unless the parts fit each other and the values have `dtype`.
Status CheckParts(const SparseParts& parts, DType dtype);

// Gives as outputs 0 to 2 the sparse tensor whose leading dimensions are `batch` and which holds
// `parts` in them, of equal rank; what else it measures is the largest of theirs.
Status GiveJoined(KernelContext& c, absl::Span<const int64_t> batch,
                  absl::Span<const SparseParts> parts);

// A tensor as the element of a variant tensor.
class TensorInVariant final : public VariantValue {
 public:
  explicit TensorInVariant(Tensor tensor) : tensor_(std::move(tensor)) {}
  absl::string_view type_name() const override { return "tensorflow::Tensor"; }
  const Tensor& tensor() const { return tensor_; }

 private:
  const Tensor tensor_;
};

}  // namespace weft::ops::sparse
