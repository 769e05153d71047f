// SPDX-License-Identifier: Apache-2.0
// Where along one axis the largest or smallest element lies.
#include "weft/kernel/op_spec.h"
#include "weft/ops/math/functors.h"

namespace weft::ops::math::arg_max {
namespace {

using Ordered = TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t, int16_t,
                         uint16_t, uint32_t, uint64_t, bool>;

StatusOr<int> AxisOf(const Tensor& dimension, int rank) {
  if (dimension.num_elements() != 1 || dimension.rank() != 0) {
    return InvalidArgument("dim must be a scalar, but received tensor of shape: ",
                           dimension.shape().ToString());
  }
  int64_t axis = 0;
  VisitDType(dimension.dtype(), TypeList<int16_t, int32_t, int64_t>(),
             [&]<typename T>() { axis = dimension.scalar<T>(); });
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Expected dimension in the range [", -rank, ", ", rank, "), but got ",
                           axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Wins over what came before it: strictly, so that the first of equals stays, and NaN never wins.
template <bool largest, typename T>
bool Wins(T x, T best) {
  return largest ? static_cast<Wide<T>>(x) > static_cast<Wide<T>>(best)
                 : static_cast<Wide<T>>(x) < static_cast<Wide<T>>(best);
}

// A row: eight elements in turn, so that no comparison waits for the one before.
template <bool largest, typename T>
int64_t ScanRow(const T* in, int64_t size) {
  constexpr int64_t kLanes = 8;
  int64_t best = -1;
  T value = T();
  const auto take = [&](T x, int64_t at) {
    if constexpr (!std::is_same_v<T, bool>) {
      if (x != x) return;
    }
    if (best < 0 || Wins<largest>(x, value)) {
      best = at;
      value = x;
    }
  };
  int64_t j = 0;
  while (j < size && best < 0) {
    take(in[j], j);
    ++j;
  }
  for (; j + kLanes <= size; j += kLanes) {
    bool any = false;
    for (int64_t k = 0; k < kLanes; ++k) any |= Wins<largest>(in[j + k], value);
    if (!any) continue;
    for (int64_t k = 0; k < kLanes; ++k) take(in[j + k], j + k);
  }
  for (; j < size; ++j) take(in[j], j);
  return best < 0 ? 0 : best;
}

template <bool largest, typename T, typename I>
void Scan(const T* in, int64_t outer, int64_t size, int64_t inner, I* out) {
  for (int64_t o = 0; o < outer; ++o, in += size * inner) {
    if (inner == 1) {
      out[o] = static_cast<I>(ScanRow<largest>(in, size));
      continue;
    }
    for (int64_t i = 0; i < inner; ++i) {
      int64_t best = -1;
      T value = T();
      for (int64_t j = 0; j < size; ++j) {
        const T x = in[j * inner + i];
        if constexpr (!std::is_same_v<T, bool>) {
          if (x != x) continue;
        }
        if (best < 0 || Wins<largest>(x, value)) {
          best = j;
          value = x;
        }
      }
      out[o * inner + i] = static_cast<I>(best < 0 ? 0 : best);
    }
  }
}

template <bool largest>
class ArgKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(int axis, AxisOf(c.input(1), in.rank()));
    if (in.dim(axis) == 0) {
      return InvalidArgument("Reduction axis ", axis, " is empty in shape ", in.shape().ToString());
    }
    Shape shape = in.shape();
    shape.RemoveDim(axis);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < in.rank(); ++i) {
      if (i < axis) outer *= in.dim(i);
      if (i > axis) inner *= in.dim(i);
    }
    const int64_t size = in.dim(axis);
    VisitDType(in.dtype(), Ordered(), [&]<typename T>() {
      VisitDType(out->dtype(), TypeList<int64_t, int32_t, int16_t, uint16_t>(), [&]<typename I>() {
        c.ParallelFor(outer, std::max<int64_t>(1, 16384 / (size * std::max<int64_t>(1, inner))),
                      [&](int64_t begin, int64_t end) {
                        Scan<largest>(in.data<T>() + begin * size * inner, end - begin, size, inner,
                                      out->data<I>() + begin * inner);
                      });
      });
    });
    return absl::OkStatus();
  }
};

Status ArgShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  const Tensor* dimension = c.constant(1);
  if (!in.known_rank() || in.rank() == 0) return absl::OkStatus();
  if (dimension == nullptr) {
    c.set_output(0, PartialShape::UnknownOfRank(in.rank() - 1));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(int axis, AxisOf(*dimension, in.rank()));
  PartialShape out = PartialShape::UnknownOfRank(0);
  for (int i = 0; i < in.rank(); ++i) {
    if (i != axis) out.AddDim(in.dim(i));
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

template <bool largest>
OpSpec Arg(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("input: T")
      .Input("dimension: Tidx")
      .HostInput("dimension")
      .Output("output: output_type");
  spec.Attr(
      "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
      "uint64, qint8, "
      "quint8, qint32, qint16, quint16, bool}");
  spec.Shape(ArgShape).NoGradient();
  spec.Kernel({.types = {{"T", DTypesOf(Ordered())}}, .factory = MakeKernel<ArgKernel<largest>>()});
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      Arg<true>("ArgMax", "The index of the largest element along an axis; the first of equals.")
          .Attr("Tidx: {int16, int32, int64} = DT_INT32")
          .Attr("output_type: {int16, uint16, int32, int64} = DT_INT64"));
  catalogue.Add(
      Arg<false>("ArgMin", "The index of the smallest element along an axis; the first of equals.")
          .Attr("Tidx: {int32, int64} = DT_INT32")
          .Attr("output_type: {int32, int64} = DT_INT64"));
}

}  // namespace weft::ops::math::arg_max
