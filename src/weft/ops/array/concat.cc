// SPDX-License-Identifier: Apache-2.0
// Joining tensors along a dimension, old (Concat) or new (Pack).
#include <cstring>
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/row_copy.h"

namespace weft::ops::array::concat {
namespace {

constexpr int64_t kParallelBytes = 256 << 10;

// Rows [begin, end) of `input`, of `part` elements each, to columns from `column` on of the
// output's.
void CopyRows(const Tensor& input, int64_t begin, int64_t end, int64_t part, Tensor* output,
              int64_t width, int64_t column) {
  if (IsPlain(input.dtype())) {
    const size_t size = DTypeSize(input.dtype()), bytes = part * size, step = width * size;
    const std::byte* from = input.bytes() + begin * bytes;
    std::byte* to = output->bytes() + begin * step + column * size;
    for (int64_t row = begin; row < end; ++row, from += bytes, to += step) {
      CopyRowElements(from, static_cast<int64_t>(bytes), to);
    }
    return;
  }
  for (int64_t row = begin; row < end; ++row) {
    CopyElements(input, row * part, part, output, row * width + column);
  }
}

// Writes inputs [first, first + count) side by side: each is a matrix of `rows` rows, and a row of
// the output is a row of each input in turn.
void JoinRows(KernelContext& c, int first, int count, int64_t rows, Tensor* output) {
  if (output->num_elements() == 0) return;
  const int64_t width = output->num_elements() / rows;
  const auto copy = [&](int64_t begin, int64_t end) {
    int64_t column = 0;
    for (int i = first; i < first + count; ++i) {
      const Tensor& input = c.input(i);
      const int64_t part = input.num_elements() / rows;
      if (part > 0) CopyRows(input, begin, end, part, output, width, column);
      column += part;
    }
  };
  const auto row_bytes = static_cast<int64_t>(output->size_bytes()) / rows;
  c.ParallelFor(rows, std::max<int64_t>(1, kParallelBytes / std::max<int64_t>(1, row_bytes)), copy);
}

Status Join(KernelContext& c, int64_t axis_value, int first, int count,
            absl::string_view axis_name) {
  const Shape& shape = c.input(first).shape();
  if (shape.rank() == 0) {
    return InvalidArgument("ConcatOp : Can't concatenate scalars (use tf.stack instead)");
  }
  if (axis_value < -shape.rank() || axis_value >= shape.rank()) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [",
                           -shape.rank(), ", ", shape.rank(), "), but got ", axis_value, " for ",
                           axis_name);
  }
  const int axis = static_cast<int>(axis_value < 0 ? axis_value + shape.rank() : axis_value);
  int64_t total = 0;
  for (int i = first; i < first + count; ++i) {
    const Shape& other = c.input(i).shape();
    if (other.rank() == 0) {
      return InvalidArgument("ConcatOp : Can't concatenate scalars (use tf.stack instead)");
    }
    if (other.rank() != shape.rank()) {
      return InvalidArgument("ConcatOp : Ranks of all input tensors should match: shape[0] = ",
                             shape.ToString(), " vs. shape[", i - first, "] = ", other.ToString());
    }
    int differs = -1;
    for (int d = shape.rank(); d-- > 0;) {
      if (d != axis && other.dim(d) != shape.dim(d)) differs = d;
    }
    if (differs >= 0) {
      return InvalidArgument("ConcatOp : Dimension ", differs,
                             " in both shapes must be equal: shape[0] = ", shape.ToString(),
                             " vs. shape[", i - first, "] = ", other.ToString());
    }
    if (__builtin_add_overflow(total, other.dim(axis), &total)) {
      return InvalidArgument("ConcatOp : the joined size overflows");
    }
  }
  Dims sizes(shape.dims().begin(), shape.dims().end());
  sizes[axis] = total;
  WEFT_ASSIGN_OR_RETURN(const Shape joined, Shape::Make(sizes));
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, joined));
  int64_t rows = 1;
  for (int d = 0; d < axis; ++d) rows *= shape.dim(d);
  JoinRows(c, first, count, rows, output);
  return absl::OkStatus();
}

class ConcatKernel final : public OpKernel {
 public:
  explicit ConcatKernel(KernelConstruction& c) : axis_first_(c.op() == "Concat") {}
  Status Compute(KernelContext& c) override {
    const int count = c.num_inputs() - 1;
    const char* name = axis_first_ ? "concat_dim" : "axis";
    const Tensor& axis = c.input(axis_first_ ? 0 : count);
    WEFT_ASSIGN_OR_RETURN(const int64_t value, IndexScalar(axis, name));
    return Join(c, value, axis_first_ ? 1 : 0, count, name);
  }

 private:
  const bool axis_first_;
};

class PackKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
    return std::make_unique<PackKernel>(axis);
  }
  explicit PackKernel(int64_t axis) : axis_(axis) {}
  Status Compute(KernelContext& c) override {
    const Shape& shape = c.input(0).shape();
    const int expanded = shape.rank() + 1;
    if (axis_ < -expanded || axis_ >= expanded) {
      return InvalidArgument("axis = ", axis_, " not in [", -expanded, ", ", expanded, ")");
    }
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + expanded : axis_);
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (c.input(i).shape() == shape) continue;
      return InvalidArgument(
          "Shapes of all inputs must match: values[0].shape = ", shape.ToString(), " != values[", i,
          "].shape = ", c.input(i).shape().ToString());
    }
    Dims sizes(shape.dims().begin(), shape.dims().end());
    sizes.insert(sizes.begin() + axis, c.num_inputs());
    WEFT_ASSIGN_OR_RETURN(const Shape packed, Shape::Make(sizes));
    if (c.num_inputs() == 1) {
      WEFT_ASSIGN_OR_RETURN(Tensor view, c.input(0).Reshaped(packed));
      c.SetOutput(0, std::move(view));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, packed));
    int64_t rows = 1;
    for (int d = 0; d < axis; ++d) rows *= shape.dim(d);
    JoinRows(c, 0, c.num_inputs(), rows, output);
    return absl::OkStatus();
  }

 private:
  const int64_t axis_;
};

// Where each input begins in the joined tensor.
class ConcatOffsetKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const int64_t concat_dim, IndexScalar(c.input(0), "concat_dim"));
    const int count = c.num_inputs() - 1;
    for (int i = 0; i < count; ++i) {
      if (c.input(i + 1).rank() == 1) continue;
      return InvalidArgument("input ", i, " should be a vector, but got shape ",
                             c.input(i + 1).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const IndexVector first, IndexValues(c.input(1), "shape"));
    const int rank = static_cast<int>(first.size());
    if (concat_dim < -rank || concat_dim >= rank) {
      return InvalidArgument("Concat dim is out of range: ", concat_dim, " vs. ", rank);
    }
    const int axis = static_cast<int>(concat_dim < 0 ? concat_dim + rank : concat_dim);
    IndexVector offset(first.size());
    for (int i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(const IndexVector sizes, IndexValues(c.input(i + 1), "shape"));
      if (sizes.size() != first.size()) {
        return InvalidArgument("input ", i, " should contain ", rank, " elements, but got ",
                               sizes.size());
      }
      for (int d = 0; d < rank; ++d) {
        if (d == axis || sizes[d] == first[d]) continue;
        return InvalidArgument("All dimensions except ", axis, " must match. Input ", i,
                               " has shape [", JoinSizes(sizes),
                               "] and doesn't match input 0 with shape [", JoinSizes(first), "].");
      }
      WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(i, Shape{rank}));
      WEFT_RETURN_IF_ERROR(StoreIndices(offset, output));
      if (__builtin_add_overflow(offset[axis], sizes[axis], &offset[axis])) {
        return InvalidArgument("Offsets overflow");
      }
    }
    return absl::OkStatus();
  }

 private:
  static std::string JoinSizes(const IndexVector& sizes) {
    std::string out;
    for (const int64_t size : sizes) absl::StrAppend(&out, out.empty() ? "" : " ", size);
    return out;
  }
};

Status JoinedShape(ShapeContext& c, int first, int count, int axis_input) {
  WEFT_RETURN_IF_ERROR(c.WithRank(axis_input, 0).status());
  PartialShape merged;  // of what is known of all but the axis
  int rank = -1;
  for (int i = first; i < first + count; ++i) {
    if (!c.input(i).known_rank()) continue;
    if (rank >= 0 && c.input(i).rank() != rank) {
      return InvalidArgument("Shapes must be equal rank, but are ", rank, " and ",
                             c.input(i).rank());
    }
    rank = c.input(i).rank();
  }
  if (rank == 0) return InvalidArgument("Can't concatenate scalars (use tf.stack instead)");
  if (rank < 0) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::optional<int> axis, ConstantAxis(c, axis_input, rank));
  if (!axis) {
    c.set_output(0, PartialShape::UnknownOfRank(rank));
    return absl::OkStatus();
  }
  int64_t total = 0;
  for (int i = first; i < first + count; ++i) {
    PartialShape part = c.input(i).known_rank() ? c.input(i) : PartialShape::UnknownOfRank(rank);
    const int64_t size = part.dim(*axis);
    if (total >= 0 && (size < 0 || __builtin_add_overflow(total, size, &total))) total = -1;
    part.SetDim(*axis, -1);
    WEFT_ASSIGN_OR_RETURN(merged, merged.MergeWith(part));
  }
  merged.SetDim(*axis, total);
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

