// SPDX-License-Identifier: Apache-2.0
// Sparse tensors written out.
#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::sparse::to_dense {
namespace {

// Positions as a matrix: a vector holds places of a vector, a scalar one place.
struct Positions {
  const Tensor* tensor;
  int64_t count;
  int64_t rank;
  int64_t At(int64_t i, int64_t d) const { return IndexAt(*tensor, i * rank + d); }
  std::string Text(int64_t i) const {
    std::vector<int64_t> position;
    for (int64_t d = 0; d < rank; ++d) position.push_back(At(i, d));
    return absl::StrCat("[", absl::StrJoin(position, ","), "]");
  }
};

class ToDenseKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<ToDenseKernel>(c.AttrOr("validate_indices", true));
  }
  explicit ToDenseKernel(bool validate) : validate_(validate) {}

  Status Compute(KernelContext& c) override {
    const Tensor& indices = c.input(0);
    if (indices.rank() > 2) {
      return InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ",
                             indices.shape().ToString());
    }
    const Positions positions{&indices, indices.rank() > 0 ? indices.dim(0) : 1,
                              indices.rank() > 1 ? indices.dim(1) : 1};
    WEFT_RETURN_IF_ERROR(CheckShapes(c, positions));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(1), "output_shape"));
    std::vector<int64_t> places;
    WEFT_RETURN_IF_ERROR(FindPlaces(positions, shape, &places));
    WEFT_ASSIGN_OR_RETURN(Tensor * dense, c.AllocateOutput(0, shape));
    const Tensor &values = c.input(2), &fill = c.input(3);
    VisitElement(dense->dtype(), [&]<typename T>() {
      std::fill_n(dense->bits<T>(), dense->num_elements(), fill.bits<T>()[0]);
      for (size_t i = 0; i < places.size(); ++i) {
        dense->bits<T>()[places[i]] = values.bits<T>()[values.rank() == 0 ? 0 : i];
      }
    });
    return absl::OkStatus();
  }

 private:
  static Status CheckShapes(const KernelContext& c, const Positions& positions) {
    const Tensor &shape = c.input(1), &values = c.input(2);
    if (shape.rank() != 1) {
      return InvalidArgument("output_shape must be rank 1, got shape ", shape.shape().ToString());
    }
    if (shape.dim(0) != positions.rank) {
      return InvalidArgument("output_shape has incorrect number of elements: ", shape.dim(0),
                             " should be: ", positions.rank);
    }
    if (values.rank() > 1 || (values.rank() == 1 && values.dim(0) != positions.count)) {
      return InvalidArgument("sparse_values has incorrect shape ", values.shape().ToString(),
                             ", should be [] or [", positions.count, "]");
    }
    if (c.input(3).rank() == 0) return absl::OkStatus();
    return InvalidArgument("default_value should be a scalar.");
  }

  Status FindPlaces(const Positions& positions, const Shape& shape,
                    std::vector<int64_t>* places) const {
    for (int64_t i = 0; i < positions.count; ++i) {
      int64_t place = 0;
      for (int64_t d = 0; d < positions.rank; ++d) {
        const int64_t at = positions.At(i, d);
        const int64_t size = shape.dim(static_cast<int>(d));
        if (at < 0 || at >= size) {
          return InvalidArgument("indices[", i, "] = ", positions.Text(i),
                                 " is out of bounds: need 0 <= index < ", shape.ToString());
        }
        place = place * size + at;
      }
      if (validate_ && i > 0 && place <= places->back()) {
        return InvalidArgument("indices[", i, "] = ", positions.Text(i),
                               place == places->back() ? " is repeated" : " is out of order");
      }
      places->push_back(place);
    }
    return absl::OkStatus();
  }

  const bool validate_;
};

Status ToDenseShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status ToDenseGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const Endpoint axes_of = c.Op("Rank", {c.gradient()});
  const Endpoint axes = c.Op("Range", {b.Scalar<int32_t>(0), axes_of, b.Scalar<int32_t>(1)});
  // A matrix of positions; a lone value stands for all of them.
  const Endpoint count = c.Op("Size", {c.input(1)});
  const Endpoint rows = c.Op(
      "Reshape", {c.input(0), c.Op("Pack", {std::vector<Endpoint>{b.Scalar<int32_t>(-1), count}})});
  const Endpoint picked = c.Op("GatherNd", {c.gradient(), rows});
  const PartialShape values = b.ShapeOf(c.input(2));
  const Endpoint of_picked =
      c.Op("Sum", {picked, b.Constant(Tensor::Vector<int32_t>({0}), "first")});
  c.set_input(2, values.known_rank() && values.rank() == 0
                     ? of_picked
                     : c.Op("Reshape", {picked, c.Op("Shape", {c.input(2)})}));
  c.set_input(3, c.Op("Sub", {c.Op("Sum", {c.gradient(), axes}), of_picked}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("SparseToDense")
          .Doc("A tensor of output_shape that holds sparse_values at sparse_indices and "
               "default_value elsewhere.\nsparse_indices: [n, rank], [n] for a vector, [] for one "
               "element; sparse_values: [n], or [] for all. InvalidArgument for an index out of "
               "range, and, with validate_indices, for one out of order or repeated.")
          .Input("sparse_indices: Tindices")
          .Input("output_shape: Tindices")
          .HostInput("output_shape")
          .Input("sparse_values: T")
          .Input("default_value: T")
          .HostInput("default_value")
          .Output("dense: T")
          .Attr("validate_indices: bool = true")
          .Attr("T: type")
          .Attr("Tindices: {int32, int64}")
          .Shape(ToDenseShape)
          .Gradient(ToDenseGradient)
          .Kernel(MakeKernel<ToDenseKernel>()));
}

}  // namespace weft::ops::sparse::to_dense
