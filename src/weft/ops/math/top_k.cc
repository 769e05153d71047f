// SPDX-License-Identifier: Apache-2.0
// The largest elements of each row, and whether a target is among them.
#include <algorithm>
#include <cmath>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/math/functors.h"
#include "weft/ops/math/ranking.h"
#include "weft/ops/math/row_gradient_kernel.h"

namespace weft::ops::math::top_k {
namespace {

int64_t IntegerOf(const Tensor& scalar) {
  int64_t value = 0;
  VisitDType(scalar.dtype(), TypeList<int16_t, int32_t, int64_t>(),
             [&]<typename T>() { value = scalar.scalar<T>(); });
  return value;
}

// A strict order with NaN after all numbers.
template <typename T>
bool Greater(T x, T y) {
  const Wide<T> a = x, b = y;
  if constexpr (!kIsInteger<T>) {
    if (b != b) return a == a;
  }
  return a > b;
}

template <typename T, typename I>
void TopOfRow(const T* row, int64_t columns, int64_t k, Ranking& ranking, T* values, I* indices) {
  if (k == 1) {
    int64_t best = 0;
    for (int64_t i = 1; i < columns; ++i) {
      if (Greater<T>(row[i], row[best])) best = i;
    }
    values[0] = row[best];
    indices[0] = static_cast<I>(best);
    return;
  }
  ranking.First(
      columns, k, [row](int64_t i) { return DescendingKey(row[i]); },
      [&](int64_t i, int64_t index) {
        values[i] = row[index];
        indices[i] = static_cast<I>(index);
      });
}

// k is an input of TopKV2, an attribute of TopK.
class TopKKernel final : public OpKernel {
 public:
  explicit TopKKernel(KernelConstruction& k) : k_(k.AttrOr<int64_t>("k", -1)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    int64_t k = k_;
    if (c.num_inputs() == 2) {
      if (c.input(1).rank() != 0) {
        return InvalidArgument("k must be scalar, got shape ", c.input(1).shape().ToString());
      }
      k = IntegerOf(c.input(1));
    }
    if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
    if (in.rank() < 1)
      return InvalidArgument("input must be >= 1-D, got shape ", in.shape().ToString());
    const int64_t columns = in.dim(in.rank() - 1);
    if (columns < k) {
      return InvalidArgument("input must have at least k columns. Had ", columns, ", needed ", k);
    }
    Shape shape = in.shape();
    shape.SetDim(in.rank() - 1, k);
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(1, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    VisitDType(in.dtype(), RealNumbers(), [&]<typename T>() {
      VisitDType(indices->dtype(), TypeList<int32_t, int64_t, int16_t>(), [&]<typename I>() {
        c.ParallelFor(in.num_elements() / columns, std::max<int64_t>(1, 4096 / columns),
                      [&](int64_t begin, int64_t end) {
                        Ranking ranking;
                        for (int64_t r = begin; r < end; ++r) {
                          TopOfRow<T, I>(in.data<T>() + r * columns, columns, k, ranking,
                                         values->data<T>() + r * k, indices->data<I>() + r * k);
                        }
                      });
      });
    });
    return absl::OkStatus();
  }

 private:
  const int64_t k_;
};

// A target is among the best k if fewer than k predictions beat it; never if it is out of range or
// a prediction is not finite.
template <typename T>
class InTopKKernel final : public OpKernel {
 public:
  explicit InTopKKernel(KernelConstruction& k) : k_(k.AttrOr<int64_t>("k", 0)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& predictions = c.input(0);
    const Tensor& targets = c.input(1);
    if (predictions.rank() != 2) return InvalidArgument("predictions must be 2-dimensional");
    if (targets.rank() != 1) return InvalidArgument("targets must be 1-dimensional");
    if (predictions.dim(0) != targets.dim(0)) {
      return InvalidArgument("First dimension of predictions ", predictions.dim(0),
                             " must match length of targets ", targets.dim(0));
    }
    int64_t k = k_;
    if (c.num_inputs() == 3) {
      if (c.input(2).rank() != 0) {
        return InvalidArgument("k must be 0-D, got shape ", c.input(2).shape().ToString());
      }
      k = IntegerOf(c.input(2));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, targets.shape()));
    const int64_t columns = predictions.dim(1);
    for (int64_t r = 0; r < targets.num_elements(); ++r) {
      out->data<bool>()[r] =
          IsAmongBest(predictions.data<float>() + r * columns, columns, targets.data<T>()[r], k);
    }
    return absl::OkStatus();
  }

