// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/rows.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace weft {
namespace {

// Elements [begin, begin + count) of `from` to `to`, from element `at` on.
void CopyPart(const Tensor& from, int64_t begin, int64_t count, Tensor* to, int64_t at) {
  if (count == 0) return;
  if (from.dtype() == DType::kString) {
    std::copy_n(from.data<std::string>() + begin, count, to->data<std::string>() + at);
    return;
  }
  const size_t size = DTypeSize(from.dtype());
  std::memcpy(to->bytes() + static_cast<size_t>(at) * size,
              from.bytes() + static_cast<size_t>(begin) * size, static_cast<size_t>(count) * size);
}

Status CheckType(DType dtype) {
  if (IsPlain(dtype) || dtype == DType::kString) return absl::OkStatus();
  return Unimplemented("Tensors of ", DTypeName(dtype), " have no rows to join");
}

}  // namespace

StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts, int64_t padding) {
  if (parts.empty() || parts[0].rank() == 0) return InvalidArgument("There are no rows to join");
  const Tensor& first = parts[0];
  WEFT_RETURN_IF_ERROR(CheckType(first.dtype()));
  int64_t rows = padding;
  for (const Tensor& part : parts) {
    if (part.dtype() != first.dtype() || part.rank() != first.rank() ||
        !std::equal(part.shape().dims().begin() + 1, part.shape().dims().end(),
                    first.shape().dims().begin() + 1))
      return InvalidArgument("Rows of ", first.shape().ToString(), " and ", part.shape().ToString(),
                             " cannot be joined");
    rows += part.dim(0);
  }
  if (padding > 0 && rows == padding) return InvalidArgument("There is no row to repeat");
  std::vector<int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[0] = rows;
  WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  WEFT_ASSIGN_OR_RETURN(Tensor joined, Tensor::Allocate(first.dtype(), shape));
  int64_t at = 0;
  for (const Tensor& part : parts) {
    CopyPart(part, 0, part.num_elements(), &joined, at);
    at += part.num_elements();
  }
  const int64_t row = rows == 0 ? 0 : shape.num_elements() / rows;
  for (int64_t i = 0; i < padding; ++i, at += row) CopyPart(joined, 0, row, &joined, at);
  return joined;
}

StatusOr<Tensor> CopyRows(const Tensor& from, int64_t begin, int64_t end) {
  WEFT_RETURN_IF_ERROR(CheckType(from.dtype()));
  Shape shape = from.shape();
  shape.SetDim(0, end - begin);
  WEFT_ASSIGN_OR_RETURN(Tensor rows, Tensor::Allocate(from.dtype(), shape));
  const int64_t row = from.dim(0) == 0 ? 0 : from.num_elements() / from.dim(0);
  CopyPart(from, begin * row, (end - begin) * row, &rows, 0);
  return rows;
}

}  // namespace weft
