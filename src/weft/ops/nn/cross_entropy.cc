// SPDX-License-Identifier: Apache-2.0
// The losses of classifiers: cross entropy of softmax(logits) with distributions or with class
// numbers.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/nn/narrow_rows.h"
#include "weft/ops/nn/row_kernel.h"

namespace weft::ops::nn::cross_entropy {
namespace {

constexpr int64_t kParallelElements = 8 << 10;

template <typename T>
inline constexpr bool kHasRows = std::is_same_v<T, float> || std::is_same_v<T, double>;

// One row at a time in float.
template <typename T>
void NarrowRow(const T* x, const T* labels, int64_t columns, T* loss, T* backprop) {
  absl::InlinedVector<float, 256> wide(static_cast<size_t>(3 * columns));
  float* const logits = wide.data();
  float* const label = logits + columns;
  float* const result = label + columns;
  for (int64_t i = 0; i < columns; ++i) {
    logits[i] = static_cast<float>(x[i]);
    label[i] = static_cast<float>(labels[i]);
  }
  float total = 0;
  FloatRows().cross_entropy(logits, label, columns, 1, columns, &total, result);
  *loss = T(total);
  for (int64_t i = 0; i < columns; ++i) backprop[i] = T(result[i]);
}

template <typename T>
void DenseRows(const T* x, const T* labels, int64_t rows, int64_t columns, T* loss, T* backprop) {
  if constexpr (kHasRows<T>) {
    Rows<T>().cross_entropy(x, labels, columns, rows, columns, loss, backprop);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      NarrowRow(x + r * columns, labels + r * columns, columns, loss + r, backprop + r * columns);
    }
  }
}

// `input` in `shape`: itself, or a broadcast copy.
StatusOr<Tensor> BroadcastTo(const KernelContext& c, const Tensor& input, const Shape& shape) {
  if (input.shape() == shape) return input;
  WEFT_ASSIGN_OR_RETURN(Tensor wide, c.AllocateTemporary(input.dtype(), shape));
  const IndexVector strides = array::StridesOf(input.shape());
  array::StridedCopy copy;
  const int missing = shape.rank() - input.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeats = i < missing || input.dim(i - missing) == 1;
    copy.AddDim(shape.dim(i), repeats ? 0 : strides[i - missing], 0);
  }
  copy.MakeTargetDense();
  array::Copy(c, std::move(copy), input, &wide);
  return wide;
}

class SoftmaxCrossEntropyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const StatusOr<Shape> joined = BroadcastShapes(c.input(0).shape(), c.input(1).shape());
    if (!joined.ok()) {
      return InvalidArgument(
          "logits and labels must be broadcastable: logits_size=", c.input(0).shape().ToString(),
          " labels_size=", c.input(1).shape().ToString());
    }
    const Shape& shape = *joined;
    if (!shape.IsMatrix()) {
      return InvalidArgument(
          "logits and labels must be either 2-dimensional, or broadcasted to be "
          "2-dimensional");
    }
    WEFT_ASSIGN_OR_RETURN(const Tensor logits, BroadcastTo(c, c.input(0), shape));
    WEFT_ASSIGN_OR_RETURN(const Tensor labels, BroadcastTo(c, c.input(1), shape));
    const int64_t columns = shape.dim(1);
    WEFT_ASSIGN_OR_RETURN(Tensor * loss, c.AllocateOutput(0, Shape{shape.dim(0)}));
    WEFT_ASSIGN_OR_RETURN(Tensor * backprop, c.AllocateOutput(1, shape));
    if (columns == 0) {
      ClearElements(loss, 0, loss->num_elements());
      return absl::OkStatus();
    }
    VisitDType(logits.dtype(), RealFloats(), [&]<typename T>() {
      const T* x = logits.data<T>();
      const T* y = labels.data<T>();
      T* l = loss->data<T>();
      T* b = backprop->data<T>();
      c.ParallelFor(shape.dim(0), std::max<int64_t>(1, kParallelElements / columns),
                    [&](int64_t begin, int64_t end) {
                      const int64_t at = begin * columns;
                      DenseRows<T>(x + at, y + at, end - begin, columns, l + begin, b + at);
                    });
    });
    return absl::OkStatus();
  }
};

