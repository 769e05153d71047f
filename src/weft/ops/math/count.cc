// SPDX-License-Identifier: Apache-2.0
// How often each number occurs in each row, as a sparse tensor of those that do; and in sparse and
// ragged tensors, as a dense one.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/index_values.h"

namespace weft::ops::math::count {
namespace {

using Weights = TypeList<int32_t, int64_t, float, double>;

enum class Form { kDense, kSparse, kRagged };

Form FormOf(const KernelConstruction& c) {
  if (c.op().starts_with("Dense")) return Form::kDense;
  return c.op().starts_with("Sparse") ? Form::kSparse : Form::kRagged;
}

// Values and the row that each of them lies in.
struct Rows {
  const Tensor* values = nullptr;
  int64_t count = 1;
  bool is_vector = false;  // one row, whose number the output does not say
  std::vector<int64_t> row_of;
};

StatusOr<Rows> DenseRows(const Tensor& values) {
  if (values.rank() != 1 && values.rank() != 2) {
    return InvalidArgument("Input must be a 1 or 2-dimensional tensor. Got: ",
                           values.shape().ToString());
  }
  Rows rows{.values = &values, .is_vector = values.rank() == 1};
  if (!rows.is_vector) rows.count = values.dim(0);
  if (rows.count == 0) return InvalidArgument("Invalid input: Shapes dimension cannot be 0.");
  const int64_t columns = values.num_elements() / rows.count;
  for (int64_t i = 0; i < values.num_elements(); ++i) rows.row_of.push_back(i / columns);
  return rows;
}

StatusOr<Rows> SparseRows(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  if (indices.rank() != 2) {
    return InvalidArgument("Input indices must be a 2-dimensional tensor. Got: ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("Input values must be a vector. Got: ", values.shape().ToString());
  }
  if (shape.rank() != 1) {
    return InvalidArgument("Input shape must be a vector. Got: ", shape.shape().ToString());
  }
  if (values.dim(0) != indices.dim(0)) {
    return InvalidArgument("Number of values must match first dimension of indices. Got ",
                           values.dim(0), " values, indices shape: ", indices.shape().ToString());
  }
  const int64_t rank = indices.dim(1);
  if (shape.dim(0) != rank) {
    return InvalidArgument("Number of dimensions must match second dimension of indices. Got ",
                           shape.dim(0),
                           " dimensions, indices shape: ", indices.shape().ToString());
  }
  if (rank == 0) return InvalidArgument("The shape argument requires at least one element.");
  const int64_t *at = indices.data<int64_t>(), *sizes = shape.data<int64_t>();
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    if (at[i] >= 0 && at[i] < sizes[i % rank]) continue;
    return InvalidArgument("Invalid index value at ", i / rank, ": dimension ", i % rank,
                           " has value ", at[i], " which is not in [0, ", sizes[i % rank], ")");
  }
  Rows rows{.values = &values, .is_vector = rank == 1};
  if (!rows.is_vector) rows.count = sizes[0];
  if (rows.count < 0 || rows.count >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Cannot allocate ", rows.count,
                           " batches, is the dense shape too wide?");
  }
  for (int64_t i = 0; i < values.dim(0); ++i) {
    rows.row_of.push_back(rows.is_vector ? 0 : at[i * rank]);
  }
  return rows;
}

StatusOr<Rows> RaggedRows(const Tensor& splits, const Tensor& values) {
  if (splits.rank() != 1 || values.rank() != 1) {
    return InvalidArgument("splits and values must be vectors, got shapes ",
                           splits.shape().ToString(), " and ", values.shape().ToString());
  }
  Rows rows{.values = &values, .count = splits.dim(0) - 1};
  if (rows.count < 1) {
    return InvalidArgument("Must provide at least 2 elements for the splits argument");
  }
  const int64_t* at = splits.data<int64_t>();
  if (at[0] != 0) return InvalidArgument("Splits must start with 0, not with ", at[0]);
  for (int64_t row = 0; row < rows.count; ++row) {
    if (at[row + 1] < at[row] || at[row + 1] > values.dim(0)) {
      return InvalidArgument("Splits must increase to the number of values, ", values.dim(0),
                             ", but splits[", row + 1, "] is ", at[row + 1]);
    }
    rows.row_of.resize(static_cast<size_t>(at[row + 1]), row);
  }
  if (at[rows.count] == values.dim(0)) return rows;
  return InvalidArgument("Splits must end with the number of values, got ", at[rows.count],
                         " instead of ", values.dim(0));
}

StatusOr<Rows> ReadRows(const KernelContext& c, Form form) {
  if (form == Form::kDense) return DenseRows(c.input(0));
  if (form == Form::kRagged) return RaggedRows(c.input(0), c.input(1));
  return SparseRows(c.input(0), c.input(1), c.input(2));
}

// The values that occur, and how often.
class SparseCountKernel final : public OpKernel {
 public:
  explicit SparseCountKernel(KernelConstruction& c)
      : form_(FormOf(c)),
        least_(c.AttrOr<int64_t>("minlength", -1)),
        most_(c.AttrOr<int64_t>("maxlength", -1)),
        binary_(c.AttrOr<bool>("binary_output", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& weights = c.input(c.num_inputs() - 1);
    WEFT_ASSIGN_OR_RETURN(const Rows rows, ReadRows(c, form_));
    const bool weighted = weights.num_elements() > 0;
    if (weighted && weights.shape() != rows.values->shape()) {
      return InvalidArgument(
          "Weights and values must have the same shape. Weight shape: ", weights.shape().ToString(),
          "; values shape: ", rows.values->shape().ToString());
    }
    Status status;
    VisitDType(c.output_dtype(1), Weights(), [&]<typename W>() {
      status = Count<W>(c, rows, weighted ? weights.data<W>() : nullptr);
    });
    return status;
  }

 private:
  template <typename W>
  Status Count(KernelContext& c, const Rows& rows, const W* weights) const {
    std::map<std::pair<int64_t, int64_t>, W> counts;
    int64_t largest = 0;
    for (int64_t i = 0; i < rows.values->num_elements(); ++i) {
      const int64_t value = IndexAt(*rows.values, i);
      if (value < 0) return InvalidArgument("Input values must all be non-negative");
      if (most_ > 0 && value >= most_) continue;
      largest = std::max(largest, value);
      W& total = counts[{rows.row_of[static_cast<size_t>(i)], value}];
      total = binary_ ? W(1) : static_cast<W>(total + (weights == nullptr ? W(1) : weights[i]));
    }
    const auto n = static_cast<int64_t>(counts.size());
    const int64_t rank = rows.is_vector ? 1 : 2;
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{n, rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{n}));
    int64_t* at = indices->data<int64_t>();
    W* to = values->data<W>();
    for (const auto& [place, total] : counts) {
      if (rank == 2) *at++ = place.first;
      *at++ = place.second;
      *to++ = total;
    }
    const int64_t width = most_ > 0 ? most_ : std::max(largest + 1, least_);
    const int64_t sizes[] = {rows.count, width};
    c.SetOutput(
        2, Tensor::FromSpan<int64_t>(Shape{rank}, absl::MakeConstSpan(sizes + (2 - rank), rank)));
    return absl::OkStatus();
  }

