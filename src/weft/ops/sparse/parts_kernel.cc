// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/sparse/parts_kernel.h"

#include <algorithm>

#include "weft/ops/elements.h"

namespace weft::ops::sparse {

StatusOr<std::vector<SparseParts>> SplitRows(const SparseInput& input) {
  WEFT_RETURN_IF_ERROR(input.Check());
  if (input.rank() < 2) {
    return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: ",
                           input.rank());
  }
  const int64_t rows = input.size(0), rank = input.rank() - 1;
  WEFT_ASSIGN_OR_RETURN(const Tensor shape, Tensor::Allocate(DType::kInt64, Shape{rank}));
  Tensor rest = shape;
  std::copy_n(input.shape->data<int64_t>() + 1, rank, rest.data<int64_t>());
  std::vector<SparseParts> parts;
  int64_t next = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = next;
    while (next < input.count() && input.position(next)[0] == row) ++next;
    const int64_t n = next - begin;
    WEFT_ASSIGN_OR_RETURN(Tensor indices, Tensor::Allocate(DType::kInt64, Shape{n, rank}));
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(input.position(begin + i) + 1, rank, indices.data<int64_t>() + i * rank);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(input.values->dtype(), Shape{n}));
    CopyElements(*input.values, begin, n, &values, 0);
    parts.push_back({std::move(indices), std::move(values), rest});
  }
  if (next == input.count()) return parts;
  return InvalidArgument("Received unexpected position ", input.PositionText(next),
                         ": positions must come by rows, of which there are ", rows);
}

Status CheckParts(const SparseParts& parts, DType dtype) {
  if (parts.indices.dtype() != DType::kInt64 || parts.shape.dtype() != DType::kInt64) {
    return InvalidArgument("Positions and shape of a sparse tensor must be int64, not ",
                           DTypeName(parts.indices.dtype()), " and ",
                           DTypeName(parts.shape.dtype()));
  }
  if (parts.values.dtype() != dtype) {
    return InvalidArgument("Requested SparseTensor of type ", DTypeName(dtype),
                           " but SparseTensor values.dtype() == ", DTypeName(parts.values.dtype()));
  }
  return SparseInput{&parts.indices, &parts.values, &parts.shape}.Check();
}

Status GiveJoined(KernelContext& c, absl::Span<const int64_t> batch,
                  absl::Span<const SparseParts> parts) {
  if (parts.empty()) return InvalidArgument("Must have at least 1 serialized SparseTensor");
  const int64_t rank = parts[0].shape.num_elements();
  const auto leading = static_cast<int64_t>(batch.size());
  int64_t total = 0;
  std::vector<int64_t> sizes(batch.begin(), batch.end());
  sizes.resize(static_cast<size_t>(leading + rank), 0);
  for (const SparseParts& part : parts) {
    if (part.shape.num_elements() != rank) {
      return InvalidArgument("Inconsistent shape across SparseTensors: rank prior was ", rank,
                             " but rank of one is ", part.shape.num_elements());
    }
    for (int64_t d = 0; d < rank; ++d) {
      sizes[leading + d] = std::max(sizes[leading + d], part.shape.data<int64_t>()[d]);
    }
    total += part.values.num_elements();
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{total, leading + rank}));
  WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{total}));
  WEFT_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2, Shape{leading + rank}));
  std::copy(sizes.begin(), sizes.end(), shape->data<int64_t>());
  int64_t at = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    const int64_t n = parts[k].values.num_elements();
    for (int64_t i = 0; i < n; ++i) {
      int64_t* to = indices->data<int64_t>() + (at + i) * (leading + rank);
      auto rest = static_cast<int64_t>(k);
      for (int64_t d = leading - 1; d >= 0; --d) {
        to[d] = rest % batch[d];
        rest /= batch[d];
      }
      std::copy_n(parts[k].indices.data<int64_t>() + i * rank, rank, to + leading);
    }
    CopyElements(parts[k].values, 0, n, values, at);
    at += n;
  }
  return absl::OkStatus();
}

}  // namespace weft::ops::sparse
