// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/queue_tuples_kernel.h"

#include <algorithm>

#include "weft/ops/elements.h"

namespace weft::ops::state {
namespace {

Status ShapeMismatch(size_t i, const PartialShape& expected, const Shape& shape) {
  return InvalidArgument("Shape mismatch in tuple component ", i, ". Expected ",
                         expected.ToString(), ", got ", shape.ToString());
}

// Copies `source`, of rank 1 at least, to the corner of the row that starts at `to`, from dimension
// `dim` on.
void CopyCorner(const Tensor& source, int dim, int64_t from, int64_t to, const Shape& row_shape,
                Tensor* batch) {
  int64_t from_step = 1, to_step = 1;
  for (int d = dim + 1; d < source.rank(); ++d) {
    from_step *= source.dim(d);
    to_step *= row_shape.dim(d);
  }
  if (dim == source.rank() - 1) {
    CopyElements(source, from, source.dim(dim), batch, to);
    return;
  }
  for (int64_t i = 0; i < source.dim(dim); ++i) {
    CopyCorner(source, dim + 1, from + i * from_step, to + i * to_step, row_shape, batch);
  }
}

}  // namespace

StatusOr<Queue::Elements> CheckedTuple(const QueueOptions& options, Queue::Element tuple) {
  for (size_t i = 0; i < options.shapes.size(); ++i) {
    if (!options.shapes[i].IsCompatibleWith(tuple[i].shape())) {
      return ShapeMismatch(i, options.shapes[i], tuple[i].shape());
    }
  }
  Queue::Elements elements;
  elements.push_back(std::move(tuple));
  return elements;
}

StatusOr<Queue::Elements> SplitBatch(const QueueOptions& options, Queue::Element components) {
  if (components[0].rank() < 1) {
    return InvalidArgument("Tuple component 0 of a batch must have rows, got shape ",
                           components[0].shape().ToString());
  }
  const int64_t rows = components[0].dim(0);
  for (size_t i = 0; i < components.size(); ++i) {
    const Shape& shape = components[i].shape();
    if (!options.shapes.empty()) {
      PartialShape expected = PartialShape(Shape{rows});
      for (const int64_t dim : options.shapes[i].dims()) expected.AddDim(dim);
      if (!expected.IsCompatibleWith(shape)) return ShapeMismatch(i, expected, shape);
    } else if (shape.rank() < 1 || shape.dim(0) != rows) {
      return InvalidArgument(
          "All input tensors must have the same size in the 0th dimension. Component ", i,
          " has shape ", shape.ToString(), ", and should have ", rows, " rows");
    }
  }
  Queue::Elements elements(static_cast<size_t>(rows));
  for (const Tensor& component : components) {
    Shape row_shape = component.shape();
    row_shape.RemoveDim(0);
    for (int64_t row = 0; row < rows; ++row) {
      WEFT_ASSIGN_OR_RETURN(Tensor element, component.SliceRows(row, row + 1).Reshaped(row_shape));
      elements[static_cast<size_t>(row)].push_back(std::move(element));
    }
  }
  return elements;
}

Shape BatchShape(const QueueOptions& options, const Queue::Elements& elements, int i) {
  Shape shape{static_cast<int64_t>(elements.size())};
  const PartialShape& declared = options.shapes[static_cast<size_t>(i)];
  for (int d = 0; d < declared.rank(); ++d) {
    int64_t size = std::max<int64_t>(0, declared.dim(d));
    for (const Queue::Element& element : elements) {
      size = std::max(size, element[static_cast<size_t>(i)].dim(d));
    }
    shape.AddDim(size);
  }
  return shape;
}

void JoinBatch(const Queue::Elements& elements, int i, Tensor* batch) {
  if (elements.empty() || batch->num_elements() == 0) return;
  Shape row_shape = batch->shape();
  row_shape.RemoveDim(0);
  const int64_t row_size = row_shape.num_elements();
  for (size_t row = 0; row < elements.size(); ++row) {
    const Tensor& element = elements[row][static_cast<size_t>(i)];
    const int64_t to = static_cast<int64_t>(row) * row_size;
    if (element.shape() == row_shape) {
      CopyElements(element, 0, row_size, batch, to);
    } else {
      ClearElements(batch, to, row_size);
      if (element.num_elements() > 0) CopyCorner(element, 0, 0, to, row_shape, batch);
    }
  }
}

}  // namespace weft::ops::state
