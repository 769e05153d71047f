// SPDX-License-Identifier: Apache-2.0
// Sparse matrices by rows, one or a batch of them, in a variant.
#pragma once

#include <utility>
#include <vector>

#include "weft/kernel/kernel_context.h"
#include "weft/tensor/variant.h"

namespace weft::ops::sparse {

using CsrElements = TypeList<float, double, Complex64, Complex128>;

// The entries of one matrix: those of row r are [starts[r], starts[r + 1]), in order of columns.
struct CsrRows {
  std::vector<int32_t> starts;
  std::vector<int32_t> columns;
};

// Immutable. The values of all matrices follow each other in one vector.
class CsrMatrix final : public VariantValue {
 public:
  CsrMatrix(Shape shape, std::vector<CsrRows> matrices, Tensor values)
      : shape_(std::move(shape)), matrices_(std::move(matrices)), values_(std::move(values)) {
    offsets_.push_back(0);
    for (const CsrRows& rows : matrices_) {
      offsets_.push_back(offsets_.back() + static_cast<int64_t>(rows.columns.size()));
    }
  }
  absl::string_view type_name() const override { return "tensorflow::CSRSparseMatrix"; }

  // [rows, columns], or [batch, rows, columns].
  const Shape& shape() const { return shape_; }
  bool is_batch() const { return shape_.rank() == 3; }
  int64_t batch() const { return static_cast<int64_t>(matrices_.size()); }
  int64_t rows() const { return shape_.dim(shape_.rank() - 2); }
  int64_t columns() const { return shape_.dim(shape_.rank() - 1); }
  DType dtype() const { return values_.dtype(); }
  const CsrRows& matrix(int64_t i) const { return matrices_[static_cast<size_t>(i)]; }
  const Tensor& values() const { return values_; }
  // Where the values of matrix i begin.
  int64_t offset(int64_t i) const { return offsets_[static_cast<size_t>(i)]; }
  int64_t count(int64_t i) const { return offset(i + 1) - offset(i); }

 private:
  const Shape shape_;
  const std::vector<CsrRows> matrices_;
  const Tensor values_;
  std::vector<int64_t> offsets_;
};

// The matrix in a scalar variant; InvalidArgument if there is another value, or one whose elements
// are not `dtype`.
StatusOr<Ref<CsrMatrix>> CsrOf(const Tensor& variant);
StatusOr<Ref<CsrMatrix>> CsrOf(const Tensor& variant, DType dtype);
Tensor VariantOf(Ref<CsrMatrix> matrix);

// InvalidArgument unless it is one matrix or a batch of them, whose sizes 32 bits can count.
Status CheckCsrShape(const Shape& shape);

// Of entries in any order of rows, one call for each.
class CsrBuilder {
 public:
  explicit CsrBuilder(const Shape& shape);
  // Entry `source` of the values stands there. Entries of one row come in order of columns.
  void Add(int64_t matrix, int64_t row, int32_t column, int64_t source);
  // Takes the values of the entries from `values`, by their sources.
  StatusOr<Ref<CsrMatrix>> Take(const Tensor& values);

 private:
  struct Entry {
    int32_t column;
    int64_t source;
  };
  const Shape shape_;
  std::vector<std::vector<Entry>> rows_;  // of all matrices
};

// The same entries, each conjugated.
StatusOr<Ref<CsrMatrix>> Conjugated(const CsrMatrix& matrix);
// Each matrix with rows and columns exchanged.
StatusOr<Ref<CsrMatrix>> Transposed(const CsrMatrix& matrix, bool conjugate);

}  // namespace weft::ops::sparse
