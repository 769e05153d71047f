// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along the last dimension.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/nn/narrow_rows.h"
#include "weft/ops/nn/row_kernel.h"

namespace weft::ops::nn::softmax {
namespace {

constexpr int64_t kParallelElements = 8 << 10;

template <bool kLog>
class SoftmaxKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& logits = c.input(0);
    const Shape shape = logits.shape();
    if (shape.rank() < 1) {
      return InvalidArgument("logits must have >= 1 dimension, got ", shape.ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, shape));
    if (output->num_elements() == 0) return absl::OkStatus();
    const int64_t columns = shape.dim(shape.rank() - 1);
    const int64_t rows = shape.num_elements() / columns;
    VisitDType(output->dtype(), RealFloats(), [&]<typename T>() {
      const T* x = logits.data<T>();
      T* y = output->data<T>();
      c.ParallelFor(rows, std::max<int64_t>(1, kParallelElements / columns),
                    [&](int64_t begin, int64_t end) {
                      RunRows<T>(x + begin * columns, end - begin, columns, y + begin * columns);
                    });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void RunRows(const T* x, int64_t rows, int64_t columns, T* y) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      (kLog ? Rows<T>().log_softmax : Rows<T>().softmax)(x, rows, columns, y);
    } else {
      ForWidenedRows(x, rows, columns, y, [&](float* row) {
        (kLog ? FloatRows().log_softmax : FloatRows().softmax)(row, 1, columns, row);
      });
    }
  }
};

Status SoftmaxShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Endpoint SumLast(GradientContext& c, Endpoint x) {
  return c.Op("Sum", {x, c.builder().Constant(Tensor::Vector<int32_t>({-1}))},
              {{"keep_dims", true}});
}

// dx = (dy - sum(dy * y)) * y
Status SoftmaxGradient(GradientContext& c) {
  const Endpoint y = c.output(0);
  const Endpoint sum = SumLast(c, c.Op("Mul", {c.gradient(), y}));
  c.set_input(0, c.Op("Mul", {c.Op("Sub", {c.gradient(), sum}), y}));
  return absl::OkStatus();
}

// dx = dy - sum(dy) * exp(y)
Status LogSoftmaxGradient(GradientContext& c) {
  const Endpoint probability = c.Op("Exp", {c.output(0)});
  const Endpoint sum = SumLast(c, c.gradient());
  c.set_input(0, c.Op("Sub", {c.gradient(), c.Op("Mul", {sum, probability})}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Softmax")
                    .Doc("Computes exp(logits) / sum(exp(logits)) along the last dimension.\n"
                         "InvalidArgument for a scalar.")
                    .Input("logits: T")
                    .Output("softmax: T")
                    .Attr("T: {half, bfloat16, float, double}")
                    .Shape(SoftmaxShape)
                    .Gradient(SoftmaxGradient)
                    .Kernel(MakeKernel<SoftmaxKernel<false>>()));
  catalogue.Add(OpSpec("LogSoftmax")
                    .Doc("Computes logits - log(sum(exp(logits))) along the last dimension.\n"
                         "InvalidArgument for a scalar.")
                    .Input("logits: T")
                    .Output("logsoftmax: T")
                    .Attr("T: {half, bfloat16, float, double}")
                    .Shape(SoftmaxShape)
                    .Gradient(LogSoftmaxGradient)
                    .Kernel(MakeKernel<SoftmaxKernel<true>>()));
}

}  // namespace weft::ops::nn::softmax