 private:
  static bool IsAmongBest(const float* row, int64_t columns, int64_t target, int64_t k) {
    if (target < 0 || target >= columns || !std::isfinite(row[target])) return false;
    int64_t better = 0;
    for (int64_t i = 0; i < columns; ++i) {
      if (!std::isfinite(row[i])) return false;
      if (row[i] > row[target] && ++better > k) break;
    }
    return better < k;
  }
  const int64_t k_;
};

class NthElementKernel final : public OpKernel {
 public:
  explicit NthElementKernel(KernelConstruction& k) : reverse_(k.AttrOr<bool>("reverse", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (c.input(1).rank() != 0)
      return InvalidArgument("N must be scalar but has rank ", c.input(1).rank());
    int64_t n = c.input(1).scalar<int32_t>();
    if (n < 0) return InvalidArgument("n must be non-negative but is ", n);
    if (in.rank() < 1)
      return InvalidArgument("Input must be at least rank 1 but is rank ", in.rank());
    const int64_t columns = in.dim(in.rank() - 1);
    if (columns <= n) return InvalidArgument("Input must have last dimension > n = ", n);
    if (reverse_) n = columns - 1 - n;
    Shape shape = in.shape();
    shape.RemoveDim(in.rank() - 1);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();  // the columns may be any number
    VisitDType(in.dtype(), RealNumbers(), [&]<typename T>() {
      std::vector<T> row(columns);
      for (int64_t r = 0; r < out->num_elements(); ++r) {
        std::copy_n(in.data<T>() + r * columns, columns, row.begin());
        std::nth_element(row.begin(), row.begin() + n, row.end(),
                         [](T x, T y) { return Greater<T>(y, x); });
        out->data<T>()[r] = row[n];
      }
    });
    return absl::OkStatus();
  }

 private:
  const bool reverse_;
};

Status TopKShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 1));
  if (!in.known_rank()) return absl::OkStatus();
  int64_t k = FindAttrOr<int64_t>(c.attrs(), "k", -1);
  if (c.num_inputs() == 2 && c.constant(1) != nullptr) k = IntegerOf(*c.constant(1));
  const int64_t columns = in.dim(in.rank() - 1);
  if (k >= 0 && columns >= 0 && columns < k) {
    return InvalidArgument("input must have last dimension >= k = ", k, " but is ", columns);
  }
  in.SetDim(in.rank() - 1, k);
  c.set_output(0, in);
  c.set_output(1, in);
  return absl::OkStatus();
}
Status TargetsShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEFT_ASSIGN_OR_RETURN(PartialShape targets, c.WithRank(1, 1));
  c.set_output(0, targets);
  return absl::OkStatus();
}
Status NthElementShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 1));
  if (!in.known_rank()) return absl::OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(0);
  for (int i = 0; i + 1 < in.rank(); ++i) out.AddDim(in.dim(i));
  c.set_output(0, out);
  return absl::OkStatus();
}

// The values' gradients go back to where they were taken from.
Status TopKGradient(GradientContext& c) {
  c.set_input(0, ScatterInRows(c, c.gradient(), c.output(1), c.Op("Shape", {c.input(0)})));
  return absl::OkStatus();
}
Status NthElementGradient(GradientContext& c) {
  const Endpoint last = c.builder().Scalar<int32_t>(-1);
  const Endpoint value = c.Op("ExpandDims", {c.output(0), last});
  const Endpoint gradient = c.Op("ExpandDims", {c.gradient(), last});
  const Endpoint winners =
      c.Op("Cast", {c.Op("Equal", {value, c.input(0)})}, {{"DstT", TypeOf(c.gradient())}});
  const Endpoint count = c.Op("ExpandDims", {c.Op("Sum", {winners, last}), last});
  c.set_input(0, c.Op("Mul", {c.Op("RealDiv", {winners, count}), gradient}));
  return absl::OkStatus();
}

void RegisterTopK(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("TopKV2")
          .Doc("The k largest elements of each row (last dimension) and where they are; of equals "
               "the first.")
          .Input("input: T")
          .Input("k: Tk")
          .HostInput("k")
          .Output("values: T")
          .Output("indices: index_type")
          .Attr("sorted: bool = true")
          .Attr("T: realnumbertype")
          .Attr("Tk: {int16, int32, int64} = DT_INT32")
          .Attr("index_type: {int16, int32, int64} = DT_INT32")
          .Shape(TopKShape)
          .Gradient(TopKGradient)
          .Kernel(MakeKernel<TopKKernel>()));
  catalogue.Add(OpSpec("TopK")
                    .Doc("TopKV2 with k as an attribute.")
                    .Input("input: T")
                    .Output("values: T")
                    .Output("indices: int32")
                    .Attr("k: int >= 0")
                    .Attr("sorted: bool = true")
                    .Attr("T: realnumbertype")
                    .Deprecated(7, "Use TopKV2 instead")
                    .Shape(TopKShape)
                    .Gradient(TopKGradient)
                    .Kernel(MakeKernel<TopKKernel>()));
  catalogue.Add(OpSpec("NthElement")
                    .Doc("The n-th smallest element of each row; with reverse the n-th largest.")
                    .Input("input: T")
                    .Input("n: int32")
                    .Output("values: T")
                    .Attr("reverse: bool = false")
                    .Attr("T: realnumbertype")
                    .Shape(NthElementShape)
                    .Gradient(NthElementGradient)
                    .Kernel(MakeKernel<NthElementKernel>()));
}

OpSpec InTopK(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Input("predictions: float").Input("targets: T").Output("precision: bool");
  spec.Shape(TargetsShape).NoGradient();
  spec.Kernel({.types = {{"T", {DType::kInt32}}}, .factory = MakeKernel<InTopKKernel<int32_t>>()});
  spec.Kernel({.types = {{"T", {DType::kInt64}}}, .factory = MakeKernel<InTopKKernel<int64_t>>()});
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterTopK(catalogue);
  catalogue.Add(InTopK("InTopK", "Whether the target of each row is among its k best predictions.")
                    .Attr("k: int")
                    .Attr("T: {int32, int64} = DT_INT32"));
  catalogue.Add(
      InTopK("InTopKV2", "Whether the target of each row is among its k best predictions.")
          .Input("k: T")
          .HostInput("k")
          .Attr("T: {int32, int64} = DT_INT32"));
}

}  // namespace weft::ops::math::top_k
