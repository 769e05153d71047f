// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/rows.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace weft::serving {
namespace {

// Elements [begin, begin + count) of `from` to `to`, from element `at` on.
void CopyElements(const Tensor& from, int64_t begin, int64_t count, Tensor* to, int64_t at) {
  if (count == 0) return;
  if (from.dtype() == DType::kString) {
    std::copy_n(from.data<std::string>() + begin, count, to->data<std::string>() + at);
    return;
  }
  const size_t size = DTypeSize(from.dtype());
  std::memcpy(to->bytes() + static_cast<size_t>(at) * size,
              from.bytes() + static_cast<size_t>(begin) * size, static_cast<size_t>(count) * size);
}

}  // namespace

StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts, int64_t padding) {
  if (parts.empty() || parts[0].rank() == 0) return InvalidArgument("There are no rows to join");
  const Tensor& first = parts[0];
  if (!IsPlain(first.dtype()) && first.dtype() != DType::kString)
    return Unimplemented("Tensors of ", DTypeName(first.dtype()), " have no rows to join");
  int64_t rows = padding;
  for (const Tensor& part : parts) {
    if (part.dtype() != first.dtype() || part.rank() != first.rank() ||
        !std::equal(part.shape().dims().begin() + 1, part.shape().dims().end(),
                    first.shape().dims().begin() + 1))
      return InvalidArgument("Rows of ", first.shape().ToString(), " and ", part.shape().ToString(),
                             " cannot be joined");
    rows += part.dim(0);
  }
  if (padding > 0 && first.dim(0) == 0) return InvalidArgument("There is no row to repeat");
  std::vector<int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[0] = rows;
  WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  WEFT_ASSIGN_OR_RETURN(Tensor joined, Tensor::Allocate(first.dtype(), shape));
  int64_t at = 0;
  for (const Tensor& part : parts) {
    CopyElements(part, 0, part.num_elements(), &joined, at);
    at += part.num_elements();
  }
  const int64_t row = rows == 0 ? 0 : shape.num_elements() / rows;
  for (int64_t i = 0; i < padding; ++i, at += row) CopyElements(first, 0, row, &joined, at);
  return joined;
}

}  // namespace weft::serving