Status PackShape(ShapeContext& c) {
  PartialShape merged;
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEFT_ASSIGN_OR_RETURN(merged, merged.MergeWith(c.input(i)));
  }
  if (!merged.known_rank()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const int64_t value, c.Attr<int64_t>("axis"));
  WEFT_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, merged.rank() + 1, "axis"));
  Dims sizes(merged.dims().begin(), merged.dims().end());
  sizes.insert(sizes.begin() + axis, c.num_inputs());
  WEFT_ASSIGN_OR_RETURN(PartialShape packed, PartialShape::Make(sizes));
  c.set_output(0, std::move(packed));
  return absl::OkStatus();
}

Status ConcatOffsetShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i + 1));
  return absl::OkStatus();
}

// Each input gets its slice back: where it begins comes from ConcatOffset at run time.
Status JoinGradient(GradientContext& c, int first, int count, int axis_input) {
  std::vector<Endpoint> values;
  for (int i = first; i < first + count; ++i) values.push_back(c.input(i));
  Node* sizes = c.builder().AddNode("ShapeN", {values});
  if (sizes == nullptr) return c.builder().status();
  std::vector<Endpoint> size_of;
  for (int i = 0; i < count; ++i) size_of.push_back({sizes, i});
  // FloorMod makes a negative axis positive.
  Endpoint axis = c.input(axis_input);
  if (axis.node->output_type(axis.port).dtype != DType::kInt32) {
    axis = c.Op("Cast", {axis}, {{"DstT", DType::kInt32}});
  }
  axis = c.Op("FloorMod", {axis, c.Op("Rank", {c.input(first)})});
  Node* offsets = c.builder().AddNode("ConcatOffset", {axis, size_of});
  if (offsets == nullptr) return c.builder().status();
  for (int i = 0; i < count; ++i) {
    c.set_input(first + i, c.Op("Slice", {c.gradient(), Endpoint{offsets, i}, size_of[i]}));
  }
  return absl::OkStatus();
}

Status PackGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  const int count = c.node().num_inputs();
  Node* parts = c.builder().AddNode("Unpack", {c.gradient()}, {{"num", count}, {"axis", axis}});
  for (int i = 0; i < count && parts != nullptr; ++i) c.set_input(i, Endpoint{parts, i});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ConcatV2")
                    .Doc("Joins `values` along dimension `axis`, which may be negative.\n"
                         "InvalidArgument if their other sizes differ.")
                    .Input("values: N * T")
                    .Input("axis: Tidx")
                    .HostInput("axis")
                    .Output("output: T")
                    .Attr("N: int >= 2")
                    .Attr("T: type")
                    .Attr("Tidx: {int32, int64} = DT_INT32")
                    .Shape([](ShapeContext& c) {
                      return JoinedShape(c, 0, c.num_inputs() - 1, c.num_inputs() - 1);
                    })
                    .Gradient([](GradientContext& c) {
                      const int count = c.node().num_inputs() - 1;
                      return JoinGradient(c, 0, count, count);
                    })
                    .Kernel(MakeKernel<ConcatKernel>()));
  catalogue.Add(
      OpSpec("Concat")
          .Doc("Joins `values` along dimension `concat_dim`. ConcatV2 with its axis first.")
          .Input("concat_dim: int32")
          .HostInput("concat_dim")
          .Input("values: N * T")
          .Output("output: T")
          .Attr("N: int >= 2")
          .Attr("T: type")
          .Shape([](ShapeContext& c) { return JoinedShape(c, 1, c.num_inputs() - 1, 0); })
          .Gradient(
              [](GradientContext& c) { return JoinGradient(c, 1, c.node().num_inputs() - 1, 0); })
          .Kernel(MakeKernel<ConcatKernel>()));
  catalogue.Add(
      OpSpec("ConcatOffset")
          .Doc("Returns where each part begins in a concatenation along `concat_dim`, given the "
               "parts' shapes.")
          .Input("concat_dim: int32")
          .HostInput("concat_dim")
          .Input("shape: N * shape_type")
          .HostInput("shape")
          .Output("offset: N * shape_type")
          .HostOutput("offset")
          .Attr("N: int >= 2")
          .Attr("shape_type: {int32, int64} = DT_INT32")
          .Shape(ConcatOffsetShape)
          .NoGradient()
          .Kernel(MakeKernel<ConcatOffsetKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("Pack")
                    .Doc("Stacks tensors of one shape along a new dimension `axis`.")
                    .Input("values: N * T")
                    .Output("output: T")
                    .Attr("N: int >= 1")
                    .Attr("T: type")
                    .Attr("axis: int = 0")
                    .Shape(PackShape)
                    .Gradient(PackGradient)
                    .Kernel(MakeKernel<PackKernel>()));
}

}  // namespace weft::ops::array::concat
