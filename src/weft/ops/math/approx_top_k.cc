// SPDX-License-Identifier: Apache-2.0
// The largest or smallest elements along one dimension, for programs that need not have all of
// them: here they are always exact.
#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/math/ranking.h"
#include "weft/ops/math/row_gradient_kernel.h"

namespace weft::ops::math::approx_top_k {
namespace {

class ApproxTopKKernel final : public OpKernel {
 public:
  explicit ApproxTopKKernel(KernelConstruction& c)
      : k_(c.AttrOr<int64_t>("k", 0)),
        axis_(c.AttrOr<int64_t>("reduction_dimension", -1)),
        finds_largest_(c.AttrOr<bool>("is_max_k", true)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() < 1) {
      return InvalidArgument("input must be >= 1-D, got shape ", input.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const int axis,
                          CanonicalAxis(axis_, input.rank(), "reduction_dimension"));
    const int64_t columns = input.dim(axis);
    if (columns < k_) {
      return InvalidArgument("input must have at least k columns. Had ", columns, ", needed ", k_);
    }
    Shape shape = input.shape();
    shape.SetDim(axis, k_);
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(1, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    int64_t inner = 1;
    for (int d = axis + 1; d < input.rank(); ++d) inner *= input.dim(d);
    VisitDType(input.dtype(), TypeList<float, Half, Bfloat16>(), [&]<typename T>() {
      Ranking ranking;
      for (int64_t line = 0; line < input.num_elements() / columns; ++line) {
        const int64_t outer = line / inner, place = line % inner;
        Pick(input.data<T>() + outer * columns * inner + place, inner, columns, ranking,
             values->data<T>() + outer * k_ * inner + place,
             indices->data<int32_t>() + outer * k_ * inner + place);
      }
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Pick(const T* line, int64_t stride, int64_t columns, Ranking& ranking, T* values,
            int32_t* indices) const {
    ranking.First(
        columns, k_,
        [&](int64_t i) {
          const float value = static_cast<float>(line[i * stride]);
          return DescendingKey(finds_largest_ ? value : -value);
        },
        [&](int64_t i, int64_t index) {
          indices[i * stride] = static_cast<int32_t>(index);
          values[i * stride] = line[index * stride];
        });
  }

  const int64_t k_;
  const int64_t axis_;
  const bool finds_largest_;
};

Status ApproxTopKShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  if (!shape.known_rank()) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(const auto k, c.Attr<int64_t>("k"));
  WEFT_ASSIGN_OR_RETURN(const auto asked, c.Attr<int64_t>("reduction_dimension"));
  if (shape.rank() < 1) return InvalidArgument("input must be >= 1-D, got ", shape.ToString());
  WEFT_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(asked, shape.rank(), "reduction_dimension"));
  shape.SetDim(axis, k);
  c.set_output(0, shape);
  c.set_output(1, std::move(shape));
  return absl::OkStatus();
}

// The values' gradients go back to where they were taken from.
Status ApproxTopKGradient(GradientContext& c) {
  const PartialShape shape = c.builder().ShapeOf(c.input(0));
  if (!shape.known_rank()) {
    return Unimplemented("The gradient of ApproxTopK is for inputs of known rank");
  }
  WEFT_ASSIGN_OR_RETURN(const auto asked, c.Attr<int64_t>("reduction_dimension"));
  WEFT_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(asked, shape.rank(), "reduction_dimension"));
  // With the dimension as the last one, and back: the exchange is its own inverse.
  std::vector<int32_t> exchanged(static_cast<size_t>(shape.rank()));
  std::iota(exchanged.begin(), exchanged.end(), 0);
  std::swap(exchanged[static_cast<size_t>(axis)], exchanged.back());
  const Endpoint order = c.builder().Constant(
      Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(exchanged.size())}, exchanged));
  const auto exchange = [&](Endpoint x) { return c.Op("Transpose", {x, order}); };
  const Endpoint shape_there =
      c.Op("GatherV2", {c.Op("Shape", {c.input(0)}), order, c.builder().Scalar<int32_t>(0)});
  c.set_input(
      0, exchange(ScatterInRows(c, exchange(c.gradient()), exchange(c.output(1)), shape_there)));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ApproxTopK")
                    .Doc("The `k` largest elements along `reduction_dimension`, or the smallest "
                         "where not is_max_k, in order, and where they stand.\nAlways exact, "
                         "whatever recall_target allows. InvalidArgument where there are fewer.")
                    .Input("input: T")
                    .Output("values: T")
                    .Output("indices: int32")
                    .Attr("k: int >= 0")
                    .Attr("reduction_dimension: int = -1")
                    .Attr("recall_target: float = 0.95")
                    .Attr("is_max_k: bool = true")
                    .Attr("reduction_input_size_override: int = -1")
                    .Attr("aggregate_to_topk: bool = true")
                    .Attr("T: {half, bfloat16, float}")
                    .Shape(ApproxTopKShape)
                    .Gradient(ApproxTopKGradient)
                    .Kernel(MakeKernel<ApproxTopKKernel>()));
}

}  // namespace weft::ops::math::approx_top_k
