// SPDX-License-Identifier: Apache-2.0
// Ragged tensors filled up to dense ones, as sparse ones, and rows of them gathered.
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
#include "weft/ops/ragged/splits_kernel.h"

namespace weft::ops::ragged::to_tensor {
namespace {

// One level of a ragged tensor: where each row begins.
StatusOr<Splits> LevelOf(const Tensor& tensor, const std::string& type, int64_t rows) {
  if (type == "ROW_SPLITS") return SplitsOf(tensor);
  if (type != "VALUE_ROWIDS") {
    return InvalidArgument("Unsupported row partition type: ", type);
  }
  if (!tensor.shape().IsVector()) {
    return InvalidArgument("Row ids must be a vector, got shape ", tensor.shape().ToString());
  }
  Splits splits(static_cast<size_t>(rows) + 1, 0);
  int64_t before = 0;
  for (int64_t i = 0; i < tensor.dim(0); ++i) {
    const int64_t row = IndexAt(tensor, i);
    if (row < before || row >= rows) {
      return InvalidArgument("Row id ", row, " at ", i, " must be at least ", before, " and below ",
                             rows);
    }
    before = row;
    ++splits[row + 1];
  }
  for (size_t i = 1; i < splits.size(); ++i) splits[i] += splits[i - 1];
  return splits;
}

int64_t Longest(const Splits& splits) {
  int64_t longest = 0;
  for (size_t i = 1; i < splits.size(); ++i) longest = std::max(longest, splits[i] - splits[i - 1]);
  return longest;
}

class ToTensorKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const auto types, c.Attr<AttrValue::StringList>("row_partition_types"));
    const size_t count = static_cast<size_t>(c.num_inputs()) - 3;
    if (types.size() != count || types.empty() ||
        (types[0] == "FIRST_DIM_SIZE" && types.size() < 2)) {
      return InvalidArgument("row_partition_types must name each of ", count, " row partitions");
    }
    return std::make_unique<ToTensorKernel>(types);
  }
  explicit ToTensorKernel(AttrValue::StringList types) : types_(std::move(types)) {}

  Status Compute(KernelContext& c) override {
    const Tensor values = c.input(1), fallback = c.input(2);
    if (values.rank() < 1) return InvalidArgument("values must have rank >= 1");
    WEFT_ASSIGN_OR_RETURN(const std::vector<Splits> levels, LevelsOf(c, values.dim(0)));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, OutputShape(c.input(0), levels, values.shape()));
    int64_t inner = 1;
    for (int d = 1; d < values.rank(); ++d) inner *= values.dim(d);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    WEFT_RETURN_IF_ERROR(Fill(fallback, values.shape(), inner, out));
    // Where each row, and at last each value, goes in units of values; -1: it does not fit.
    const auto levels_count = static_cast<int>(levels.size());
    std::vector<int64_t> places(levels[0].size() - 1);
    for (size_t row = 0; row < places.size(); ++row) {
      places[row] = static_cast<int64_t>(row) < shape.dim(0) ? static_cast<int64_t>(row) : -1;
    }
    for (int level = 0; level < levels_count; ++level) {
      const Splits& splits = levels[level];
      std::vector<int64_t> next(static_cast<size_t>(splits.back()));
      for (size_t row = 0; row + 1 < splits.size(); ++row) {
        for (int64_t at = splits[row]; at < splits[row + 1]; ++at) {
          const int64_t k = at - splits[row];
          const bool fits = places[row] >= 0 && k < shape.dim(level + 1);
          next[at] = fits ? places[row] * shape.dim(level + 1) + k : -1;
        }
      }
      places = std::move(next);
    }
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) continue;
      CopyElements(values, static_cast<int64_t>(i) * inner, inner, out, places[i] * inner);
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<std::vector<Splits>> LevelsOf(const KernelContext& c, int64_t count) const {
    std::vector<Splits> levels;
    size_t first = 0;
    int64_t rows = -1;
    if (types_[0] == "FIRST_DIM_SIZE") {
      WEFT_ASSIGN_OR_RETURN(rows, IndexScalar(c.input(3), "The first dimension's size"));
      if (rows < 0) return InvalidArgument("The first dimension's size is negative: ", rows);
      first = 1;
    }
    for (size_t i = first; i < types_.size(); ++i) {
      if (rows < 0 && types_[i] != "ROW_SPLITS") {
        return InvalidArgument("The first row partition cannot be ", types_[i]);
      }
      WEFT_ASSIGN_OR_RETURN(Splits splits,
                            LevelOf(c.input(3 + static_cast<int>(i)), types_[i], rows));
      if (rows >= 0 && static_cast<int64_t>(splits.size()) - 1 != rows) {
        return InvalidArgument("A row partition has ", splits.size() - 1, " rows, expected ", rows);
      }
      rows = splits.back();
      levels.push_back(std::move(splits));
    }
    if (rows == count) return levels;
    return InvalidArgument("The row partitions cut ", rows, " values, but there are ", count);
  }

  static StatusOr<Shape> OutputShape(const Tensor& wanted, const std::vector<Splits>& levels,
                                     const Shape& values) {
    Dims dims = {static_cast<int64_t>(levels[0].size()) - 1};
    for (const Splits& splits : levels) dims.push_back(Longest(splits));
    for (int d = 1; d < values.rank(); ++d) dims.push_back(values.dim(d));
    WEFT_ASSIGN_OR_RETURN(const IndexVector asked, IndexValues(wanted, "shape"));
    if (wanted.rank() == 0 && asked[0] == -1) return Shape::Make(dims);
    if (wanted.rank() != 1 || asked.size() != dims.size()) {
      return InvalidArgument("shape must be -1 or have ", dims.size(), " elements, not ",
                             wanted.ToString());
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (asked[d] < 0) continue;
      if (d > levels.size() && asked[d] != dims[d]) {
        return InvalidArgument("Inner dimension ", d, " of the values is ", dims[d],
                               ", but shape asks for ", asked[d]);
      }
      dims[d] = asked[d];
    }
    return Shape::Make(dims);
  }

  // The default, a scalar or as large as the last dimensions of a value, everywhere.
  static Status Fill(const Tensor& fallback, const Shape& values, int64_t inner, Tensor* out) {
    const auto own = fallback.shape().dims(), all = values.dims().subspan(1);
    const bool fits =
        fallback.num_elements() == 1 ||
        (own.size() <= all.size() && std::equal(own.begin(), own.end(), all.end() - own.size()));
    if (!fits) {
      return InvalidArgument("default_value of shape ", fallback.shape().ToString(),
                             " does not broadcast to a value of shape [", absl::StrJoin(all, ","),
                             "]");
    }
    const int64_t size = fallback.num_elements();
    if (size == 0 || inner == 0) return absl::OkStatus();
    for (int64_t i = 0; i < out->num_elements(); i += size) CopyElements(fallback, 0, size, out, i);
    return absl::OkStatus();
  }

  const AttrValue::StringList types_;
};

class ToSparseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const int count = c.num_inputs() - 1;
    const Tensor values = c.input(count);
    if (values.rank() < 1) return InvalidArgument("rt_dense_values must have rank >= 1");
    WEFT_ASSIGN_OR_RETURN(const std::vector<Splits> levels,
                          NestedSplitsOf(c, 0, count, values.dim(0)));
    const int rank = count + values.rank();
    WEFT_ASSIGN_OR_RETURN(Tensor * indices,
                          c.AllocateOutput(0, Shape{values.num_elements(), rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor flat, values.Reshaped(Shape{values.num_elements()}));
    c.SetOutput(1, std::move(flat));
    WEFT_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2, Shape{rank}));
    shape->data<int64_t>()[0] = static_cast<int64_t>(levels[0].size()) - 1;
    for (int d = 0; d < count; ++d) shape->data<int64_t>()[d + 1] = Longest(levels[d]);
    for (int d = 1; d < values.rank(); ++d) shape->data<int64_t>()[count + d] = values.dim(d);
    if (values.num_elements() == 0) return absl::OkStatus();
    const int64_t inner = values.num_elements() / values.dim(0);
    std::vector<int64_t> rows(levels.size(), 0);
    for (int64_t i = 0; i < values.dim(0); ++i) {
      // From the innermost level outwards: in which row it lies, and where there.
      std::vector<int64_t> position(static_cast<size_t>(count) + 1);
      int64_t at = i;
      for (int d = count - 1; d >= 0; --d) {
        while (levels[d][rows[d] + 1] <= at) ++rows[d];
        position[d + 1] = at - levels[d][rows[d]];
        at = rows[d];
      }
      position[0] = at;
      for (int64_t k = 0; k < inner; ++k) {
        int64_t* to = indices->data<int64_t>() + (i * inner + k) * rank;
        std::copy(position.begin(), position.end(), to);
        int64_t rest = k;
        for (int d = values.rank() - 1; d >= 1; --d) {
          to[count + d] = rest % values.dim(d);
          rest /= values.dim(d);
        }
      }
    }
    return absl::OkStatus();
  }
};

class GatherKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<GatherKernel>(c.num_inputs() - 2, c.num_outputs() - 1);
  }
  GatherKernel(int levels, int output_levels) : levels_(levels), output_levels_(output_levels) {}

  Status Compute(KernelContext& c) override {
    const Tensor values = c.input(levels_), indices = c.input(levels_ + 1);
    if (values.rank() < 1) return InvalidArgument("params_dense_values must have rank >= 1");
    WEFT_ASSIGN_OR_RETURN(const std::vector<Splits> levels,
                          NestedSplitsOf(c, 0, levels_, values.dim(0)));
    if (indices.rank() - 1 + levels_ != output_levels_) {
      return InvalidArgument("OUTPUT_RAGGED_RANK must be ", indices.rank() - 1 + levels_,
                             " for indices of shape ", indices.shape().ToString());
    }
    // Rows to take of each level, as ranges of it.
    std::vector<std::pair<int64_t, int64_t>> ranges;
    const int64_t rows = static_cast<int64_t>(levels[0].size()) - 1;
    for (int64_t i = 0; i < indices.num_elements(); ++i) {
      const int64_t row = IndexAt(indices, i);
      if (row < 0 || row >= rows) {
        return InvalidArgument("indices[", i, "] = ", row, " is not in [0, ", rows, ")");
      }
      ranges.emplace_back(row, row + 1);
    }
    WEFT_RETURN_IF_ERROR(GiveIndexSplits(c, indices.shape()));
    for (int level = 0; level < levels_; ++level) {
      Splits splits = {0};
      for (auto& [begin, end] : ranges) {
        for (int64_t row = begin; row < end; ++row) {
          splits.push_back(splits.back() + levels[level][row + 1] - levels[level][row]);
        }
        std::tie(begin, end) = std::pair(levels[level][begin], levels[level][end]);
      }
      // One row alone, by a scalar, has no splits around it.
      const int output = output_levels_ - levels_ + level;
      if (output >= 0) WEFT_RETURN_IF_ERROR(GiveSplits(c, output, splits));
    }
    int64_t total = 0;
    for (const auto& [begin, end] : ranges) total += end - begin;
    Shape shape = values.shape();
    shape.SetDim(0, total);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(output_levels_, shape));
    int64_t inner = 1;
    for (int d = 1; d < values.rank(); ++d) inner *= values.dim(d);
    int64_t at = 0;
    for (const auto& [begin, end] : ranges) {
      CopyElements(values, begin * inner, (end - begin) * inner, out, at * inner);
      at += end - begin;
    }
    return absl::OkStatus();
  }

 private:
  // The dimensions of the indices but the last are levels of equal rows.
  Status GiveIndexSplits(KernelContext& c, const Shape& indices) const {
    int64_t rows = 1;
    for (int d = 0; d + 1 < indices.rank(); ++d) {
      rows *= indices.dim(d);
      Splits splits(static_cast<size_t>(rows) + 1);
      for (size_t i = 0; i < splits.size(); ++i) {
        splits[i] = static_cast<int64_t>(i) * indices.dim(d + 1);
      }
      WEFT_RETURN_IF_ERROR(GiveSplits(c, d, splits));
    }
    return absl::OkStatus();
  }

  const int levels_;
  const int output_levels_;
};

