// SPDX-License-Identifier: Apache-2.0
// Running sums and products along one axis.
#include <cmath>
#include <limits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/math/functors.h"

namespace weft::ops::math::scan {
namespace {

struct Sum {
  template <typename A>
  static A Start() {
    return A(0);
  }
  template <typename A>
  static A Join(A a, A b) {
    return AddOf::Apply<A>(a, b);
  }
};
struct Product {
  template <typename A>
  static A Start() {
    return A(1);
  }
  template <typename A>
  static A Join(A a, A b) {
    return MulOf::Apply<A>(a, b);
  }
};
// log(exp(a) + exp(b)) without overflow.
struct LogSumExp {
  template <typename A>
  static A Start() {
    return -std::numeric_limits<A>::infinity();
  }
  template <typename A>
  static A Join(A a, A b) {
    if (a == b && std::isinf(a)) return a;
    const A high = a < b ? b : a;
    const A low = a < b ? a : b;
    return high + std::log1p(std::exp(low - high));
  }
};

template <typename Op, typename T>
void Scan(const T* in, T* out, int64_t size, int64_t inner, bool exclusive, bool reverse) {
  using A = Wide<T>;
  for (int64_t i = 0; i < inner; ++i) {
    A total = Op::template Start<A>();
    for (int64_t j = 0; j < size; ++j) {
      const int64_t at = (reverse ? size - 1 - j : j) * inner + i;
      const A x = static_cast<A>(in[at]);
      if (exclusive) out[at] = static_cast<T>(total);
      total = Op::template Join<A>(total, x);
      if (!exclusive) out[at] = static_cast<T>(total);
    }
  }
}

StatusOr<int> AxisOf(const Tensor& axis, int rank) {
  if (axis.rank() != 0) {
    return InvalidArgument("ScanOp: axis must be a scalar, not ", axis.shape().ToString());
  }
  const int64_t value =
      axis.dtype() == DType::kInt32 ? axis.scalar<int32_t>() : axis.scalar<int64_t>();
  if (value < -rank || value >= rank) {
    return InvalidArgument("ScanOp: Expected scan axis in the range [", -rank, ", ", rank,
                           "), but got ", value);
  }
  return static_cast<int>(value < 0 ? value + rank : value);
}

template <typename Op, typename... Ts>
class ScanKernel final : public OpKernel {
 public:
  explicit ScanKernel(KernelConstruction& k)
      : exclusive_(k.AttrOr<bool>("exclusive", false)),
        reverse_(k.AttrOr<bool>("reverse", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(int axis, AxisOf(c.input(1), in.rank()));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    if (in.num_elements() == 0) return absl::OkStatus();
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < in.rank(); ++i) {
      if (i < axis) outer *= in.dim(i);
      if (i > axis) inner *= in.dim(i);
    }
    const int64_t size = in.dim(axis);
    VisitDType(in.dtype(), TypeList<Ts...>(), [&]<typename T>() {
      c.ParallelFor(outer, std::max<int64_t>(1, 8192 / (size * inner)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t o = begin; o < end; ++o) {
                        const int64_t at = o * size * inner;
                        Scan<Op, T>(in.data<T>() + at, out->data<T>() + at, size, inner, exclusive_,
                                    reverse_);
                      }
                    });
    });
    return absl::OkStatus();
  }

 private:
  const bool exclusive_;
  const bool reverse_;
};

struct Options {
  bool exclusive;
  bool reverse;
};
StatusOr<Options> OptionsOf(GradientContext& c) {
  Options options;
  WEFT_ASSIGN_OR_RETURN(options.exclusive, c.Attr<bool>("exclusive"));
  WEFT_ASSIGN_OR_RETURN(options.reverse, c.Attr<bool>("reverse"));
  return options;
}
Endpoint Running(GradientContext& c, const char* op, Endpoint x, bool exclusive, bool reverse) {
  return c.Op(op, {x, c.input(1)}, {{"exclusive", exclusive}, {"reverse", reverse}});
}

Status ScanShape(ShapeContext& c) {
  if (c.constant(1) != nullptr && c.input(0).known_rank()) {
    WEFT_RETURN_IF_ERROR(AxisOf(*c.constant(1), c.input(0).rank()).status());
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

Status CumsumGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(Options o, OptionsOf(c));
  c.set_input(0, Running(c, "Cumsum", c.gradient(), o.exclusive, !o.reverse));
  return absl::OkStatus();
}
Status CumprodGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(Options o, OptionsOf(c));
  const Endpoint weighted = c.Op("Mul", {c.output(0), c.gradient()});
  const Endpoint sum = Running(c, "Cumsum", weighted, o.exclusive, !o.reverse);
  c.set_input(0, c.Op("DivNoNan", {sum, c.input(0)}));
  return absl::OkStatus();
}
// The positive and the negative part of the gradient apart, each as a logarithm.
Status LogSumExpGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(Options o, OptionsOf(c));
  const DType dtype = TypeOf(c.gradient());
  const Endpoint zero = ScalarOf(c, dtype, 0);
  const double lowest = dtype == DType::kHalf       ? -65504
                        : dtype == DType::kBfloat16 ? -3.3895314e38
                        : dtype == DType::kFloat    ? std::numeric_limits<float>::lowest()
                                                    : std::numeric_limits<double>::lowest();
  const Endpoint least = ScalarOf(c, dtype, lowest);
  const auto part = [&](Endpoint gradient) {
    const Endpoint log =
        c.Op("SelectV2", {c.Op("Greater", {gradient, zero}), c.Op("Log", {gradient}), least});
    const Endpoint scaled = c.Op("Sub", {log, c.output(0)});
    const Endpoint sum = Running(c, "CumulativeLogsumexp", scaled, o.exclusive, !o.reverse);
    return c.Op("Exp", {c.Op("AddV2", {sum, c.input(0)})});
  };
  c.set_input(0, c.Op("Sub", {part(c.gradient()), part(c.Op("Neg", {c.gradient()}))}));
  return absl::OkStatus();
}

template <typename Op, typename... Ts>
void AddScan(Catalogue& catalogue, const char* name, const char* doc, const char* types,
             GradientFunction gradient, TypeList<Ts...> list) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Input("axis: Tidx").HostInput("axis").Output("out: T");
  spec.Attr("exclusive: bool = false").Attr("reverse: bool = false").Attr(types);
  spec.Attr("Tidx: {int32, int64} = DT_INT32").Shape(ScanShape).Gradient(std::move(gradient));
  spec.Kernel({.types = {{"T", DTypesOf(list)}}, .factory = MakeKernel<ScanKernel<Op, Ts...>>()});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddScan<Sum>(
      catalogue, "Cumsum",
      "Running sums along an axis; exclusive leaves out the element itself, reverse starts at the "
      "end.",
      "T: numbertype", CumsumGradient, Numbers());
  AddScan<Product>(
      catalogue, "Cumprod",
      "Running products along an axis; exclusive leaves out the element itself, reverse starts "
      "at the end.",
      "T: numbertype", CumprodGradient, Numbers());
  AddScan<LogSumExp>(
      catalogue, "CumulativeLogsumexp",
      "Running log(sum(exp(x))) along an axis; exclusive leaves out the element itself, "
      "reverse starts at the end.",
      "T: {bfloat16, half, float, double}", LogSumExpGradient, RealFloats());
}

}  // namespace weft::ops::math::scan
