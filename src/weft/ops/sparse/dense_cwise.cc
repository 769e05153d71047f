// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the values of a sparse tensor with a dense one that broadcasts to it.
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/math/functors.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::dense_cwise {
namespace {

// Which element of the dense tensor meets each value.
Status FindPlaces(const SparseInput& input, const Tensor& dense, std::vector<int64_t>* places) {
  const int64_t skipped = input.rank() - dense.rank();
  bool fits = skipped >= 0;
  for (int d = 0; fits && d < dense.rank(); ++d) {
    fits = dense.dim(d) == 1 || dense.dim(d) == input.size(skipped + d);
  }
  if (!fits) {
    return InvalidArgument(
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [",
        absl::StrJoin(input.shape->span<int64_t>(), ","), "] vs. ", dense.shape().ToString());
  }
  WEFT_RETURN_IF_ERROR(input.CheckBounds());
  for (int64_t i = 0; i < input.count(); ++i) {
    int64_t place = 0;
    for (int d = 0; d < dense.rank(); ++d) {
      place = place * dense.dim(d) + (dense.dim(d) == 1 ? 0 : input.position(i)[skipped + d]);
    }
    places->push_back(place);
  }
  return absl::OkStatus();
}

template <typename Op, typename T>
class CwiseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    std::vector<int64_t> places;
    WEFT_RETURN_IF_ERROR(FindPlaces(input, c.input(3), &places));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.values->shape()));
    for (int64_t i = 0; i < input.count(); ++i) {
      const T y = c.input(3).data<T>()[places[static_cast<size_t>(i)]];
      if constexpr (std::is_same_v<Op, DivOf> && kIsInteger<T>) {
        if (y == T(0)) return InvalidArgument("Integer division by zero");
      }
      out->data<T>()[i] = Op::template Apply<T>(input.values->data<T>()[i], y);
    }
    return absl::OkStatus();
  }
};

Status ValuesShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape values, c.WithRank(1, 1));
  c.set_output(0, std::move(values));
  return absl::OkStatus();
}

// `y` is the dense tensor and `times` what the gradient of the values is to be multiplied by for
// it: it comes back to the places that the values met.
void SetDenseGradient(GradientContext& c, Endpoint places, Endpoint values) {
  const Endpoint y_shape = c.Op("Shape", {c.input(3)}, {{"out_type", DType::kInt64}});
  c.set_input(
      3, c.Op("SparseTensorDenseAdd", {places, values, y_shape, c.Op("ZerosLike", {c.input(3)})}));
}

// The places of the dense tensor that the values meet, as its own indices.
Endpoint PlacesOf(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const Endpoint y_shape = c.Op("Shape", {c.input(3)}, {{"out_type", DType::kInt64}});
  const Endpoint added = c.Op("Sub", {c.Op("Size", {c.input(2)}), c.Op("Rank", {c.input(3)})});
  const Endpoint ones =
      c.Op("Fill", {c.Op("ExpandDims", {added, b.Scalar<int32_t>(0)}), b.Scalar<int64_t>(1)});
  const Endpoint wide =
      c.Op("ConcatV2", {std::vector<Endpoint>{ones, y_shape}, b.Scalar<int32_t>(0)});
  const Endpoint scaled = c.Op("FloorDiv", {c.input(0), c.Op("FloorDiv", {c.input(2), wide})});
  const Endpoint begin = c.Op("Pack", {std::vector<Endpoint>{b.Scalar<int32_t>(0), added}});
  return c.Op("Slice", {scaled, begin, b.Constant(Tensor::Vector<int32_t>({-1, -1}))});
}

Status MulGradient(GradientContext& c) {
  const Endpoint places = PlacesOf(c);
  const Endpoint met = c.Op("GatherNd", {c.input(3), places});
  c.set_input(1, c.Op("Mul", {c.gradient(), met}));
  SetDenseGradient(c, places, c.Op("Mul", {c.gradient(), c.input(1)}));
  return absl::OkStatus();
}

Status DivGradient(GradientContext& c) {
  const Endpoint places = PlacesOf(c);
  const Endpoint met = c.Op("GatherNd", {c.input(3), places});
  const Endpoint slope = c.Op("RealDiv", {c.gradient(), met});
  c.set_input(1, slope);
  SetDenseGradient(c, places, c.Op("Neg", {c.Op("Mul", {slope, c.output(0)})}));
  return absl::OkStatus();
}

Status AddGradient(GradientContext& c) {
  c.set_input(1, c.gradient());
  SetDenseGradient(c, PlacesOf(c), c.gradient());
  return absl::OkStatus();
}

template <typename Op, typename... Ts>
void Add(Catalogue& catalogue, const char* name, const char* what, GradientFunction gradient,
         TypeList<Ts...>) {
  OpSpec spec(name);
  spec.Doc(absl::StrCat(what,
                        ": the values of the result, whose indices and shape are the sparse "
                        "tensor's.\nThe dense one broadcasts to the sparse one, never the other "
                        "way: InvalidArgument."))
      .Input("sp_indices: int64")
      .Input("sp_values: T")
      .Input("sp_shape: int64")
      .Input("dense: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Shape(ValuesShape)
      .Gradient(std::move(gradient));
  (spec.Kernel({.types = {{"T", DTypesOf<Ts>()}}, .factory = MakeKernel<CwiseKernel<Op, Ts>>()}),
   ...);
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  Add<AddOf>(catalogue, "SparseDenseCwiseAdd",
             "The values of a sparse tensor plus what a dense one has at their places", AddGradient,
             Numbers());
  Add<MulOf>(catalogue, "SparseDenseCwiseMul",
             "The values of a sparse tensor times what a dense one has at their places",
             MulGradient, Numbers());
  Add<DivOf>(catalogue, "SparseDenseCwiseDiv",
             "The values of a sparse tensor over what a dense one has at their places", DivGradient,
             Numbers());
}

}  // namespace weft::ops::sparse::dense_cwise
