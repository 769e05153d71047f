// SPDX-License-Identifier: Apache-2.0
// Sparse matrices by rows from and to dense tensors and sparse ones.
#include <algorithm>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/sparse/csr_kernel.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::csr_convert {
namespace {

// The matrix whose entries stand at `indices` [n, rank], in any order of rows.
StatusOr<Ref<CsrMatrix>> FromIndices(const Tensor& indices, const Shape& shape,
                                     const Tensor& values, bool values_are_dense) {
  WEFT_RETURN_IF_ERROR(CheckCsrShape(shape));
  const int rank = shape.rank();
  if (indices.rank() != 2 || indices.dim(1) != rank) {
    return InvalidArgument("indices must be a matrix of ", rank, " columns, saw ",
                           indices.shape().ToString());
  }
  CsrBuilder builder(shape);
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t* const at = indices.data<int64_t>() + i * rank;
    int64_t place = 0;
    for (int d = 0; d < rank; ++d) {
      if (at[d] < 0 || at[d] >= shape.dim(d)) {
        return InvalidArgument("Index ", i, " points outside of the matrix: ", at[d],
                               " is not in [0, ", shape.dim(d), ")");
      }
      place = place * shape.dim(d) + at[d];
    }
    builder.Add(rank == 3 ? at[0] : 0, at[rank - 2], static_cast<int32_t>(at[rank - 1]),
                values_are_dense ? place : i);
  }
  return builder.Take(values);
}

class FromSparseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(2), "dense_shape"));
    WEFT_ASSIGN_OR_RETURN(Ref<CsrMatrix> matrix,
                          FromIndices(*input.indices, shape, *input.values, false));
    c.SetOutput(0, VariantOf(std::move(matrix)));
    return absl::OkStatus();
  }
};

class FromDenseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<CsrMatrix> matrix,
                          FromIndices(c.input(1), c.input(0).shape(), c.input(0), true));
    c.SetOutput(0, VariantOf(std::move(matrix)));
    return absl::OkStatus();
  }
};

class ToDenseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, CsrOf(c.input(0), c.output_dtype(0)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, matrix->shape()));
    ClearElements(out, 0, out->num_elements());
    for (int64_t m = 0; m < matrix->batch(); ++m) {
      const CsrRows& rows = matrix->matrix(m);
      for (int64_t row = 0; row < matrix->rows(); ++row) {
        for (int32_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
          CopyElements(matrix->values(), matrix->offset(m) + i, 1, out,
                       (m * matrix->rows() + row) * matrix->columns() + rows.columns[i]);
        }
      }
    }
    return absl::OkStatus();
  }
};

class ToSparseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, CsrOf(c.input(0), c.output_dtype(1)));
    const int64_t rank = matrix->shape().rank();
    WEFT_ASSIGN_OR_RETURN(Tensor * indices,
                          c.AllocateOutput(0, Shape{matrix->values().dim(0), rank}));
    int64_t* at = indices->data<int64_t>();
    for (int64_t m = 0; m < matrix->batch(); ++m) {
      const CsrRows& rows = matrix->matrix(m);
      for (int64_t row = 0; row < matrix->rows(); ++row) {
        for (int32_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
          if (rank == 3) *at++ = m;
          *at++ = row;
          *at++ = rows.columns[i];
        }
      }
    }
    c.SetOutput(1, matrix->values());
    WEFT_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2, Shape{rank}));
    std::copy_n(matrix->shape().dims().begin(), rank, shape->data<int64_t>());
    return absl::OkStatus();
  }
};

class ComponentsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, CsrOf(c.input(0), c.output_dtype(2)));
    if (c.input(1).rank() != 0) {
      return InvalidArgument("index should be a scalar, but saw: ", c.input(1).shape().ToString());
    }
    const int32_t index = c.input(1).scalar<int32_t>();
    if (index < 0 || index >= matrix->batch()) {
      return InvalidArgument("index (", index, ") not in [0, ", matrix->batch(), ")");
    }
    const CsrRows& rows = matrix->matrix(index);
    const auto give = [&c](int i, const std::vector<int32_t>& values) -> Status {
      WEFT_ASSIGN_OR_RETURN(Tensor * out,
                            c.AllocateOutput(i, Shape{static_cast<int64_t>(values.size())}));
      std::copy(values.begin(), values.end(), out->data<int32_t>());
      return absl::OkStatus();
    };
    WEFT_RETURN_IF_ERROR(give(0, rows.starts));
    WEFT_RETURN_IF_ERROR(give(1, rows.columns));
    c.SetOutput(2, matrix->values().SliceRows(matrix->offset(index), matrix->offset(index + 1)));
    return absl::OkStatus();
  }
};

class CountKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, CsrOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(
        Tensor * out, c.AllocateOutput(0, matrix->is_batch() ? Shape{matrix->batch()} : Shape()));
    for (int64_t m = 0; m < matrix->batch(); ++m) {
      out->data<int32_t>()[m] = static_cast<int32_t>(matrix->count(m));
    }
    return absl::OkStatus();
  }
};

constexpr char kType[] = "type: {float, double, complex64, complex128}";

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SparseTensorToCSRSparseMatrix")
                    .Doc("A sparse tensor of rank 2 or 3 as matrices by rows.\nIts positions must "
                         "be in order. InvalidArgument for one outside.")
                    .Input("indices: int64")
                    .Input("values: T")
                    .Input("dense_shape: int64")
                    .Output("sparse_matrix: variant")
                    .Attr("T: {float, double, complex64, complex128}")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<FromSparseKernel>()));
  catalogue.Add(OpSpec("DenseToCSRSparseMatrix")
                    .Doc("The elements at `indices` [n, rank] of dense matrices as sparse ones.")
                    .Input("dense_input: T")
                    .Input("indices: int64")
                    .Output("sparse_output: variant")
                    .Attr("T: {float, double, complex64, complex128}")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<FromDenseKernel>()));
  catalogue.Add(OpSpec("CSRSparseMatrixToDense")
                    .Doc("Sparse matrices as dense ones.")
                    .Input("sparse_input: variant")
                    .Output("dense_output: type")
                    .Attr(kType)
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ToDenseKernel>()));
  catalogue.Add(OpSpec("CSRSparseMatrixToSparseTensor")
                    .Doc("Sparse matrices as a sparse tensor: positions, values, shape.")
                    .Input("sparse_matrix: variant")
                    .Output("indices: int64")
                    .Output("values: type")
                    .Output("dense_shape: int64")
                    .Attr(kType)
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ToSparseKernel>()));
  catalogue.Add(OpSpec("CSRSparseMatrixComponents")
                    .Doc("Matrix `index` of a batch: where its rows begin, the columns and the "
                         "values of its entries.")
                    .Input("csr_sparse_matrix: variant")
                    .Input("index: int32")
                    .HostInput("index")
                    .Output("row_ptrs: int32")
                    .Output("col_inds: int32")
                    .Output("values: type")
                    .Attr(kType)
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ComponentsKernel>()));
  catalogue.Add(OpSpec("SparseMatrixNNZ")
                    .Doc("How many entries each matrix has.")
                    .Input("sparse_matrix: variant")
                    .Output("nnz: int32")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<CountKernel>()));
}

}  // namespace weft::ops::sparse::csr_convert