Endpoint Vector(GradientContext& c, std::initializer_list<int32_t> values) {
  return c.builder().Constant(Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(values.size())},
                                                        std::vector<int32_t>(values)));
}
Endpoint Take(GradientContext& c, Endpoint from, Endpoint rows) {
  return c.Op("GatherV2", {from, rows, c.builder().Scalar<int32_t>(0)});
}
// Elements `begin` to `end` of a vector; 0 as the end: all of the rest.
Endpoint Part(GradientContext& c, Endpoint vector, int32_t begin, int32_t end) {
  return c.Op("StridedSlice", {vector, Vector(c, {begin}), Vector(c, {end}), Vector(c, {1})},
              {{"end_mask", end == 0 ? 1 : 0}});
}

// Rows of values, those that were taken.
Status GatherGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto levels, c.Attr<int64_t>("PARAMS_RAGGED_RANK"));
  WEFT_ASSIGN_OR_RETURN(const auto outputs, c.Attr<int64_t>("OUTPUT_RAGGED_RANK"));
  const Endpoint gradient = c.gradient(static_cast<int>(outputs));
  if (!gradient) return absl::OkStatus();
  // Where the values of each row begin.
  Endpoint splits = c.input(0);
  for (int i = 1; i < levels; ++i) splits = Take(c, c.input(i), splits);
  const int values = static_cast<int>(levels);
  const Endpoint rows = c.Op("Reshape", {c.input(values + 1), Vector(c, {-1})});
  const Endpoint ranges =
      c.Op("RaggedRange", {Take(c, splits, rows), Take(c, Part(c, splits, 1, 0), rows),
                           ScalarOf(c, TypeOf(splits), 1)});
  c.set_input_slices(values, {.values = gradient,
                              .indices = Endpoint{ranges.node, 1},
                              .dense_shape = c.Op("Shape", {c.input(values)})});
  return absl::OkStatus();
}

// The same values in another shape.
Status ToSparseGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto levels, c.Attr<int64_t>("RAGGED_RANK"));
  const int values = static_cast<int>(levels);
  if (!c.gradient(1)) return absl::OkStatus();
  c.set_input(values, c.Op("Reshape", {c.gradient(1), c.Op("Shape", {c.input(values)})}));
  return absl::OkStatus();
}

