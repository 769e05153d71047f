// SPDX-License-Identifier: Apache-2.0
// Sum, Mean, Prod, Max, Min, EuclideanNorm, All and Any over any axes.
#include <cmath>

#include "weft/ops/gradients.h"
#include "weft/ops/math/reduce_kernel.h"

namespace weft::ops::math::reduce {
namespace {

using E = Endpoint;
using G = GradientContext&;

template <typename R, typename Finish, typename... Ts>
void AddKernels(OpSpec& spec, TypeList<Ts...> types) {
  KernelDef def{.types = {{"T", DTypesOf(types)}}};
  def.factory = [](KernelConstruction& k) -> StatusOr<std::unique_ptr<OpKernel>> {
    Reduction reduction;
    VisitDType(k.input_dtype(0), TypeList<Ts...>(),
               [&]<typename T>() { reduction = MakeReduction<R, Finish, T>(); });
    return MakeReductionKernel(reduction, k.AttrOr<bool>("keep_dims", false));
  };
  spec.Kernel(std::move(def));
}

// The input's shape, and the shape with reduced sizes 1 instead.
struct Shapes {
  E input;
  E kept;
};
Shapes ShapesOf(G c) {
  const E shape = c.Op("Shape", {c.input(0)});
  const E rank = c.Op("Size", {shape});
  E axes = c.input(1);
  if (TypeOf(axes) != DType::kInt32) axes = c.Op("Cast", {axes}, {{"DstT", DType::kInt32}});
  axes = c.Op("Reshape", {axes, c.builder().Constant(Tensor::Vector<int32_t>({-1}))});
  axes = c.Op("FloorMod", {c.Op("AddV2", {axes, rank}), rank});
  const E all =
      c.Op("Range", {c.builder().Scalar<int32_t>(0), rank, c.builder().Scalar<int32_t>(1)});
  const E ones = c.Op("Fill", {c.Op("Shape", {axes}), c.builder().Scalar<int32_t>(1)});
  const E kept = c.Op("DynamicStitch", {std::vector<E>{all, axes}, std::vector<E>{shape, ones}});
  return {shape, kept};
}
E Spread(G c, const Shapes& s) {
  return c.Op("BroadcastTo", {c.Op("Reshape", {c.gradient(), s.kept}), s.input});
}

Status SumGradient(G c) {
  c.set_input(0, Spread(c, ShapesOf(c)));
  return absl::OkStatus();
}
Status MeanGradient(G c) {
  const E outputs = c.Op("Maximum", {c.Op("Size", {c.output(0)}), c.builder().Scalar<int32_t>(1)});
  const E count = c.Op("FloorDiv", {c.Op("Size", {c.input(0)}), outputs});
  const E divisor = c.Op("Cast", {count}, {{"DstT", TypeOf(c.gradient())}});
  c.set_input(0, c.Op("RealDiv", {Spread(c, ShapesOf(c)), divisor}));
  return absl::OkStatus();
}
// Equal winners share the gradient.
Status ExtremumGradient(G c) {
  const Shapes s = ShapesOf(c);
  const E y = c.Op("Reshape", {c.output(0), s.kept});
  const E gradient = c.Op("Reshape", {c.gradient(), s.kept});
  const E winners = c.Op("Cast", {c.Op("Equal", {y, c.input(0)})}, {{"DstT", TypeOf(gradient)}});
  const E count = c.Op("Reshape", {c.Op("Sum", {winners, c.input(1)}), s.kept});
  c.set_input(0, c.Op("Mul", {c.Op("RealDiv", {winners, count}), gradient}));
  return absl::OkStatus();
}
// Each element gets the product of the others: exclusive products from the left and from the right,
// with the reduced axes brought to the front.
Status ProdGradient(G c) {
  const Shapes s = ShapesOf(c);
  const E rank = c.Op("Size", {s.input});
  const E zero = c.builder().Scalar<int32_t>(0);
  E axes = c.Op("Cast", {c.input(1)}, {{"DstT", DType::kInt32}});
  axes = c.Op("Reshape", {axes, c.builder().Constant(Tensor::Vector<int32_t>({-1}))});
  axes = c.Op("FloorMod", {c.Op("AddV2", {axes, rank}), rank});
  const E all = c.Op("Range", {zero, rank, c.builder().Scalar<int32_t>(1)});
  const E others = c.Op("ListDiff", {all, axes});
  const E order = c.Op("ConcatV2", {std::vector<E>{axes, others}, zero});
  const auto size_of = [&](E which) {
    return c.Op("Prod", {c.Op("GatherV2", {s.input, which, zero}), zero});
  };
  const E matrix_shape = c.Op("Pack", {std::vector<E>{size_of(axes), size_of(others)}});
  const E permuted = c.Op("Transpose", {c.input(0), order});
  const E matrix = c.Op("Reshape", {permuted, matrix_shape});
  const E left = c.Op("Cumprod", {matrix, zero}, {{"exclusive", true}});
  const E right = c.Op("Cumprod", {matrix, zero}, {{"exclusive", true}, {"reverse", true}});
  const E product = c.Op("Mul", {Conjugate(c, left), Conjugate(c, right)});
  const E others_product = c.Op("Transpose", {c.Op("Reshape", {product, c.Op("Shape", {permuted})}),
                                              c.Op("InvertPermutation", {order})});
  const E out = c.Op("Mul", {Spread(c, s), others_product});
  c.set_input(0, c.Op("Reshape", {out, s.input}));
  return absl::OkStatus();
}
Status EuclideanNormGradient(G c) {
  const Shapes s = ShapesOf(c);
  const E y = c.Op("Reshape", {c.output(0), s.kept});
  const E gradient = c.Op("Reshape", {c.gradient(), s.kept});
  c.set_input(0, c.Op("RealDiv", {c.input(0), c.Op("RealDiv", {y, gradient})}));
  return absl::OkStatus();
}

OpSpec Reduce(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("input: T")
      .Input("reduction_indices: Tidx")
      .HostInput("reduction_indices")
      .Output("output: T");
  spec.Attr("keep_dims: bool = false").Attr(types).Attr("Tidx: {int32, int64} = DT_INT32");
  spec.Shape(ReductionShape);
  return spec;
}

struct AllReduction : MinReduction {
  struct Join {
    template <typename A>
    WEFT_INLINE A Apply(A a, A b) {
      return a & b;
    }
  };
  static constexpr char kName[] = "All";
  template <typename A>
  WEFT_INLINE A Start() {
    return true;
  }
};
struct AnyReduction : MaxReduction {
  struct Join {
    template <typename A>
    WEFT_INLINE A Apply(A a, A b) {
      return a | b;
    }
  };
  static constexpr char kName[] = "Any";
  template <typename A>
  WEFT_INLINE A Start() {
    return false;
  }
};

template <typename R>
void AddLogic(Catalogue& catalogue, const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("input: bool")
      .Input("reduction_indices: Tidx")
      .HostInput("reduction_indices")
      .Output("output: bool");
  spec.Attr("keep_dims: bool = false").Attr("Tidx: {int32, int64} = DT_INT32");
  spec.Traits({.passes_on_without = 1}).Shape(ReductionShape).NoGradient();
  spec.Kernel([](KernelConstruction& k) -> StatusOr<std::unique_ptr<OpKernel>> {
    return MakeReductionKernel(MakeReduction<R, Plain, bool>(), k.AttrOr<bool>("keep_dims", false));
  });
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  constexpr char kNumbers[] = "T: numbertype";
  const OpTraits no_axes_no_change{.passes_on_without = 1};
  OpSpec sum = Reduce("Sum", "The sum over the given axes; 0 of nothing.", kNumbers);
  AddKernels<SumReduction, Plain>(sum.Traits(no_axes_no_change).Gradient(SumGradient), Numbers());
  catalogue.Add(std::move(sum));
  OpSpec mean = Reduce("Mean", "The mean over the given axes; NaN of nothing.", kNumbers);
  AddKernels<MeanReduction, Average>(mean.Traits(no_axes_no_change).Gradient(MeanGradient),
                                     Numbers());
  catalogue.Add(std::move(mean));
  OpSpec prod = Reduce("Prod", "The product over the given axes; 1 of nothing.", kNumbers);
  AddKernels<ProdReduction, Plain>(prod.Traits(no_axes_no_change).Gradient(ProdGradient),
                                   Numbers());
  catalogue.Add(std::move(prod));
  OpSpec norm =
      Reduce("EuclideanNorm", "The root of the sum of squares over the given axes.", kNumbers);
  AddKernels<SquareSumReduction, Root>(norm.Gradient(EuclideanNormGradient), Numbers());
  catalogue.Add(std::move(norm));
  constexpr char kOrdered[] =
      "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
      "uint64, "
      "qint8, quint8, qint32, qint16, quint16}";
  OpSpec max = Reduce("Max", "The largest element over the given axes.", kOrdered);
  AddKernels<MaxReduction, Plain>(max.Traits(no_axes_no_change).Gradient(ExtremumGradient),
                                  RealNumbers());
  catalogue.Add(std::move(max));
  OpSpec min = Reduce("Min", "The smallest element over the given axes.", kOrdered);
  AddKernels<MinReduction, Plain>(min.Traits(no_axes_no_change).Gradient(ExtremumGradient),
                                  RealNumbers());
  catalogue.Add(std::move(min));
  AddLogic<AllReduction>(catalogue, "All", "True if all elements over the given axes are.");
  AddLogic<AnyReduction>(catalogue, "Any", "True if one element over the given axes is.");
}

}  // namespace weft::ops::math::reduce