  const Form form_;
  const int64_t least_;
  const int64_t most_;
  const bool binary_;
};

// A row of `size` numbers for each row of values.
class DenseCountKernel final : public OpKernel {
 public:
  explicit DenseCountKernel(KernelConstruction& c)
      : form_(FormOf(c)), binary_(c.AttrOr<bool>("binary_output", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor &size_tensor = c.input(c.num_inputs() - 2), &weights = c.input(c.num_inputs() - 1);
    if (size_tensor.rank() != 0) {
      return InvalidArgument("Shape must be rank 0 but is rank ", size_tensor.rank());
    }
    const int64_t size = IndexAt(size_tensor, 0);
    if (size < 0) return InvalidArgument("size (", size, ") must be non-negative");
    WEFT_ASSIGN_OR_RETURN(const Rows rows, ReadRows(c, form_));
    const bool weighted = weights.num_elements() > 0;
    if (weighted && weights.shape() != rows.values->shape()) {
      return InvalidArgument(
          "Weights and values must have the same shape. Weight shape: ", weights.shape().ToString(),
          "; values shape: ", rows.values->shape().ToString());
    }
    const Dims dims = rows.is_vector ? Dims{size} : Dims{rows.count, size};
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    Status status;
    VisitDType(out->dtype(), Weights(), [&]<typename W>() {
      W* bins = out->data<W>();
      std::fill_n(bins, out->num_elements(), W(0));
      for (int64_t i = 0; i < rows.values->num_elements(); ++i) {
        const int64_t value = IndexAt(*rows.values, i);
        if (value < 0 && form_ == Form::kSparse) continue;  // as TensorFlow does here alone
        if (value < 0) {
          status = InvalidArgument("Input must be non-negative");
          return;
        }
        if (value >= size) continue;
        W& bin = bins[rows.row_of[static_cast<size_t>(i)] * size + value];
        bin = binary_ ? W(1) : static_cast<W>(bin + (weighted ? weights.data<W>()[i] : W(1)));
      }
    });
    return status;
  }

 private:
  const Form form_;
  const bool binary_;
};

Status SparseCountShape(ShapeContext& c) {
  const PartialShape& first = c.input(0);
  const bool is_ragged = c.num_inputs() == 3;
  int64_t rank = is_ragged ? 2 : c.num_inputs() == 2 ? first.rank() : -1;
  if (c.num_inputs() == 4 && c.input(2).rank() == 1) rank = c.input(2).dim(0) == 1 ? 1 : 2;
  if (c.num_inputs() == 4 && c.input(2).rank() == 1 && c.input(2).dim(0) < 0) rank = -1;
  c.set_output(0, PartialShape({-1, rank}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, PartialShape({rank}));
  return absl::OkStatus();
}

Status DenseCountShape(ShapeContext& c) {
  const int at = c.num_inputs() - 2;
  WEFT_RETURN_IF_ERROR(c.WithRank(at, 0).status());
  const Tensor* constant = c.constant(at);
  const int64_t size =
      constant != nullptr && constant->num_elements() == 1 ? IndexAt(*constant, 0) : -1;
  if (constant != nullptr && size < 0) {
    return InvalidArgument("size (", size, ") must be non-negative");
  }
  if (c.num_inputs() == 4) {
    const int64_t splits = c.input(0).rank() == 1 ? c.input(0).dim(0) : -1;
    c.set_output(0, PartialShape({splits > 0 ? splits - 1 : -1, size}));
  } else if (c.constant(2) != nullptr && c.constant(2)->rank() == 1) {
    const Tensor& shape = *c.constant(2);
    c.set_output(0, shape.dim(0) == 1
                        ? PartialShape({size})
                        : PartialShape({std::max<int64_t>(-1, IndexAt(shape, 0)), size}));
  }
  return absl::OkStatus();
}

OpSpec& AddSparseOutput(OpSpec& spec) {
  return spec.Input("weights: output_type")
      .Output("output_indices: int64")
      .Output("output_values: output_type")
      .Output("output_dense_shape: int64")
      .Attr("T: {int32, int64}")
      .Attr("minlength: int >= -1 = -1")
      .Attr("maxlength: int >= -1 = -1")
      .Attr("binary_output: bool")
      .Attr("output_type: {int32, int64, float, double}")
      .Shape(SparseCountShape)
      .NoGradient()
      .Kernel(MakeKernel<SparseCountKernel>());
}

OpSpec& AddDenseOutput(OpSpec& spec) {
  return spec.Input("size: Tidx")
      .HostInput("size")
      .Input("weights: T")
      .Output("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr("T: {int32, int64, float, double}")
      .Attr("binary_output: bool = false")
      .Shape(DenseCountShape)
      .NoGradient()
      .Kernel(MakeKernel<DenseCountKernel>());
}

}  // namespace

void Register(Catalogue& catalogue) {
  const std::string sparse =
      "How often each number occurs in each row of `values`, as a sparse tensor.\nNumbers "
      "from maxlength on are left out; weights, if there are any, are summed.";
  OpSpec dense_in("DenseCountSparseOutput"), sparse_in("SparseCountSparseOutput"),
      ragged_in("RaggedCountSparseOutput");
  dense_in.Doc(sparse).Input("values: T");
  sparse_in.Doc(sparse).Input("indices: int64").Input("values: T").Input("dense_shape: int64");
  ragged_in.Doc(sparse).Input("splits: int64").Input("values: T");
  for (OpSpec* spec : {&dense_in, &sparse_in, &ragged_in}) {
    catalogue.Add(std::move(AddSparseOutput(*spec)));
  }
  const std::string dense =
      "How often each number below `size` occurs in each row of `values`.\nWeights, if there are "
      "any, are summed. InvalidArgument for a number below 0.";
  OpSpec of_sparse("SparseBincount"), of_ragged("RaggedBincount");
  of_sparse.Doc(dense).Input("indices: int64").Input("values: Tidx").Input("dense_shape: int64");
  of_ragged.Doc(dense).Input("splits: int64").Input("values: Tidx");
  for (OpSpec* spec : {&of_sparse, &of_ragged}) catalogue.Add(std::move(AddDenseOutput(*spec)));
}

}  // namespace weft::ops::math::count
