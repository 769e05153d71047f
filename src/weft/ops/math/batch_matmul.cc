// SPDX-License-Identifier: Apache-2.0
// Products of many matrices at once.
#include "weft/device/cpu/gemm.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/gradients.h"
#include "weft/ops/math/functors.h"

namespace weft::ops::math::batch_matmul {
namespace {

using ProductTypes =
    TypeList<float, double, Half, Bfloat16, int16_t, int32_t, int64_t, Complex64, Complex128>;

// Whether leading dimensions broadcast (V2 and V3) or must be equal.
enum class Batches { kEqual, kBroadcast };

Shape LeadingDims(const Shape& shape) {
  Shape leading;
  for (int i = 0; i + 2 < shape.rank(); ++i) leading.AddDim(shape.dim(i));
  return leading;
}

Status CheckEqualBatches(const Shape& x, const Shape& y) {
  if (x.rank() != y.rank()) {
    return InvalidArgument("In[0] and In[1] has different ndims: ", x.ToString(), " vs. ",
                           y.ToString());
  }
  for (int i = 0; i + 2 < x.rank(); ++i) {
    if (x.dim(i) == y.dim(i)) continue;
    return InvalidArgument("In[0].dim(", i, ") and In[1].dim(", i,
                           ") must be the same: ", x.ToString(), " vs ", y.ToString());
  }
  return absl::OkStatus();
}

// An operand as T: converted if it has another type, conjugated if it is complex and adjoint.
template <typename T>
StatusOr<Tensor> Prepared(KernelContext& c, const Tensor& in, bool adjoint) {
  const bool conjugates = kIsComplex<T> && adjoint;
  if (in.dtype() == DTypeOf<T> && !conjugates) return in;
  WEFT_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemporary(DTypeOf<T>, in.shape()));
  T* to = out.data<T>();
  if constexpr (kIsComplex<T>) {
    const T* from = in.data<T>();
    for (int64_t i = 0; i < in.num_elements(); ++i) to[i] = std::conj(from[i]);
  } else {
    VisitDType(in.dtype(), TypeList<int8_t, uint8_t, Bfloat16>(), [&]<typename From>() {
      const From* from = in.data<From>();
      for (int64_t i = 0; i < in.num_elements(); ++i) {
        to[i] = static_cast<T>(static_cast<Wide<From>>(from[i]));
      }
    });
  }
  return out;
}

template <typename T>
class BatchMatMulKernel final : public OpKernel {
 public:
  explicit BatchMatMulKernel(KernelConstruction& k)
      : batches_(k.op() == "BatchMatMul" ? Batches::kEqual : Batches::kBroadcast),
        adj_x_(k.AttrOr<bool>("adj_x", false)),
        adj_y_(k.AttrOr<bool>("adj_y", false)) {}

  Status Compute(KernelContext& c) override {
    for (int i = 0; i < 2; ++i) {
      if (c.input(i).rank() >= 2) continue;
      return InvalidArgument("In[", i, "] ndims must be >= 2: ", c.input(i).rank());
    }
    const Shape& xs = c.input(0).shape();
    const Shape& ys = c.input(1).shape();
    if (batches_ == Batches::kEqual) WEFT_RETURN_IF_ERROR(CheckEqualBatches(xs, ys));
    const Shape x_batch = LeadingDims(xs);
    const Shape y_batch = LeadingDims(ys);
    StatusOr<Shape> shape = BroadcastShapes(x_batch, y_batch);
    if (!shape.ok()) {
      return InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ",
                             xs.ToString(), " vs. ", ys.ToString());
    }
    const Shape batch = *shape;
    MatrixProduct<T> p{.transpose_a = adj_x_, .transpose_b = adj_y_};
    p.a_stride = xs.dim(xs.rank() - 1);
    p.b_stride = ys.dim(ys.rank() - 1);
    p.m = xs.dim(xs.rank() - (adj_x_ ? 1 : 2));
    p.k = xs.dim(xs.rank() - (adj_x_ ? 2 : 1));
    p.n = ys.dim(ys.rank() - (adj_y_ ? 2 : 1));
    p.c_stride = p.n;
    if (ys.dim(ys.rank() - (adj_y_ ? 1 : 2)) != p.k) {
      return InvalidArgument("Matrix size-incompatible: In[0]: ", xs.ToString(),
                             ", In[1]: ", ys.ToString());
    }
    shape->AddDim(p.m);
    shape->AddDim(p.n);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, *shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(Tensor x, Prepared<T>(c, c.input(0), adj_x_));
    WEFT_ASSIGN_OR_RETURN(Tensor y, Prepared<T>(c, c.input(1), adj_y_));
    p.a = x.data<T>();
    p.b = y.data<T>();
    p.c = out->data<T>();
    MultiplyAll(c, p, MakeBroadcastLoops<2>(batch, {&x_batch, &y_batch}));
    return absl::OkStatus();
  }