// Rows [begin, end): softmax into backprop, then 1 less at the label.
template <typename T, typename Label>
void SparseRows(const T* x, const Label* labels, int64_t begin, int64_t end, int64_t columns,
                T* loss, T* backprop) {
  const int64_t first = begin * columns;
  const int64_t rows = end - begin;
  // Log-probabilities first: the loss is one of them, and keeps its digits where softmax would
  // round to 0.
  if constexpr (kHasRows<T>) {
    Rows<T>().log_softmax(x + first, rows, columns, backprop + first);
    for (int64_t r = begin; r < end; ++r) loss[r] = -backprop[r * columns + labels[r]];
    Rows<T>().softmax(x + first, rows, columns, backprop + first);
    for (int64_t r = begin; r < end; ++r) backprop[r * columns + labels[r]] -= T(1);
  } else {
    if (rows == 0) return;
    absl::InlinedVector<float, 256> log(static_cast<size_t>(columns));
    int64_t r = begin;
    ForWidenedRows(x + first, rows, columns, backprop + first, [&](float* row) {
      FloatRows().log_softmax(row, 1, columns, log.data());
      FloatRows().softmax(row, 1, columns, row);
      loss[r] = T(-log[labels[r]]);
      row[labels[r]] -= 1.0f;
      ++r;
    });
  }
}

class SparseCrossEntropyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& logits = c.input(0);
    const Tensor& labels = c.input(1);
    WEFT_RETURN_IF_ERROR(Check(logits, labels));
    const Shape shape = logits.shape();
    WEFT_ASSIGN_OR_RETURN(Tensor * loss, c.AllocateOutput(0, labels.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * backprop, c.AllocateOutput(1, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t columns = shape.dim(1);
    VisitDType(logits.dtype(), RealFloats(), [&]<typename T>() {
      VisitDType(labels.dtype(), TypeList<int32_t, int64_t>(), [&]<typename Label>() {
        c.ParallelFor(shape.dim(0), std::max<int64_t>(1, kParallelElements / columns),
                      [&](int64_t begin, int64_t end) {
                        SparseRows(logits.data<T>(), labels.data<Label>(), begin, end, columns,
                                   loss->data<T>(), backprop->data<T>());
                      });
      });
    });
    return absl::OkStatus();
  }

 private:
  static Status Check(const Tensor& logits, const Tensor& labels) {
    if (!logits.shape().IsMatrix()) {
      return InvalidArgument("logits must be 2-D, but got shape ", logits.shape().ToString());
    }
    if (!labels.shape().IsVector()) {
      return InvalidArgument("labels must be 1-D, but got shape ", labels.shape().ToString());
    }
    if (logits.dim(0) != labels.dim(0)) {
      return InvalidArgument(
          "logits and labels must have the same first dimension, got logits shape ",
          logits.shape().ToString(), " and labels shape ", labels.shape().ToString());
    }
    if (logits.dim(1) <= 0) {
      return InvalidArgument("Must have at least one class, but got logits shape ",
                             logits.shape().ToString());
    }
    for (int64_t i = 0; i < labels.num_elements(); ++i) {
      const int64_t label = IndexAt(labels, i);
      if (label >= 0 && label < logits.dim(1)) continue;
      std::string all;
      for (int64_t j = 0; j < std::min<int64_t>(labels.num_elements(), 64); ++j) {
        absl::StrAppend(&all, " ", IndexAt(labels, j));
      }
      return InvalidArgument("Received a label value of ", label,
                             " which is outside the valid range of [0, ", logits.dim(1),
                             ").  Label values:", all);
    }
    return absl::OkStatus();
  }
};

Status DenseShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, shapes::BroadcastPartial(c.input(0), c.input(1)));
  if (shape.known_rank() && shape.rank() != 2) {
    return InvalidArgument("logits and labels must be 2-D together, got ", c.input(0).ToString(),
                           " and ", c.input(1).ToString());
  }
  c.set_output(0, PartialShape{shape.dim(0)});
  if (!shape.known_rank()) shape = PartialShape::UnknownOfRank(2);
  c.set_output(1, std::move(shape));
  return absl::OkStatus();
}

