// SPDX-License-Identifier: Apache-2.0
// Reductions of rows that carry the same segment id.
#include <algorithm>
#include <limits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/index_values.h"
#include "weft/ops/math/reduction.h"

namespace weft::ops::math::segment {
namespace {

using E = Endpoint;
using G = GradientContext&;

// Segments without rows are the type's lowest or highest number, not infinity.
struct SegmentMaxReduction : MaxReduction {
  template <typename T>
  static Acc<T> StartOf() {
    if constexpr (std::is_same_v<T, Half>)
      return -65504.0f;
    else if constexpr (std::is_same_v<T, Bfloat16>)
      return static_cast<float>(Bfloat16::FromBits(0xff7f));
    else
      return std::numeric_limits<T>::lowest();
  }
};
struct SegmentMinReduction : MinReduction {
  template <typename T>
  static Acc<T> StartOf() {
    if constexpr (std::is_same_v<T, Half>)
      return 65504.0f;
    else if constexpr (std::is_same_v<T, Bfloat16>)
      return static_cast<float>(Bfloat16::FromBits(0x7f7f));
    else
      return std::numeric_limits<T>::max();
  }
};

int64_t IdAt(const Tensor& ids, int64_t i) {
  switch (ids.dtype()) {
    case DType::kInt16:
      return ids.data<int16_t>()[i];
    case DType::kInt32:
      return ids.data<int32_t>()[i];
    default:
      return ids.data<int64_t>()[i];
  }
}

// Where the first id of at least `limit` stands, or -1.
int64_t FirstFrom(const Tensor& ids, int64_t limit) {
  int64_t found = -1;
  VisitDType(ids.dtype(), TypeList<int16_t, int32_t, int64_t>(), [&]<typename Id>() {
    const absl::Span<const Id> all = ids.span<Id>();
    const auto at = std::find_if(all.begin(), all.end(), [&](Id id) { return id >= limit; });
    if (at != all.end()) found = at - all.begin();
  });
  return found;
}

// The reduction of T with a way to make the totals of a wider type.
Status MakeTotals(KernelContext& c, const Reduction& r, const Tensor& out, Tensor* totals) {
  *totals = out;
  if (r.accumulator != out.dtype()) {
    WEFT_ASSIGN_OR_RETURN(*totals, c.AllocateTemporary(r.accumulator, out.shape()));
  }
  return absl::OkStatus();
}

// Ids in increasing order, one a row. `gap` is what segments without rows hold.
class SortedKernel final : public OpKernel {
 public:
  SortedKernel(const Reduction& reduction, int gap) : r_(reduction), gap_(gap) {}

  Status Compute(KernelContext& c) override {
    const Tensor& data = c.input(0);
    const Tensor& ids = c.input(1);
    if (data.rank() < 1) return InvalidArgument("input must be at least rank 1");
    if (ids.rank() != 1) return InvalidArgument("segment_ids should be a vector.");
    const int64_t rows = data.dim(0);
    if (ids.dim(0) != rows) {
      return InvalidArgument("segment_ids should be the same size as dimension 0 of input.");
    }
    const int64_t last = rows == 0 ? -1 : IdAt(ids, rows - 1);
    if (rows > 0 && last < 0) return InvalidArgument("segment ids must be >= 0");
    const int64_t segments = std::min(last, std::numeric_limits<int64_t>::max() - 1) + 1;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t id = IdAt(ids, i);
      if (id < 0 || id >= segments) {
        return InvalidArgument("Segment id ", id, " out of range [0, ", segments,
                               "), possibly because 'segment_ids' input is not sorted.");
      }
      if (i > 0 && id < IdAt(ids, i - 1)) return InvalidArgument("segment ids are not increasing");
    }
    WEFT_ASSIGN_OR_RETURN(Shape shape, WithRows(data.shape(), segments));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    Tensor totals;
    WEFT_RETURN_IF_ERROR(MakeTotals(c, r_, *out, &totals));
    const int64_t width = out->num_elements() / segments;
    const size_t in_row = width * DTypeSize(data.dtype());
    const size_t total_row = width * DTypeSize(r_.accumulator);
    const size_t out_row = width * DTypeSize(out->dtype());
    FillGaps(*out);
    for (int64_t begin = 0; begin < rows;) {
      const int64_t id = IdAt(ids, begin);
      int64_t end = begin;
      std::byte* total = totals.bytes() + id * total_row;
      r_.start(total, width);
      for (; end < rows && IdAt(ids, end) == id; ++end) {
        r_.loops.column(data.bytes() + end * in_row, width, total);
      }
      r_.finish(total, width, end - begin, out->bytes() + id * out_row);
      begin = end;
    }
    return absl::OkStatus();
  }

