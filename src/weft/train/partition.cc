// SPDX-License-Identifier: Apache-2.0
#include "weft/train/partition.h"

#include <algorithm>

namespace weft::train {
namespace {

Status CheckAxis(int axis, const Shape& shape) {
  if (axis >= 0 && axis < shape.rank()) return absl::OkStatus();
  return InvalidArgument("A partition along axis ", axis,
                         " needs a variable that has it, got shape ", shape.ToString());
}

int64_t Bytes(DType dtype, const Shape& shape, int64_t bytes_per_string) {
  const int64_t each =
      dtype == DType::kString ? bytes_per_string : static_cast<int64_t>(DTypeSize(dtype));
  return shape.num_elements() * each;
}

int64_t Quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }  // rounded up

}  // namespace

Partitioner FixedSizePartitioner(int64_t parts, int axis) {
  return [=](DType, const Shape& shape) -> StatusOr<Partition> {
    WEFT_RETURN_IF_ERROR(CheckAxis(axis, shape));
    return Partition{axis, std::min(parts, std::max<int64_t>(1, shape.dim(axis)))};
  };
}

Partitioner VariableAxisSizePartitioner(int64_t max_part_bytes, int axis, int64_t bytes_per_string,
                                        int64_t max_parts) {
  return [=](DType dtype, const Shape& shape) -> StatusOr<Partition> {
    WEFT_RETURN_IF_ERROR(CheckAxis(axis, shape));
    if (max_part_bytes < 1) {
      return InvalidArgument("A part's greatest size must be positive, got ", max_part_bytes,
                             " bytes");
    }
    if (shape.num_elements() == 0) return Partition{axis, 1};
    const int64_t slice_bytes =
        std::max<int64_t>(1, Bytes(dtype, shape, bytes_per_string) / shape.dim(axis));
    const int64_t slices = std::max<int64_t>(1, max_part_bytes / slice_bytes);
    const int64_t parts = Quotient(shape.dim(axis), slices);
    return Partition{axis, max_parts > 0 ? std::min(max_parts, parts) : parts};
  };
}

Partitioner MinMaxPartitioner(int64_t max_parts, int axis, int64_t min_part_bytes,
                              int64_t bytes_per_string) {
  return [=](DType dtype, const Shape& shape) -> StatusOr<Partition> {
    WEFT_RETURN_IF_ERROR(CheckAxis(axis, shape));
    if (min_part_bytes < 1 || max_parts < 1) {
      return InvalidArgument("Parts' least size and greatest number must be positive, got ",
                             min_part_bytes, " bytes and ", max_parts);
    }
    const int64_t wanted = Quotient(Bytes(dtype, shape, bytes_per_string), min_part_bytes);
    return Partition{axis, std::max<int64_t>(1, std::min({shape.dim(axis), max_parts, wanted}))};
  };
}

StatusOr<std::vector<int64_t>> PartSizes(const Partition& partition, const Shape& shape) {
  WEFT_RETURN_IF_ERROR(CheckAxis(partition.axis, shape));
  const int64_t whole = shape.dim(partition.axis);
  if (partition.parts < 1 || partition.parts > std::max<int64_t>(1, whole)) {
    return InvalidArgument("Axis ", partition.axis, " of shape ", shape.ToString(),
                           " cannot be split into ", partition.parts, " parts");
  }
  std::vector<int64_t> sizes(static_cast<size_t>(partition.parts), whole / partition.parts);
  for (int64_t i = 0; i < whole % partition.parts; ++i) ++sizes[static_cast<size_t>(i)];
  return sizes;
}

}  // namespace weft::train