 private:
  void MultiplyAll(KernelContext& c, const MatrixProduct<T>& p,
                   const BroadcastLoops<2>& loops) const {
    const int64_t rows = loops.num_rows();
    const int64_t total = rows * loops.inner.size;
    const auto share = [&c](int64_t n, int64_t least,
                            absl::FunctionRef<void(int64_t, int64_t)> body) {
      c.ParallelFor(n, least, body);
    };
    if (total == 1) return Multiply<T>(p, {}, share);
    const auto run = [&](int64_t begin, int64_t end) {
      loops.ForEachRow(begin, end, [&](const std::array<int64_t, 2>& at, int64_t to) {
        for (int64_t i = 0; i < loops.inner.size; ++i) {
          MatrixProduct<T> one = p;
          one.a += (at[0] + i * loops.inner.stride[0]) * p.m * p.k;
          one.b += (at[1] + i * loops.inner.stride[1]) * p.k * p.n;
          one.c += (to + i) * p.m * p.n;
          Multiply(one);
        }
      });
    };
    if (rows > 1) {
      const int64_t work = p.m * p.n * std::max<int64_t>(1, p.k) * loops.inner.size;
      return c.ParallelFor(rows, std::max<int64_t>(1, (1 << 18) / work), run);
    }
    const int64_t work = p.m * p.n * std::max<int64_t>(1, p.k);
    c.ParallelFor(total, std::max<int64_t>(1, (1 << 18) / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        MatrixProduct<T> one = p;
        one.a += i * loops.inner.stride[0] * p.m * p.k;
        one.b += i * loops.inner.stride[1] * p.k * p.n;
        one.c += i * p.m * p.n;
        Multiply(one);
      }
    });
  }

  const Batches batches_;
  const bool adj_x_;
  const bool adj_y_;
};

Status ProductShape(ShapeContext& c, Batches batches) {
  WEFT_ASSIGN_OR_RETURN(PartialShape x, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(PartialShape y, c.WithRankAtLeast(1, 2));
  WEFT_ASSIGN_OR_RETURN(bool adj_x, c.Attr<bool>("adj_x"));
  WEFT_ASSIGN_OR_RETURN(bool adj_y, c.Attr<bool>("adj_y"));
  if (!x.known_rank() || !y.known_rank()) return absl::OkStatus();
  const int64_t inner_x = x.dim(x.rank() - (adj_x ? 2 : 1));
  const int64_t inner_y = y.dim(y.rank() - (adj_y ? 1 : 2));
  if (inner_x >= 0 && inner_y >= 0 && inner_x != inner_y) {
    return InvalidArgument("Dimensions must be equal, but are ", inner_x, " and ", inner_y,
                           " for the product of ", x.ToString(), " and ", y.ToString());
  }
  PartialShape x_batch = PartialShape::UnknownOfRank(0), y_batch = x_batch;
  for (int i = 0; i + 2 < x.rank(); ++i) x_batch.AddDim(x.dim(i));
  for (int i = 0; i + 2 < y.rank(); ++i) y_batch.AddDim(y.dim(i));
  StatusOr<PartialShape> out = batches == Batches::kEqual
                                   ? x_batch.MergeWith(y_batch)
                                   : shapes::BroadcastPartial(x_batch, y_batch);
  if (!out.ok()) return out.status();
  out->AddDim(x.dim(x.rank() - (adj_x ? 1 : 2)));
  out->AddDim(y.dim(y.rank() - (adj_y ? 2 : 1)));
  c.set_output(0, *out);
  return absl::OkStatus();
}

// The gradient of input i before batches are summed.
Endpoint FactorGradient(GradientContext& c, int i, bool adj_x, bool adj_y) {
  const Endpoint g = c.gradient();
  const auto product = [&](Endpoint a, Endpoint b, bool ta, bool tb) {
    AttrMap attrs = {{"adj_x", ta}, {"adj_y", tb}};
    if (c.node().op() == "BatchMatMulV3") attrs.emplace("Tout", TypeOf(c.input(i)));
    return Endpoint{c.builder().AddNode(c.node().op(), {a, b}, std::move(attrs)), 0};
  };
  if (i == 0)
    return adj_x ? product(c.input(1), g, adj_y, true) : product(g, c.input(1), false, !adj_y);
  return adj_y ? product(g, c.input(0), true, adj_x) : product(c.input(0), g, !adj_x, false);
}

Status BatchMatMulGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(bool adj_x, c.Attr<bool>("adj_x"));
  WEFT_ASSIGN_OR_RETURN(bool adj_y, c.Attr<bool>("adj_y"));
  const Endpoint x = FactorGradient(c, 0, adj_x, adj_y);
  const Endpoint y = FactorGradient(c, 1, adj_x, adj_y);
  if (c.node().op() == "BatchMatMul") {
    c.set_input(0, x);
    c.set_input(1, y);
    return absl::OkStatus();
  }
  const auto vector = [&](int32_t value) {
    return c.builder().Constant(Tensor::Vector<int32_t>({value}));
  };
  const auto batch_of = [&](Endpoint shape) {
    const Endpoint size = c.Op("Sub", {c.Op("Shape", {shape}), vector(2)});
    return c.Op("Slice", {shape, vector(0), size});
  };
  const Endpoint x_shape = c.Op("Shape", {c.input(0)});
  const Endpoint y_shape = c.Op("Shape", {c.input(1)});
  const Endpoint x_axes = c.Op("BroadcastGradientArgs", {batch_of(x_shape), batch_of(y_shape)});
  const Endpoint y_axes{x_axes.node, 1};
  c.set_input(0, c.Op("Reshape", {c.Op("Sum", {x, x_axes}), x_shape}));
  c.set_input(1, c.Op("Reshape", {c.Op("Sum", {y, y_axes}), y_shape}));
  return absl::OkStatus();
}

