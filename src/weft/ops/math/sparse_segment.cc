// SPDX-License-Identifier: Apache-2.0
// Sums and means of rows picked by index, by segment: what lookups of several embeddings end in.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/gradients.h"

namespace weft::ops::math::sparse_segment {
namespace {

using Floats = TypeList<Bfloat16, Half, float, double>;
using Numbers = TypeList<float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, Bfloat16,
                         uint16_t, Half, uint32_t, uint64_t>;

enum class Combine { kSum, kMean, kSqrtN };

template <typename T>
using Total = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>, float, T>;

int64_t At(const Tensor& integers, int64_t i) {
  return integers.dtype() == DType::kInt32 ? integers.data<int32_t>()[i]
                                           : integers.data<int64_t>()[i];
}

double ScaleOf(Combine combine, int64_t count) {
  if (combine == Combine::kSum || count == 0) return 1;
  const auto n = static_cast<double>(count);
  return 1 / (combine == Combine::kMean ? n : std::sqrt(n));
}

// `data` with its first size replaced.
StatusOr<Shape> WithRows(const Tensor& data, int64_t rows) {
  Dims dims(data.shape().dims().begin(), data.shape().dims().end());
  dims[0] = rows;
  return Shape::Make(dims);
}

Status CheckVectors(const Tensor& data, const Tensor& indices, const Tensor& segments) {
  if (data.rank() < 1) return InvalidArgument("Shape must be at least rank 1");
  if (indices.rank() != 1) return InvalidArgument("indices should be a vector.");
  if (segments.rank() != 1) return InvalidArgument("segment_ids should be a vector.");
  if (indices.dim(0) == segments.dim(0)) return absl::OkStatus();
  return InvalidArgument("segment_ids and indices should have same size.");
}

template <typename T>
class ForwardKernel final : public OpKernel {
 public:
  explicit ForwardKernel(Combine combine) : combine_(combine) {}

  Status Compute(KernelContext& c) override {
    const Tensor &data = c.input(0), &indices = c.input(1), &ids = c.input(2);
    WEFT_RETURN_IF_ERROR(CheckVectors(data, indices, ids));
    const int64_t count = ids.dim(0);
    const int64_t last = count == 0 ? -1 : At(ids, count - 1);
    if (count > 0 && last < 0) return InvalidArgument("segment ids must be >= 0");
    int64_t segments = std::min(last, std::numeric_limits<int64_t>::max() - 1) + 1;
    if (c.num_inputs() > 3) {
      if (c.input(3).rank() != 0) {
        return InvalidArgument("num_segments should be a scalar, not shape ",
                               c.input(3).shape().ToString());
      }
      const int64_t wanted = At(c.input(3), 0);
      if (wanted < segments) return InvalidArgument("segment ids must be < num_segments");
      segments = wanted;
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, WithRows(data, segments));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = At(ids, i), index = At(indices, i);
      if (i > 0 && id < At(ids, i - 1)) return InvalidArgument("segment ids are not increasing");
      if (id < 0 || id >= segments) {
        return InvalidArgument("Segment id ", id, " out of range [0, ", segments,
                               "), possibly because 'segment_ids' input is not sorted.");
      }
      if (index < 0 || index >= data.dim(0)) {
        return InvalidArgument("Bad: indices[", i, "] == ", index, " out of range [0, ",
                               data.dim(0), ")");
      }
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() > 0) Add(data, indices, ids, out);
    return absl::OkStatus();
  }

 private:
  void Add(const Tensor& data, const Tensor& indices, const Tensor& ids, Tensor* out) const {
    const int64_t width = out->num_elements() / out->dim(0), count = ids.dim(0);
    std::fill_n(out->data<T>(), out->num_elements(), T());
    std::vector<Total<T>> total(static_cast<size_t>(width));
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
      std::fill(total.begin(), total.end(), Total<T>());
      for (; end < count && At(ids, end) == At(ids, begin); ++end) {
        const T* row = data.data<T>() + At(indices, end) * width;
        for (int64_t k = 0; k < width; ++k) total[k] += static_cast<Total<T>>(row[k]);
      }
      T* to = out->data<T>() + At(ids, begin) * width;
      const double scale = ScaleOf(combine_, end - begin);
      for (int64_t k = 0; k < width; ++k) {
        if constexpr (std::is_integral_v<T>) {
          to[k] = total[k];
        } else {
          to[k] = static_cast<T>(total[k] * static_cast<Total<T>>(scale));
        }
      }
    }
  }
  const Combine combine_;
};