 private:
  static StatusOr<Shape> WithRows(const Shape& data, int64_t rows) {
    Dims dims(data.dims().begin(), data.dims().end());
    dims[0] = rows;
    return Shape::Make(dims);
  }
  void FillGaps(Tensor& out) const {
    VisitDType(out.dtype(), Numbers(), [&]<typename T>() {
      std::fill_n(out.data<T>(), out.num_elements(), static_cast<T>(static_cast<float>(gap_)));
    });
  }
  const Reduction r_;
  const int gap_;
};

// Ids in any order, of the shape of the first dimensions of data; negative ones drop their rows.
class UnsortedKernel final : public OpKernel {
 public:
  explicit UnsortedKernel(const Reduction& reduction) : r_(reduction) {}

  Status Compute(KernelContext& c) override {
    const Tensor& data = c.input(0);
    const Tensor& ids = c.input(1);
    const Tensor& count = c.input(2);
    if (count.rank() != 0) {
      return InvalidArgument("num_segments should be a scalar, not shape ",
                             count.shape().ToString());
    }
    const int64_t segments = IdAt(count, 0);
    if (segments < 0)
      return InvalidArgument("Input num_segments == ", segments, " must not be negative.");
    const absl::Span<const int64_t> head = ids.shape().dims();
    if (data.rank() < ids.rank() || data.shape().dims().subspan(0, head.size()) != head) {
      return InvalidArgument("data.shape = ", data.shape().ToString(),
                             " does not start with segment_ids.shape = ", ids.shape().ToString());
    }
    Dims dims = {segments};
    for (int i = ids.rank(); i < data.rank(); ++i) dims.push_back(data.dim(i));
    WEFT_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    const int64_t bad = FirstFrom(ids, segments);
    if (bad >= 0) {
      return InvalidArgument("segment_ids", PositionText(ids.shape(), bad), " = ", IdAt(ids, bad),
                             " is out of range [0, ", segments, ")");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    Tensor totals;
    WEFT_RETURN_IF_ERROR(MakeTotals(c, r_, *out, &totals));
    const int64_t width = out->num_elements() / segments;
    const size_t in_row = width * DTypeSize(data.dtype());
    const size_t total_row = width * DTypeSize(r_.accumulator);
    r_.start(totals.bytes(), out->num_elements());
    VisitDType(ids.dtype(), TypeList<int16_t, int32_t, int64_t>(), [&]<typename Id>() {
      for (const Id& id : ids.span<Id>()) {
        if (id < 0) continue;
        r_.loops.column(data.bytes() + (&id - ids.data<Id>()) * in_row, width,
                        totals.bytes() + static_cast<int64_t>(id) * total_row);
      }
    });
    r_.finish(totals.bytes(), out->num_elements(), 1, out->bytes());
    return absl::OkStatus();
  }

 private:
  const Reduction r_;
};

E Zeros(G c, E like) { return c.Op("ZerosLike", {like}); }
E Gathered(G c, E params, E ids) {
  return c.Op("GatherV2", {params, ids, c.builder().Scalar<int32_t>(0)});
}

Status SegmentSumGradient(G c) {
  c.set_input(0, Gathered(c, c.gradient(), c.input(1)));
  return absl::OkStatus();
}
Status SegmentMeanGradient(G c) {
  // How many rows each segment has, in the shape of a column of data.
  const E rank = c.Op("Rank", {c.input(0)});
  const E one = c.builder().Scalar<int32_t>(1);
  const E tail_size = c.Op(
      "Reshape", {c.Op("Sub", {rank, one}), c.builder().Constant(Tensor::Vector<int32_t>({1}))});
  const E tail = c.Op("Fill", {tail_size, one});
  const E shape = c.Op("ConcatV2", {std::vector<E>{c.Op("Shape", {c.input(1)}), tail},
                                    c.builder().Scalar<int32_t>(0)});
  const E ones = c.Op("Fill", {shape, ScalarOf(c, TypeOf(c.gradient()), 1)});
  const E counts = c.Op("SegmentSum", {ones, c.input(1)});
  c.set_input(0, Gathered(c, c.Op("RealDiv", {c.gradient(), counts}), c.input(1)));
  return absl::OkStatus();
}
// Equal winners share the gradient.
Status SegmentExtremumGradient(G c) {
  const E selected = c.Op("Equal", {c.input(0), Gathered(c, c.output(0), c.input(1))});
  const E ones = c.Op("Cast", {selected}, {{"DstT", TypeOf(c.gradient())}});
  const E counts = c.Op("SegmentSum", {ones, c.input(1)});
  const E shares = Gathered(c, c.Op("RealDiv", {c.gradient(), counts}), c.input(1));
  c.set_input(0, c.Op("SelectV2", {selected, shares, Zeros(c, shares)}));
  return absl::OkStatus();
}

// Rows of params by id, zeros where the id is negative.
struct Kept {
  E rows;
  E is_kept;  // of the shape of rows
};
Kept GatherKept(G c, E params) {
  const E ids = c.input(1);
  const E zero = Zeros(c, ids);
  const E rows = Gathered(c, params, c.Op("Maximum", {ids, zero}));
  // The condition gets trailing dimensions of 1, then the shape of the rows.
  const E one = c.builder().Scalar<int32_t>(1);
  const E missing = c.Op("Sub", {c.Op("Rank", {rows}), c.Op("Rank", {ids})});
  const E tail =
      c.Op("Fill",
           {c.Op("Reshape", {missing, c.builder().Constant(Tensor::Vector<int32_t>({1}))}), one});
  const E shape = c.Op(
      "ConcatV2", {std::vector<E>{c.Op("Shape", {ids}), tail}, c.builder().Scalar<int32_t>(0)});
  const E column = c.Op("Reshape", {c.Op("GreaterEqual", {ids, zero}), shape});
  return {c.Op("SelectV2", {column, rows, Zeros(c, rows)}),
          c.Op("BroadcastTo", {column, c.Op("Shape", {rows})})};
}
Status UnsortedSumGradient(G c) {
  c.set_input(0, GatherKept(c, c.gradient()).rows);
  return absl::OkStatus();
}
Status UnsortedExtremumGradient(G c) {
  const Kept outputs = GatherKept(c, c.output(0));
  const E equal = c.Op("Equal", {c.input(0), outputs.rows});
  const E selected = c.Op("LogicalAnd", {equal, outputs.is_kept});
  const E ones = c.Op("Cast", {selected}, {{"DstT", TypeOf(c.gradient())}});
  const E counts = c.Op("UnsortedSegmentSum", {ones, c.input(1), c.input(2)});
  const E shares = GatherKept(c, c.Op("RealDiv", {c.gradient(), counts})).rows;
  c.set_input(0, c.Op("SelectV2", {selected, shares, Zeros(c, shares)}));
  return absl::OkStatus();
}
// The product of the others in the segment: by division, and where an element is 0 from a product
// that leaves zeros out; nothing where a segment has two of them.
template <typename Gather, typename Reduce>
void ProdGradient(G c, Gather gather, Reduce reduce) {
  const E data = c.input(0);
  const E is_zero = c.Op("Equal", {data, ScalarOf(c, TypeOf(data), 0)});
  const E zeros = reduce("Sum", c.Op("Cast", {is_zero}, {{"DstT", DType::kInt32}}));
  const E many = c.Op("Greater", {zeros, c.builder().Scalar<int32_t>(1)});
  const E gradient = c.Op("SelectV2", {many, Zeros(c, c.gradient()), c.gradient()});
  const E nonzero = c.Op("SelectV2", {is_zero, c.Op("OnesLike", {data}), data});
  const E without_zeros = gather(reduce("Prod", nonzero));
  const E divided = c.Op("RealDiv", {gather(c.output(0)), data});
  const E slope = c.Op("SelectV2", {is_zero, without_zeros, divided});
  c.set_input(0, c.Op("Mul", {gather(gradient), slope}));
}
Status SegmentProdGradient(G c) {
  ProdGradient(
      c, [&](E x) { return Gathered(c, x, c.input(1)); },
      [&](const char* kind, E x) {
        return c.Op(absl::StrCat("Segment", kind), {x, c.input(1)});
      });
  return absl::OkStatus();
}
Status UnsortedProdGradient(G c) {
  ProdGradient(
      c, [&](E x) { return GatherKept(c, x).rows; },
      [&](const char* kind, E x) {
        return c.Op(absl::StrCat("UnsortedSegment", kind), {x, c.input(1), c.input(2)});
      });
  return absl::OkStatus();
}

Status SortedShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape data, c.WithRankAtLeast(0, 1));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  if (data.known_rank()) data.SetDim(0, -1);
  c.set_output(0, data);
  return absl::OkStatus();
}
Status UnsortedShape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  if (!data.known_rank() || !ids.known_rank()) return absl::OkStatus();
  if (ids.rank() > data.rank()) {
    return InvalidArgument("Shape of segment_ids ", ids.ToString(), " is longer than that of data ",
                           data.ToString());
  }
  const Tensor* count = c.constant(2);
  if (count != nullptr && count->rank() == 0 && IdAt(*count, 0) < 0) {
    return InvalidArgument("Dimension size, given by scalar input 2 must be non-negative but is ",
                           IdAt(*count, 0));
  }
  PartialShape out{count != nullptr && count->num_elements() == 1 ? IdAt(*count, 0) : -1};
  for (int i = ids.rank(); i < data.rank(); ++i) out.AddDim(data.dim(i));
  c.set_output(0, out);
  return absl::OkStatus();
}

