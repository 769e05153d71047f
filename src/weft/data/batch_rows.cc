// SPDX-License-Identifier: Apache-2.0
#include "weft/data/batch_rows.h"

#include <utility>

namespace weft::data {

StatusOr<Element> StackElements(const std::vector<Element>& elements) {
  Element batch;
  if (elements.empty()) return batch;
  const auto count = static_cast<int64_t>(elements.size());
  for (size_t i = 0; i < elements[0].size(); ++i) {
    const Tensor& first = elements[0][i];
    Dims dims = {count};
    dims.insert(dims.end(), first.shape().dims().begin(), first.shape().dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor stacked, Tensor::Allocate(first.dtype(), shape));
    for (int64_t row = 0; row < count; ++row) {
      const Tensor& from = elements[static_cast<size_t>(row)][i];
      if (from.dtype() != first.dtype()) {
        return InvalidArgument("Cannot batch tensors with different types in component ", i,
                               ": element ", row, " is of ", DTypeName(from.dtype()), ".");
      }
      if (!(from.shape() == first.shape())) {
        return InvalidArgument("Cannot batch tensors with different shapes in component ", i,
                               ". First element had shape ", first.shape().ToString(),
                               " and element ", row, " had shape ", from.shape().ToString(), ".");
      }
      CopyInto(from, &stacked, row * first.num_elements());
    }
    batch.push_back(std::move(stacked));
  }
  return batch;
}

ElementSpec BatchedSpec(const ElementSpec& spec, int64_t size) {
  ElementSpec batched{spec.types, {}};
  for (const PartialShape& shape : spec.shapes) {
    PartialShape with;
    if (shape.known_rank()) {
      with = PartialShape({size});
      for (const int64_t dim : shape.dims()) with.AddDim(dim);
    }
    batched.shapes.push_back(std::move(with));
  }
  return batched;
}

int64_t BatchCardinality(int64_t n, int64_t size, bool drops_remainder) {
  if (n < 0) return n;
  return n / size + (n % size == 0 || drops_remainder ? 0 : 1);
}

}  // namespace weft::data