// What flows back to each row of data: the gradients of the segments that it went into.
template <typename T>
class BackwardKernel final : public OpKernel {
 public:
  explicit BackwardKernel(Combine combine) : combine_(combine) {}

  Status Compute(KernelContext& c) override {
    const Tensor &grad = c.input(0), &indices = c.input(1), &ids = c.input(2);
    WEFT_RETURN_IF_ERROR(CheckVectors(grad, indices, ids));
    if (c.input(3).rank() != 0) return InvalidArgument("output_dim0 should be a scalar.");
    const int64_t rows = c.input(3).scalar<int32_t>(), count = ids.dim(0);
    if (rows < 0) return InvalidArgument("output_dim0 must not be negative, got ", rows);
    if (count > 0 && At(ids, count - 1) >= grad.dim(0)) {
      return InvalidArgument("Invalid number of segments: the last segment id is ",
                             At(ids, count - 1), " of ", grad.dim(0), " segments");
    }
    WEFT_ASSIGN_OR_RETURN(Scratch<int64_t> counts, Scratch<int64_t>::Make(grad.dim(0)));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = At(ids, i), index = At(indices, i);
      if (id < 0 || id >= grad.dim(0)) {
        return InvalidArgument("Segment id ", id, " out of range [0, ", grad.dim(0), ").");
      }
      if (index < 0 || index >= rows) {
        return InvalidArgument("Index ", index, " out of range [0, ", rows, ").");
      }
      ++counts[id];
    }
    if (c.num_outputs() == 1)
      return Add(c, counts, rows, [&](int64_t i) { return At(indices, i); });
    const std::vector<int64_t> distinct = SortedDistinct(indices);
    const auto size = static_cast<int64_t>(distinct.size());
    WEFT_ASSIGN_OR_RETURN(Tensor * which, c.AllocateOutput(1, Shape{size}));
    VisitDType(indices.dtype(), TypeList<int32_t, int64_t>(), [&]<typename I>() {
      for (int64_t i = 0; i < size; ++i) which->data<I>()[i] = static_cast<I>(distinct[i]);
    });
    return Add(c, counts, size, [&](int64_t i) {
      const auto found = std::lower_bound(distinct.begin(), distinct.end(), At(indices, i));
      return found - distinct.begin();
    });
  }

 private:
  static std::vector<int64_t> SortedDistinct(const Tensor& indices) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < indices.num_elements(); ++i) all.push_back(At(indices, i));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // Output 0, of `rows` rows: that of row i's index is row_of(i).
  template <typename RowOf>
  Status Add(KernelContext& c, const Scratch<int64_t>& counts, int64_t rows, RowOf row_of) {
    const Tensor &grad = c.input(0), &ids = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, WithRows(grad, rows));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    std::fill_n(out->data<T>(), out->num_elements(), T());
    if (out->num_elements() == 0) return absl::OkStatus();
    const int64_t width = out->num_elements() / rows;
    for (int64_t i = 0; i < ids.dim(0); ++i) {
      const T* from = grad.data<T>() + At(ids, i) * width;
      T* to = out->data<T>() + row_of(i) * width;
      const T scale(static_cast<Total<T>>(ScaleOf(combine_, counts[At(ids, i)])));
      for (int64_t k = 0; k < width; ++k) {
        to[k] = static_cast<T>(to[k] + static_cast<T>(from[k] * scale));
      }
    }
    return absl::OkStatus();
  }

  const Combine combine_;
};

template <template <typename> typename K, typename... Ts>
void AddKernels(OpSpec& spec, Combine combine, TypeList<Ts...>) {
  const auto add = [&]<typename T>() {
    spec.Kernel({.types = {{"T", DTypesOf<T>()}},
                 .factory = [combine](KernelConstruction&) -> StatusOr<std::unique_ptr<OpKernel>> {
                   return std::make_unique<K<T>>(combine);
                 }});
  };
  (add.template operator()<Ts>(), ...);
}