constexpr char kNumbers[] = "T: numbertype";
constexpr char kReals[] = "T: realnumbertype";

template <typename R, typename Finish, typename... Ts>
void AddSorted(Catalogue& catalogue, const char* name, const char* doc, const char* types, int gap,
               GradientFunction gradient, TypeList<Ts...> list) {
  OpSpec spec(name);
  spec.Doc(doc).Input("data: T").Input("segment_ids: Tindices").Output("output: T").Attr(types);
  spec.Attr("Tindices: {int32, int64}").Shape(SortedShape).Gradient(std::move(gradient));
  const auto factory = [gap](KernelConstruction& k) -> StatusOr<std::unique_ptr<OpKernel>> {
    Reduction r;
    VisitDType(k.input_dtype(0), TypeList<Ts...>(),
               [&]<typename T>() { r = MakeReduction<R, Finish, T>(); });
    return std::make_unique<SortedKernel>(r, gap);
  };
  catalogue.Add(spec.Kernel({.types = {{"T", DTypesOf(list)}}, .factory = factory}));
}
template <typename R, typename... Ts>
void AddUnsorted(Catalogue& catalogue, const char* name, const char* doc, const char* types,
                 const char* indices, GradientFunction gradient, TypeList<Ts...> list) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("data: T")
      .Input("segment_ids: Tindices")
      .Input("num_segments: Tnumsegments")
      .HostInput("num_segments");
  spec.Output("output: T")
      .Attr(types)
      .Attr(indices)
      .Attr("Tnumsegments: {int32, int64} = DT_INT32");
  spec.Shape(UnsortedShape).Gradient(std::move(gradient));
  const auto factory = [](KernelConstruction& k) -> StatusOr<std::unique_ptr<OpKernel>> {
    Reduction r;
    VisitDType(k.input_dtype(0), TypeList<Ts...>(),
               [&]<typename T>() { r = MakeReduction<R, Plain, T>(); });
    return std::make_unique<UnsortedKernel>(r);
  };
  catalogue.Add(spec.Kernel({.types = {{"T", DTypesOf(list)}}, .factory = factory}));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddSorted<SumReduction, Plain>(catalogue, "SegmentSum",
                                 "Sums of rows with equal ids, which increase.", kNumbers, 0,
                                 SegmentSumGradient, Numbers());
  AddSorted<MeanReduction, Average>(catalogue, "SegmentMean",
                                    "Means of rows with equal ids, which increase.", kNumbers, 0,
                                    SegmentMeanGradient, Numbers());
  AddSorted<ProdReduction, Plain>(catalogue, "SegmentProd",
                                  "Products of rows with equal ids, which increase; 1 of no rows.",
                                  kNumbers, 1, SegmentProdGradient, Numbers());
  AddSorted<MaxReduction, Plain>(catalogue, "SegmentMax",
                                 "Maxima of rows with equal ids, which increase; 0 of no rows.",
                                 kReals, 0, SegmentExtremumGradient, RealNumbers());
  AddSorted<MinReduction, Plain>(catalogue, "SegmentMin",
                                 "Minima of rows with equal ids, which increase; 0 of no rows.",
                                 kReals, 0, SegmentExtremumGradient, RealNumbers());
  constexpr char kIndices[] = "Tindices: {int32, int64}";
  AddUnsorted<SumReduction>(catalogue, "UnsortedSegmentSum",
                            "Sums of rows with equal ids, in any order; negative ids are left out.",
                            kNumbers, "Tindices: {int16, int32, int64}", UnsortedSumGradient,
                            Numbers());
  AddUnsorted<ProdReduction>(
      catalogue, "UnsortedSegmentProd",
      "Products of rows with equal ids, in any order; negative ids are left out.", kNumbers,
      kIndices, UnsortedProdGradient, Numbers());
  AddUnsorted<SegmentMaxReduction>(
      catalogue, "UnsortedSegmentMax",
      "Maxima of rows with equal ids, in any order; the lowest number of no "
      "rows; negative ids are left out.",
      kReals, kIndices, UnsortedExtremumGradient, RealNumbers());
  AddUnsorted<SegmentMinReduction>(
      catalogue, "UnsortedSegmentMin",
      "Minima of rows with equal ids, in any order; the highest number of no "
      "rows; negative ids are left out.",
      kReals, kIndices, UnsortedExtremumGradient, RealNumbers());
}

}  // namespace weft::ops::math::segment