Status SparseShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape logits, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape labels, c.WithRank(1, 1));
  PartialShape batch{logits.dim(0)};
  WEFT_ASSIGN_OR_RETURN(batch, batch.MergeWith(labels));
  logits.SetDim(0, batch.dim(0));
  c.set_output(0, std::move(batch));
  c.set_output(1, std::move(logits));
  return absl::OkStatus();
}

// A loss's gradient [batch] times rows [batch, classes].
Endpoint TimesRows(GradientContext& c, Endpoint loss_gradient, Endpoint rows) {
  return c.Op("Mul", {c.Op("ExpandDims", {loss_gradient, c.builder().Scalar<int32_t>(-1)}), rows});
}

// What reaches the logits through the loss and, for second derivatives, through backprop.
Endpoint LogitsGradient(GradientContext& c) {
  Endpoint sum;
  if (c.gradient(0)) sum = TimesRows(c, c.gradient(0), c.output(1));
  if (!c.gradient(1)) return sum;
  const Endpoint softmax = c.Op("Softmax", {c.input(0)});
  const Endpoint weighted = c.Op("Mul", {c.gradient(1), softmax});
  const Endpoint total =
      c.Op("Sum", {weighted, c.builder().Constant(Tensor::Vector<int32_t>({-1}))},
           {{"keep_dims", true}});
  const Endpoint second = c.Op("Mul", {c.Op("Sub", {c.gradient(1), total}), softmax});
  return sum ? c.Op("AddV2", {sum, second}) : second;
}

Status DenseGradient(GradientContext& c) {
  c.set_input(0, LogitsGradient(c));
  if (c.gradient(0)) {
    const Endpoint log = c.Op("Neg", {c.Op("LogSoftmax", {c.input(0)})});
    c.set_input(1, TimesRows(c, c.gradient(0), log));
  }
  return absl::OkStatus();
}

Status SparseGradient(GradientContext& c) {
  c.set_input(0, LogitsGradient(c));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("SoftmaxCrossEntropyWithLogits")
          .Doc("Computes the cross entropy of softmax(features) with each row of `labels`.\n"
               "Both are [batch, classes] once broadcast. `loss` is [batch]; `backprop` is its "
               "gradient with regard to the features.")
          .Input("features: T")
          .Input("labels: T")
          .Output("loss: T")
          .Output("backprop: T")
          .Attr("T: {half, bfloat16, float, double}")
          .Shape(DenseShape)
          .Gradient(DenseGradient)
          .Kernel(MakeKernel<SoftmaxCrossEntropyKernel>()));
  catalogue.Add(
      OpSpec("SparseSoftmaxCrossEntropyWithLogits")
          .Doc("Computes the cross entropy of softmax(features) with one class number a row.\n"
               "Features are [batch, classes], labels [batch]; InvalidArgument for a label that is "
               "no class.")
          .Input("features: T")
          .Input("labels: Tlabels")
          .Output("loss: T")
          .Output("backprop: T")
          .Attr("T: {half, bfloat16, float, double}")
          .Attr("Tlabels: {int32, int64} = DT_INT64")
          .Shape(SparseShape)
          .Gradient(SparseGradient)
          .Kernel(MakeKernel<SparseCrossEntropyKernel>()));
}

}  // namespace weft::ops::nn::cross_entropy