// [rows, the rest of input 0]
Status RowsOf(ShapeContext& c, int64_t rows) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 1));
  if (!shape.known_rank()) return absl::OkStatus();
  shape.SetDim(0, rows);
  c.set_output(0, shape);
  return absl::OkStatus();
}
Status ForwardShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  const bool known =
      c.num_inputs() > 3 && c.constant(3) != nullptr && c.constant(3)->num_elements() == 1;
  return RowsOf(c, known ? std::max<int64_t>(-1, At(*c.constant(3), 0)) : -1);
}
Status BackwardShape(ShapeContext& c) {
  const bool known = c.constant(3) != nullptr && c.constant(3)->num_elements() == 1;
  return RowsOf(c, known ? std::max<int64_t>(-1, At(*c.constant(3), 0)) : -1);
}

Status SparseBackwardShape(ShapeContext& c) {
  c.set_output(1, PartialShape{-1});
  return RowsOf(c, -1);
}

template <Combine combine>
Status Gradient(GradientContext& c) {
  const char* op = combine == Combine::kSum    ? "SparseSegmentSumGrad"
                   : combine == Combine::kMean ? "SparseSegmentMeanGrad"
                                               : "SparseSegmentSqrtNGrad";
  const Endpoint zero = c.builder().Scalar<int32_t>(0);
  const Endpoint rows = c.Op("GatherV2", {c.Op("Shape", {c.input(0)}), zero, zero});
  c.set_input(0, c.Op(op, {c.gradient(), c.input(1), c.input(2), rows}));
  return absl::OkStatus();
}

template <Combine combine>
void AddFamily(Catalogue& catalogue, const std::string& name, const std::string& what) {
  const bool sums = combine == Combine::kSum;
  for (const bool counted : {false, true}) {
    OpSpec spec(counted ? name + "WithNumSegments" : name);
    spec.Doc(what +
             " of the rows of `data` at `indices` that have the same segment id.\nSegment "
             "ids do not decrease; segments without rows are zeros." +
             (counted ? " There are `num_segments`." : ""))
        .Input("data: T")
        .Input("indices: Tidx")
        .Input("segment_ids: Tsegmentids");
    if (counted) spec.Input("num_segments: Tnumsegments").HostInput("num_segments");
    spec.Output("output: T")
        .Attr(sums ? "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                     "uint32, uint64}"
                   : "T: {bfloat16, half, float, double}")
        .Attr("Tidx: {int32, int64} = DT_INT32");
    if (counted) spec.Attr("Tnumsegments: {int32, int64} = DT_INT32");
    spec.Attr("Tsegmentids: {int32, int64} = DT_INT32")
        .Attr("sparse_gradient: bool = false")
        .Shape(ForwardShape)
        .Gradient(Gradient<combine>);
    if constexpr (sums) {
      AddKernels<ForwardKernel>(spec, combine, Numbers());
    } else {
      AddKernels<ForwardKernel>(spec, combine, Floats());
    }
    catalogue.Add(std::move(spec));
  }
  for (const bool sparse : {false, true}) {
    OpSpec spec(name + (sparse ? "GradV2" : "Grad"));
    spec.Doc("The gradient of " + name + " for `data`, which has " +
             (sparse ? "`dense_output_dim0` rows: those at `sorted_unique_indices` alone."
                     : "`output_dim0` rows."))
        .Input("grad: T")
        .Input("indices: Tidx")
        .Input("segment_ids: Tsegmentids")
        .Input(sparse ? "dense_output_dim0: int32" : "output_dim0: int32")
        .HostInput(sparse ? "dense_output_dim0" : "output_dim0")
        .Output("output: T");
    if (sparse) spec.Output("sorted_unique_indices: Tidx");
    spec.Attr("T: {bfloat16, half, float, double}")
        .Attr("Tidx: {int32, int64} = DT_INT32")
        .Attr("Tsegmentids: {int32, int64} = DT_INT32")
        .Shape(sparse ? SparseBackwardShape : BackwardShape)
        .NoGradient();
    AddKernels<BackwardKernel>(spec, combine, Floats());
    catalogue.Add(std::move(spec));
  }
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddFamily<Combine::kSum>(catalogue, "SparseSegmentSum", "The sum");
  AddFamily<Combine::kMean>(catalogue, "SparseSegmentMean", "The mean");
  AddFamily<Combine::kSqrtN>(catalogue, "SparseSegmentSqrtN",
                             "The sum, divided by the root of their number,");
}

}  // namespace weft::ops::math::sparse_segment
