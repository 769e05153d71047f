// SPDX-License-Identifier: Apache-2.0
// Cholesky factors of sparse matrices, and orders that keep them sparse.
#include <complex>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/linalg/eigen.h"
#include "weft/ops/sparse/csr_kernel.h"

// Eigen's other headers need what the one above sets.
#include <Eigen/OrderingMethods>
#include <Eigen/SparseCholesky>

namespace weft::ops::linalg::sparse_cholesky {
namespace {

using sparse::CsrMatrix;
using sparse::CsrRows;

// Of matrix m, with elements of double precision.
template <typename T>
Eigen::SparseMatrix<T, Eigen::RowMajor> Load(const CsrMatrix& matrix, int64_t m) {
  Eigen::SparseMatrix<T, Eigen::RowMajor> loaded(matrix.rows(), matrix.columns());
  std::vector<Eigen::Triplet<T>> entries;
  const CsrRows& rows = matrix.matrix(m);
  VisitStored<T>(matrix.values(), [&]<typename S>() {
    const S* const values = matrix.values().data<S>() + matrix.offset(m);
    for (int64_t row = 0; row < matrix.rows(); ++row) {
      for (int32_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
        entries.emplace_back(static_cast<int>(row), rows.columns[i], static_cast<T>(values[i]));
      }
    }
  });
  loaded.setFromTriplets(entries.begin(), entries.end());
  return loaded;
}

Status CheckSquare(const CsrMatrix& matrix) {
  if (matrix.rows() == matrix.columns()) return absl::OkStatus();
  return InvalidArgument("sparse matrix must be square; got: ", matrix.columns(),
                         " != ", matrix.rows());
}

// Shape of a permutation for each matrix.
Shape PermutationShape(const CsrMatrix& matrix) {
  return matrix.is_batch() ? Shape{matrix.batch(), matrix.rows()} : Shape{matrix.rows()};
}

class OrderingKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, sparse::CsrOf(c.input(0)));
    WEFT_RETURN_IF_ERROR(CheckSquare(*matrix));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, PermutationShape(*matrix)));
    for (int64_t m = 0; m < matrix->batch(); ++m) {
      // Only where entries stand counts.
      Eigen::SparseMatrix<double, Eigen::RowMajor> pattern(matrix->rows(), matrix->columns());
      std::vector<Eigen::Triplet<double>> entries;
      const CsrRows& rows = matrix->matrix(m);
      for (int64_t row = 0; row < matrix->rows(); ++row) {
        for (int32_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
          entries.emplace_back(static_cast<int>(row), rows.columns[i], 1.0);
        }
      }
      pattern.setFromTriplets(entries.begin(), entries.end());
      Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> order(matrix->rows());
      Eigen::AMDOrdering<int>()(pattern.selfadjointView<Eigen::Lower>(), order);
      std::copy_n(order.indices().data(), matrix->rows(),
                  out->data<int32_t>() + m * matrix->rows());
    }
    return absl::OkStatus();
  }
};

class CholeskyKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("type"));
    return std::make_unique<CholeskyKernel>(dtype);
  }
  explicit CholeskyKernel(DType dtype) : dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, sparse::CsrOf(c.input(0), dtype_));
    WEFT_RETURN_IF_ERROR(CheckSquare(*matrix));
    const Tensor& permutation = c.input(1);
    if (!(permutation.shape() == PermutationShape(*matrix))) {
      return InvalidArgument("permutation must have shape ", PermutationShape(*matrix).ToString(),
                             ", has ", permutation.shape().ToString());
    }
    WEFT_RETURN_IF_ERROR(CheckPermutations(permutation, matrix->rows()));
    const bool is_complex = dtype_ == DType::kComplex64 || dtype_ == DType::kComplex128;
    return is_complex ? Factor<Complex128>(c, *matrix) : Factor<double>(c, *matrix);
  }

 private:
  static Status CheckPermutations(const Tensor& permutation, int64_t size) {
    for (int64_t begin = 0; begin < permutation.num_elements(); begin += size) {
      std::vector<bool> seen(static_cast<size_t>(size), false);
      for (int64_t i = begin; i < begin + size; ++i) {
        const int32_t at = permutation.data<int32_t>()[i];
        if (at < 0 || at >= size || seen[static_cast<size_t>(at)]) {
          return InvalidArgument("permutation has ", at, " at ", i, ", which is no permutation of ",
                                 size, " rows");
        }
        seen[static_cast<size_t>(at)] = true;
      }
    }
    return absl::OkStatus();
  }

  template <typename T>
  static Status Factor(KernelContext& c, const CsrMatrix& matrix) {
    std::vector<CsrRows> factors(static_cast<size_t>(matrix.batch()));
    std::vector<T> values;
    for (int64_t m = 0; m < matrix.batch(); ++m) {
      using Sparse = Eigen::SparseMatrix<T, Eigen::RowMajor>;
      Sparse loaded = Load<T>(matrix, m);
      Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> order(matrix.rows());
      std::copy_n(c.input(1).data<int32_t>() + m * matrix.rows(), matrix.rows(),
                  order.indices().data());
      Sparse permuted(matrix.rows(), matrix.rows());
      permuted.template selfadjointView<Eigen::Upper>() =
          loaded.template selfadjointView<Eigen::Lower>().twistedBy(order.inverse());
      Eigen::SimplicialLLT<Sparse, Eigen::Upper, Eigen::NaturalOrdering<int>> solver;
      solver.compute(permuted);
      if (solver.info() != Eigen::Success) {
        return InvalidArgument("Sparse Cholesky factorization failed!");
      }
      const Sparse factor = solver.matrixL();
      CsrRows& to = factors[static_cast<size_t>(m)];
      to.starts.push_back(0);
      for (int row = 0; row < factor.outerSize(); ++row) {
        for (typename Sparse::InnerIterator entry(factor, row); entry; ++entry) {
          to.columns.push_back(static_cast<int32_t>(entry.col()));
          values.push_back(entry.value());
        }
        to.starts.push_back(static_cast<int32_t>(to.columns.size()));
      }
    }
    WEFT_ASSIGN_OR_RETURN(
        Tensor kept, Tensor::Allocate(matrix.dtype(), Shape{static_cast<int64_t>(values.size())}));
    VisitStored<T>(kept, [&]<typename S>() {
      std::transform(values.begin(), values.end(), kept.data<S>(),
                     [](T x) { return static_cast<S>(x); });
    });
    c.SetOutput(0, sparse::VariantOf(
                       MakeRef<CsrMatrix>(matrix.shape(), std::move(factors), std::move(kept))));
    return absl::OkStatus();
  }

  const DType dtype_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SparseMatrixOrderingAMD")
                    .Doc("An order of the rows of each symmetric matrix, in which its Cholesky "
                         "factor has few entries (approximate minimum degree).")
                    .Input("input: variant")
                    .Output("output: int32")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<OrderingKernel>()));
  catalogue.Add(OpSpec("SparseMatrixSparseCholesky")
                    .Doc("The Cholesky factor of each matrix with rows and columns in the order of "
                         "`permutation`.\nOnly the lower triangle is read. InvalidArgument for a "
                         "matrix that is not positive definite.")
                    .Input("input: variant")
                    .Input("permutation: int32")
                    .Output("output: variant")
                    .Attr("type: {float, double, complex64, complex128}")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CholeskyKernel>()));
}

}  // namespace weft::ops::linalg::sparse_cholesky
