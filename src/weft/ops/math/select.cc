// SPDX-License-Identifier: Apache-2.0
// Elements of one tensor or of another, by a condition.
#include <cstring>
#include <type_traits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/broadcast.h"
#include "weft/ops/gradients.h"
#include "weft/tensor/resource_handle.h"

namespace weft::ops::math::select {
namespace {

// Elements are copied, so only their size matters.
struct Sixteen {
  uint64_t halves[2];
};
template <typename Body>
void VisitSize(DType dtype, Body&& body) {
  if (dtype == DType::kString) return body.template operator()<std::string>();
  if (dtype == DType::kResource) return body.template operator()<ResourceHandle>();
  if (dtype == DType::kVariant) return body.template operator()<Variant>();
  switch (DTypeSize(dtype)) {
    case 1:
      return body.template operator()<uint8_t>();
    case 2:
      return body.template operator()<uint16_t>();
    case 4:
      return body.template operator()<uint32_t>();
    case 8:
      return body.template operator()<uint64_t>();
    default:
      return body.template operator()<Sixteen>();
  }
}

// Both are read and blended by bits, so that no branch depends on the data.
template <typename T>
T Blend(uint8_t condition, T t, T e) {
  const T mask = static_cast<T>(-static_cast<T>(condition));
  return static_cast<T>((t & mask) | (e & ~mask));
}

template <typename T>
void Choose(const bool* condition, int64_t c_step, const T* t, int64_t t_step, const T* e,
            int64_t e_step, T* out, int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    const auto* chosen = reinterpret_cast<const uint8_t*>(condition);
    if (c_step == 1 && t_step == 1 && e_step == 1) {
      for (int64_t i = 0; i < n; ++i) out[i] = Blend(chosen[i], t[i], e[i]);
      return;
    }
    if (c_step == 1 && t_step == 1 && e_step == 0) {
      const T other = *e;
      for (int64_t i = 0; i < n; ++i) out[i] = Blend(chosen[i], t[i], other);
      return;
    }
    if (c_step == 1 && t_step == 0 && e_step == 1) {
      const T other = *t;
      for (int64_t i = 0; i < n; ++i) out[i] = Blend(chosen[i], other, e[i]);
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) out[i] = condition[i * c_step] ? t[i * t_step] : e[i * e_step];
}

constexpr int64_t kGrain = 32768;

class SelectV2Kernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& condition = c.input(0);
    const Tensor& t = c.input(1);
    const Tensor& e = c.input(2);
    StatusOr<Shape> shape = BroadcastShapes(t.shape(), e.shape());
    if (shape.ok()) shape = BroadcastShapes(*shape, condition.shape());
    if (!shape.ok()) {
      return InvalidArgument("condition ", condition.shape().ToString(), ", then ",
                             t.shape().ToString(), ", and else ", e.shape().ToString(),
                             " must be broadcastable");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, *shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const auto loops = MakeBroadcastLoops<3>(*shape, {&condition.shape(), &t.shape(), &e.shape()});
    const auto& steps = loops.inner.stride;
    const int64_t n = loops.inner.size;
    VisitSize(out->dtype(), [&]<typename T>() {
      c.ParallelFor(
          loops.num_rows(), std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
            loops.ForEachRow(begin, end, [&](const std::array<int64_t, 3>& at, int64_t to) {
              Choose<T>(condition.data<bool>() + at[0], steps[0], t.bits<T>() + at[1], steps[1],
                        e.bits<T>() + at[2], steps[2], out->bits<T>() + to, n);
            });
          });
    });
    return absl::OkStatus();
  }
};

