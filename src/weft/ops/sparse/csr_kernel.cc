// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/sparse/csr_kernel.h"

#include <limits>

#include "weft/ops/elements.h"

namespace weft::ops::sparse {

StatusOr<Ref<CsrMatrix>> CsrOf(const Tensor& variant) {
  auto* found = variant.shape().IsScalar()
                    ? dynamic_cast<CsrMatrix*>(variant.data<Variant>()->value.get())
                    : nullptr;
  if (found == nullptr) {
    return InvalidArgument(
        "Tensor must be a scalar variant that holds a CSRSparseMatrix, has "
        "shape ",
        variant.shape().ToString());
  }
  return Ref<CsrMatrix>(found);
}

StatusOr<Ref<CsrMatrix>> CsrOf(const Tensor& variant, DType dtype) {
  WEFT_ASSIGN_OR_RETURN(Ref<CsrMatrix> matrix, CsrOf(variant));
  if (matrix->dtype() == dtype) return matrix;
  return InvalidArgument("Asked for a CSRSparseMatrix of type ", DTypeName(dtype),
                         " but saw dtype: ", DTypeName(matrix->dtype()));
}

Tensor VariantOf(Ref<CsrMatrix> matrix) { return Tensor::Scalar(Variant{std::move(matrix)}); }

Status CheckCsrShape(const Shape& shape) {
  if (shape.rank() != 2 && shape.rank() != 3) {
    return InvalidArgument("A sparse matrix must have rank 2 or 3, has shape ", shape.ToString());
  }
  // Rows take memory even where they are empty.
  constexpr int64_t kMost = int64_t{1} << 28;
  int64_t all_rows = shape.rank() == 3 ? shape.dim(0) : 1;
  if (shape.dim(shape.rank() - 1) > std::numeric_limits<int32_t>::max() || all_rows > kMost ||
      shape.dim(shape.rank() - 2) > kMost ||
      all_rows * std::max<int64_t>(1, shape.dim(shape.rank() - 2)) > kMost) {
    return InvalidArgument("A sparse matrix of shape ", shape.ToString(), " has too many rows");
  }
  return absl::OkStatus();
}

CsrBuilder::CsrBuilder(const Shape& shape)
    : shape_(shape),
      rows_(static_cast<size_t>((shape.rank() == 3 ? shape.dim(0) : 1) *
                                shape.dim(shape.rank() - 2))) {}

void CsrBuilder::Add(int64_t matrix, int64_t row, int32_t column, int64_t source) {
  rows_[static_cast<size_t>(matrix * shape_.dim(shape_.rank() - 2) + row)].push_back(
      {column, source});
}

StatusOr<Ref<CsrMatrix>> CsrBuilder::Take(const Tensor& values) {
  const int64_t batch = shape_.rank() == 3 ? shape_.dim(0) : 1;
  const auto rows = static_cast<size_t>(shape_.dim(shape_.rank() - 2));
  std::vector<CsrRows> matrices(static_cast<size_t>(batch));
  int64_t total = 0;
  for (const auto& row : rows_) total += static_cast<int64_t>(row.size());
  WEFT_ASSIGN_OR_RETURN(Tensor kept, Tensor::Allocate(values.dtype(), Shape{total}));
  int64_t at = 0;
  for (size_t m = 0; m < matrices.size(); ++m) {
    CsrRows& to = matrices[m];
    to.starts.push_back(0);
    for (size_t r = 0; r < rows; ++r) {
      for (const Entry& entry : rows_[m * rows + r]) {
        to.columns.push_back(entry.column);
        CopyElements(values, entry.source, 1, &kept, at++);
      }
      to.starts.push_back(static_cast<int32_t>(to.columns.size()));
    }
  }
  return MakeRef<CsrMatrix>(shape_, std::move(matrices), std::move(kept));
}

StatusOr<Ref<CsrMatrix>> Transposed(const CsrMatrix& matrix, bool conjugate) {
  Shape shape = matrix.shape();
  shape.SetDim(shape.rank() - 2, matrix.columns());
  shape.SetDim(shape.rank() - 1, matrix.rows());
  WEFT_RETURN_IF_ERROR(CheckCsrShape(shape));
  CsrBuilder builder(shape);
  for (int64_t m = 0; m < matrix.batch(); ++m) {
    const CsrRows& from = matrix.matrix(m);
    for (int64_t row = 0; row < matrix.rows(); ++row) {
      for (int32_t i = from.starts[row]; i < from.starts[row + 1]; ++i) {
        builder.Add(m, from.columns[i], static_cast<int32_t>(row), matrix.offset(m) + i);
      }
    }
  }
  WEFT_ASSIGN_OR_RETURN(Ref<CsrMatrix> result, builder.Take(matrix.values()));
  if (conjugate) return Conjugated(*result);
  return result;
}

StatusOr<Ref<CsrMatrix>> Conjugated(const CsrMatrix& matrix) {
  WEFT_ASSIGN_OR_RETURN(Tensor values, matrix.values().Clone());
  VisitDType(values.dtype(), TypeList<Complex64, Complex128>(), [&]<typename T>() {
    for (T& x : values.mutable_span<T>()) x = std::conj(x);
  });
  std::vector<CsrRows> rows;
  for (int64_t m = 0; m < matrix.batch(); ++m) rows.push_back(matrix.matrix(m));
  return MakeRef<CsrMatrix>(matrix.shape(), std::move(rows), std::move(values));
}

}  // namespace weft::ops::sparse