template <typename... Ts>
void AddKernels(OpSpec& spec, const char* attr, TypeList<Ts...>) {
  (spec.Kernel({.types = {{attr, {DTypeOf<Ts>}}}, .factory = MakeKernel<BatchMatMulKernel<Ts>>()}),
   ...);
}

void AddProduct(Catalogue& catalogue, const char* name, const char* doc, const char* types,
                Batches batches) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Input("y: T").Output("output: T").Attr(types);
  spec.Attr("adj_x: bool = false").Attr("adj_y: bool = false");
  spec.Attr("grad_x: bool = false").Attr("grad_y: bool = false");
  spec.Shape([batches](ShapeContext& c) { return ProductShape(c, batches); })
      .Gradient(BatchMatMulGradient);
  AddKernels(spec, "T", ProductTypes());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddProduct(catalogue, "BatchMatMul",
             "Products of the matrices in the last two dimensions, each maybe adjoint; the others "
             "must agree.",
             "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
             Batches::kEqual);
  AddProduct(catalogue, "BatchMatMulV2",
             "Products of the matrices in the last two dimensions, each maybe adjoint; the others "
             "broadcast.",
             "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, "
             "uint64, complex64, "
             "complex128}",
             Batches::kBroadcast);
  constexpr char kTypes[] =
      "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}";
  OpSpec v3("BatchMatMulV3");
  v3.Doc("Products as in BatchMatMulV2, of operands that may be narrower than the result.");
  v3.Input("x: Ta").Input("y: Tb").Output("output: Tout");
  v3.Attr(absl::StrCat("Ta: ", kTypes)).Attr(absl::StrCat("Tb: ", kTypes));
  v3.Attr("Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}");
  v3.Attr("adj_x: bool = false").Attr("adj_y: bool = false");
  v3.Attr("grad_x: bool = false").Attr("grad_y: bool = false");
  v3.Shape([](ShapeContext& c) {
      return ProductShape(c, Batches::kBroadcast);
    }).Gradient(BatchMatMulGradient);
  const auto add = [&]<typename T, typename... From>(TypeList<T>, TypeList<From...>) {
    const std::vector<DType> from = {DTypeOf<From>...};
    v3.Kernel({.types = {{"Ta", from}, {"Tb", from}, {"Tout", {DTypeOf<T>}}},
               .factory = MakeKernel<BatchMatMulKernel<T>>()});
  };
  const auto same = [&]<typename... Ts>(TypeList<Ts...>) {
    (add(TypeList<Ts>(), TypeList<Ts>()), ...);
  };
  same(TypeList<float, double, Half, int16_t, int32_t, int64_t, Complex64, Complex128>());
  add(TypeList<int32_t>(), TypeList<int8_t, uint8_t>());
  add(TypeList<Bfloat16>(), TypeList<Bfloat16, int8_t, uint8_t>());
  catalogue.Add(std::move(v3));
}

}  // namespace weft::ops::math::batch_matmul