// The condition has the shape of both, or is a scalar, or picks rows.
class SelectKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& condition = c.input(0);
    const Tensor& t = c.input(1);
    const Tensor& e = c.input(2);
    if (condition.rank() == 0) {
      WEFT_RETURN_IF_ERROR(CheckSame(c, 1, 2));
      c.SetOutput(0, condition.scalar<bool>() ? t : e);
      return absl::OkStatus();
    }
    int64_t row = 1;
    if (condition.rank() == 1 && !(condition.shape() == t.shape())) {
      if (t.rank() < 1) {
        return InvalidArgument("'then' must be at least a vector, but saw shape: ",
                               t.shape().ToString());
      }
      if (t.dim(0) != condition.dim(0)) {
        return InvalidArgument("Number of batches of 'then' must match size of 'cond', but saw: ",
                               t.dim(0), " vs. ", condition.dim(0));
      }
      row = t.dim(0) == 0 ? 0 : t.num_elements() / t.dim(0);
    } else {
      WEFT_RETURN_IF_ERROR(CheckSame(c, 0, 1));
    }
    WEFT_RETURN_IF_ERROR(CheckSame(c, 1, 2));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, t.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    VisitSize(out->dtype(), [&]<typename T>() {
      if (row == 1) {
        c.ParallelFor(out->num_elements(), kGrain, [&](int64_t begin, int64_t end) {
          Choose<T>(condition.data<bool>() + begin, 1, t.bits<T>() + begin, 1, e.bits<T>() + begin,
                    1, out->bits<T>() + begin, end - begin);
        });
        return;
      }
      for (int64_t i = 0; i < condition.num_elements(); ++i) {
        std::copy_n((condition.data<bool>()[i] ? t : e).bits<T>() + i * row, row,
                    out->bits<T>() + i * row);
      }
    });
    return absl::OkStatus();
  }

 private:
  static Status CheckSame(KernelContext& c, int i, int j) {
    if (c.input(i).shape() == c.input(j).shape()) return absl::OkStatus();
    return InvalidArgument("Inputs to operation ", c.name(),
                           " of type Select must have the same size and "
                           "shape.  Input ",
                           i, ": ", c.input(i).shape().ToString(), " != input ", j, ": ",
                           c.input(j).shape().ToString());
  }
};

Status SelectShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape both, c.input(1).MergeWith(c.input(2)));
  const PartialShape& condition = c.input(0);
  if (condition.known_rank() && both.known_rank() && condition.rank() != 0) {
    if (condition.rank() == 1 && both.rank() >= 1) {
      const int64_t x = condition.dim(0), y = both.dim(0);
      if (x >= 0 && y >= 0 && x != y) {
        return InvalidArgument("Dimensions must be equal, but are ", x, " and ", y,
                               " for a condition that picks rows");
      }
    } else {
      WEFT_ASSIGN_OR_RETURN(both, both.MergeWith(condition));
    }
  }
  c.set_output(0, both);
  return absl::OkStatus();
}
Status SelectV2Shape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape both, shapes::BroadcastPartial(c.input(1), c.input(2)));
  WEFT_ASSIGN_OR_RETURN(PartialShape all, shapes::BroadcastPartial(both, c.input(0)));
  c.set_output(0, all);
  return absl::OkStatus();
}

Status SelectGradient(GradientContext& c) {
  const Endpoint zeros = c.Op("ZerosLike", {c.input(1)});
  c.set_input(1, c.Op("Select", {c.input(0), c.gradient(), zeros}));
  c.set_input(2, c.Op("Select", {c.input(0), zeros, c.gradient()}));
  return absl::OkStatus();
}
// Summed over the axes in which the operand was repeated.
Status SelectV2Gradient(GradientContext& c) {
  const Endpoint zero = ScalarOf(c, TypeOf(c.gradient()), 0);
  const Endpoint out_shape = c.Op("Shape", {c.output(0)});
  for (const int i : {1, 2}) {
    const Endpoint shape = c.Op("Shape", {c.input(i)});
    const Endpoint axes = c.Op("BroadcastGradientArgs", {shape, out_shape});
    const Endpoint chosen = i == 1 ? c.Op("SelectV2", {c.input(0), c.gradient(), zero})
                                   : c.Op("SelectV2", {c.input(0), zero, c.gradient()});
    c.set_input(i, c.Op("Reshape", {c.Op("Sum", {chosen, axes}), shape}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Select")
          .Doc("Elements of t where the condition is true, of e elsewhere. The condition has their "
               "shape, or is a scalar, or a vector that picks rows.")
          .Input("condition: bool")
          .Input("t: T")
          .Input("e: T")
          .Output("output: T")
          .Attr("T: type")
          .Shape(SelectShape)
          .Gradient(SelectGradient)
          .Kernel(MakeKernel<SelectKernel>()));
  catalogue.Add(
      OpSpec("SelectV2")
          .Doc("Elements of t where the condition is true, of e elsewhere. All three broadcast.")
          .Input("condition: bool")
          .Input("t: T")
          .Input("e: T")
          .Output("output: T")
          .Attr("T: type")
          .Shape(SelectV2Shape)
          .Gradient(SelectV2Gradient)
          .Kernel(MakeKernel<SelectV2Kernel>()));
}

}  // namespace weft::ops::math::select
