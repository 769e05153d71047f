// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/array/gather_kernel.h"

#include <atomic>

#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/row_copy.h"

namespace weft::ops::array {
namespace {

constexpr int64_t kParallelBytes = 128 << 10;

// params as [batch, outer, size, slice], indices as [batch, count].
struct Layout {
  int64_t batch = 1;
  int64_t outer = 1;
  int64_t size = 1;
  int64_t slice = 1;
  int64_t count = 1;
};

// The flat position of an index out of range, or -1.
template <typename Index>
int64_t FindBad(const Index* indices, int64_t n, int64_t size) {
  for (int64_t i = 0; i < n; ++i) {
    if (indices[i] < 0 || static_cast<int64_t>(indices[i]) >= size) return i;
  }
  return -1;
}

// Rows of large tables lie anywhere: they are asked for while those before them are copied.
template <typename T, typename Index>
void GatherRows(const KernelContext& c, const Layout& at, const T* params, const Index* indices,
                T* out) {
  constexpr int64_t kAhead = 16;
  const auto gather = [&](int64_t begin, int64_t end) {
    int64_t row = begin / at.count;  // of batch and outer
    int64_t i = begin % at.count;
    while (begin < end) {
      const Index* const list = indices + (row / at.outer) * at.count;
      const T* const table = params + row * at.size * at.slice;
      const int64_t stop = std::min(at.count, i + end - begin);
      for (; i < stop; ++i, ++begin) {
        if (i + kAhead < at.count) {
          PrefetchElements<false>(table + static_cast<int64_t>(list[i + kAhead]) * at.slice,
                                  at.slice);
        }
        const T* const from = table + static_cast<int64_t>(list[i]) * at.slice;
        if (at.slice == 1) {
          out[begin] = *from;
        } else {
          CopyRowElements(from, at.slice, out + begin * at.slice);
        }
      }
      i = 0;
      ++row;
    }
  };
  c.ParallelFor(at.batch * at.outer * at.count,
                std::max<int64_t>(1, kParallelBytes / (at.slice * static_cast<int64_t>(sizeof(T)))),
                gather);
}

Status CheckBatch(const Shape& params, const Shape& indices, int64_t batch_dims, int axis) {
  if (batch_dims > axis) {
    return InvalidArgument("batch_dims (", batch_dims, ") must be less than or equal to axis (",
                           axis, ").");
  }
  for (int i = 0; i < batch_dims; ++i) {
    if (params.dim(i) == indices.dim(i)) continue;
    return InvalidArgument("params.shape[", i, "]: ", params.dim(i),
                           " should be equal to indices.shape[", i, "]: ", indices.dim(i));
  }
  return absl::OkStatus();
}

}  // namespace

Status Gather(KernelContext& c, const Tensor& params, const Tensor& indices, int64_t axis_value,
              int64_t batch_dims, int output_index) {
  const Shape& shape = params.shape();
  if (shape.rank() < 1) return InvalidArgument("params must be at least 1 dimensional");
  if (axis_value < -shape.rank() || axis_value >= shape.rank()) {
    return InvalidArgument("Expected axis in the range [", -shape.rank(), ", ", shape.rank(),
                           "), but got ", axis_value);
  }
  const int axis = static_cast<int>(axis_value < 0 ? axis_value + shape.rank() : axis_value);
  if (batch_dims < -indices.rank() || batch_dims > indices.rank()) {
    return InvalidArgument("Expected batch_dims in the range [", -indices.rank(), ", ",
                           indices.rank(), "], but got ", batch_dims);
  }
  if (batch_dims < 0) batch_dims += indices.rank();
  WEFT_RETURN_IF_ERROR(CheckBatch(shape, indices.shape(), batch_dims, axis));

  Layout at;
  Dims sizes;
  for (int i = 0; i < axis; ++i) {
    (i < batch_dims ? at.batch : at.outer) *= shape.dim(i);
    sizes.push_back(shape.dim(i));
  }
  at.size = shape.dim(axis);
  for (int i = static_cast<int>(batch_dims); i < indices.rank(); ++i) {
    at.count *= indices.dim(i);
    sizes.push_back(indices.dim(i));
  }
  for (int i = axis + 1; i < shape.rank(); ++i) {
    at.slice *= shape.dim(i);
    sizes.push_back(shape.dim(i));
  }
  WEFT_ASSIGN_OR_RETURN(const Shape result, Shape::Make(sizes));
  Status status;
  VisitDType(indices.dtype(), TypeList<int32_t, int64_t, int16_t>(), [&]<typename Index>() {
    const Index* index = indices.data<Index>();
    const int64_t bad = FindBad(index, indices.num_elements(), at.size);
    // Where nothing is read, TensorFlow does not look at the indices either.
    if (bad >= 0 && result.num_elements() > 0) {
      status = InvalidArgument("indices", PositionText(indices.shape(), bad), " = ",
                               static_cast<int64_t>(index[bad]), " is not in [0, ", at.size, ")");
      return;
    }
    StatusOr<Tensor*> output = c.AllocateOutput(output_index, result);
    if (!output.ok()) {
      status = output.status();
      return;
    }
    if (result.num_elements() == 0) return;
    VisitElement(params.dtype(), [&]<typename T>() {
      GatherRows(c, at, params.bits<T>(), index, (*output)->bits<T>());
    });
  });
  return status;
}

}  // namespace weft::ops::array