// What is in the places of values, and the sum of the others for the default.
Status ToTensorGradient(GradientContext& c) {
  const Endpoint values = c.input(1), fallback = c.input(2);
  const PartialShape value_shape = c.builder().ShapeOf(values);
  const PartialShape fallback_shape = c.builder().ShapeOf(fallback);
  if (!value_shape.known_rank() || value_shape.rank() < 1 || !fallback_shape.known_rank()) {
    return Unimplemented("The gradient of RaggedTensorToTensor is for values and a default of ",
                         "known ranks");
  }
  const int32_t inner = value_shape.rank() - 1;
  const auto concat = [&](Endpoint a, Endpoint b) {
    return c.Op("ConcatV2", {std::vector<Endpoint>{a, b}, c.builder().Scalar<int32_t>(0)});
  };
  // The number of the value that stands in each place of the rows, -1 for the default.
  const Endpoint all = c.Op("Shape", {c.gradient()});
  const Endpoint count = c.Op("GatherV2", {c.Op("Shape", {values}), c.builder().Scalar<int32_t>(0),
                                           c.builder().Scalar<int32_t>(0)});
  const Endpoint outer = Part(c, all, 0, -inner);
  std::vector<Endpoint> partitions;
  for (int i = 3; i < c.node().num_inputs(); ++i) partitions.push_back(c.input(i));
  WEFT_ASSIGN_OR_RETURN(const auto types, c.Attr<AttrValue::StringList>("row_partition_types"));
  const Endpoint numbers =
      c.Op("RaggedTensorToTensor",
           {outer,
            c.Op("Range", {c.builder().Scalar<int32_t>(0), count, c.builder().Scalar<int32_t>(1)}),
            c.builder().Scalar<int32_t>(-1), partitions},
           {{"row_partition_types", types}});
  const Endpoint places = c.Op("Reshape", {numbers, Vector(c, {-1})});
  const Endpoint rows = c.Op(
      "Reshape",
      {c.gradient(), inner == 0 ? Vector(c, {-1})
                                : concat(Vector(c, {-1}), Part(c, c.Op("Shape", {values}), 1, 0))});
  c.set_input(1, c.Op("UnsortedSegmentSum", {rows, places, count}));
  // A default of fewer dimensions than a value is the same along the first ones of it.
  const Endpoint one = c.builder().Scalar<int32_t>(1);
  const Endpoint unset = c.Op("Cast", {c.Op("Less", {places, c.builder().Scalar<int32_t>(0)})},
                              {{"DstT", DType::kInt32}});
  const Endpoint kept = c.Op("UnsortedSegmentSum", {rows, c.Op("Sub", {unset, one}), one});
  const Endpoint whole =
      c.Op("Reshape", {kept, inner == 0 ? Vector(c, {}) : Part(c, c.Op("Shape", {values}), 1, 0)});
  const Endpoint axes =
      c.Op("BroadcastGradientArgs", {c.Op("Shape", {fallback}), c.Op("Shape", {whole})});
  c.set_input(2, c.Op("Reshape", {c.Op("Sum", {whole, axes}), c.Op("Shape", {fallback})}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("RaggedTensorToTensor")
          .Doc("The ragged tensor with its rows cut or filled up to one length.\n"
               "`shape` is -1 or says sizes, -1 for those of the longest rows. A row partition is "
               "row splits, or row ids of values behind the number of rows.")
          .Input("shape: Tshape")
          .Input("values: T")
          .Input("default_value: T")
          .Input("row_partition_tensors: num_row_partition_tensors * Tindex")
          .Output("result: T")
          .Attr("T: type")
          .Attr("Tindex: {int64, int32}")
          .Attr("Tshape: {int64, int32}")
          .Attr("num_row_partition_tensors: int >= 1")
          .Attr("row_partition_types: list(string)")
          .Shape(shapes::Unknown)
          .Gradient(ToTensorGradient)
          .Kernel(MakeKernel<ToTensorKernel>()));
  catalogue.Add(OpSpec("RaggedTensorToSparse")
                    .Doc("The ragged tensor as a sparse one, as large as its longest rows.")
                    .Input("rt_nested_splits: RAGGED_RANK * Tsplits")
                    .Input("rt_dense_values: T")
                    .Output("sparse_indices: int64")
                    .Output("sparse_values: T")
                    .Output("sparse_dense_shape: int64")
                    .Attr("RAGGED_RANK: int >= 1")
                    .Attr("T: type")
                    .Attr("Tsplits: {int32, int64} = DT_INT64")
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, PartialShape({-1, -1}));
                      c.set_output(1, PartialShape({-1}));
                      c.set_output(2, PartialShape({-1}));
                      return absl::OkStatus();
                    })
                    .Gradient(ToSparseGradient)
                    .Kernel(MakeKernel<ToSparseKernel>()));
  catalogue.Add(OpSpec("RaggedGather")
                    .Doc("Rows of a ragged tensor, by their numbers.\nInvalidArgument for a number "
                         "that no row has.")
                    .Input("params_nested_splits: PARAMS_RAGGED_RANK * Tsplits")
                    .Input("params_dense_values: Tvalues")
                    .Input("indices: Tindices")
                    .Output("output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits")
                    .Output("output_dense_values: Tvalues")
                    .Attr("Tvalues: type")
                    .Attr("Tindices: {int32, int64}")
                    .Attr("Tsplits: {int32, int64} = DT_INT64")
                    .Attr("PARAMS_RAGGED_RANK: int >= 1")
                    .Attr("OUTPUT_RAGGED_RANK: int >= 0")
                    .Shape(shapes::Unknown)
                    .Gradient(GatherGradient)
                    .Kernel(MakeKernel<GatherKernel>()));
}

}  // namespace weft::ops::ragged::to_tensor
