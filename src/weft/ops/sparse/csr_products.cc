// SPDX-License-Identifier: Apache-2.0
// Products and transposes of sparse matrices by rows.
#include <algorithm>
#include <complex>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/elements.h"
#include "weft/ops/sparse/csr_kernel.h"

namespace weft::ops::sparse::csr_products {
namespace {

template <typename T>
T Conjugate(T x) {
  if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// How a factor stands in a product.
struct Side {
  bool transposes = false;
  bool conjugates = false;
  static StatusOr<Side> Of(const KernelConstruction& c, const char* name) {
    const bool transpose = c.AttrOr(absl::StrCat("transpose_", name), false);
    const bool adjoint = c.AttrOr(absl::StrCat("adjoint_", name), false);
    if (transpose && adjoint) {
      return InvalidArgument("Only one of adjoint_", name, " and transpose_", name,
                             " may be true.");
    }
    return Side{transpose || adjoint, adjoint};
  }
  StatusOr<Ref<CsrMatrix>> Turned(const Ref<CsrMatrix>& matrix) const {
    if (!transposes) return matrix;
    return Transposed(*matrix, conjugates);
  }
};

class DenseProductKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    auto kernel = std::make_unique<DenseProductKernel>();
    WEFT_ASSIGN_OR_RETURN(kernel->a_, Side::Of(c, "a"));
    WEFT_ASSIGN_OR_RETURN(kernel->b_, Side::Of(c, "b"));
    kernel->transposes_output_ = c.AttrOr("transpose_output", false);
    kernel->conjugates_output_ = c.AttrOr("conjugate_output", false);
    return kernel;
  }

  Status Compute(KernelContext& c) override {
    const Tensor& b = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> given, CsrOf(c.input(0), b.dtype()));
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> a, a_.Turned(given));
    const int rank = b.rank();
    if (rank != a->shape().rank()) {
      return InvalidArgument("Ranks of a and b must match, saw: ", a->shape().rank(), " vs. ", rank,
                             ".");
    }
    if (rank == 3 && b.dim(0) != a->batch()) {
      return InvalidArgument("Batch sizes of a and b must match, saw: ", a->batch(), " vs. ",
                             b.dim(0), ".");
    }
    const int64_t inner = b.dim(b_.transposes ? rank - 1 : rank - 2),
                  width = b.dim(b_.transposes ? rank - 2 : rank - 1);
    if (inner != a->columns()) {
      return InvalidArgument("Inner dimensions of a and b must match, saw: ", a->columns(), " vs. ",
                             inner, ".");
    }
    Shape shape = b.shape();
    shape.SetDim(rank - 2, transposes_output_ ? width : a->rows());
    shape.SetDim(rank - 1, transposes_output_ ? a->rows() : width);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const bool known = VisitDType(b.dtype(), CsrElements(), [&]<typename T>() {
      const int64_t block = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width));
      c.ParallelFor(a->batch() * a->rows(), block, [&](int64_t begin, int64_t end) {
        std::vector<T> sums(static_cast<size_t>(width));
        for (int64_t line = begin; line < end; ++line) {
          MultiplyRow<T>(*a, b, line / a->rows(), line % a->rows(), inner, &sums);
          Store(sums, line / a->rows(), line % a->rows(), a->rows(), out);
        }
      });
    });
    return known ? absl::OkStatus()
                 : InvalidArgument("SparseMatrixMatMul of ", DTypeName(b.dtype()));
  }

 private:
  template <typename T>
  void MultiplyRow(const CsrMatrix& a, const Tensor& b, int64_t m, int64_t row, int64_t inner,
                   std::vector<T>* sums) const {
    const auto width = static_cast<int64_t>(sums->size());
    const T* const right = b.data<T>() + m * inner * width;
    const T* const values = a.values().data<T>() + a.offset(m);
    const CsrRows& rows = a.matrix(m);
    std::fill(sums->begin(), sums->end(), T{});
    for (int32_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
      const int64_t k = rows.columns[i];
      for (int64_t j = 0; j < width; ++j) {
        const T x = b_.transposes ? right[j * inner + k] : right[k * width + j];
        (*sums)[j] += values[i] * (b_.conjugates ? Conjugate(x) : x);
      }
    }
  }

  template <typename T>
  void Store(const std::vector<T>& sums, int64_t m, int64_t row, int64_t rows, Tensor* out) const {
    const auto width = static_cast<int64_t>(sums.size());
    T* const to = out->data<T>() + m * rows * width;
    for (int64_t j = 0; j < width; ++j) {
      to[transposes_output_ ? j * rows + row : row * width + j] =
          conjugates_output_ ? Conjugate(sums[j]) : sums[j];
    }
  }

  Side a_, b_;
  bool transposes_output_ = false;
  bool conjugates_output_ = false;
};

class SparseProductKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    auto kernel = std::make_unique<SparseProductKernel>();
    WEFT_ASSIGN_OR_RETURN(kernel->a_, Side::Of(c, "a"));
    WEFT_ASSIGN_OR_RETURN(kernel->b_, Side::Of(c, "b"));
    WEFT_ASSIGN_OR_RETURN(kernel->dtype_, c.Attr<DType>("type"));
    return kernel;
  }

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> given_a, CsrOf(c.input(0), dtype_));
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> given_b, CsrOf(c.input(1), dtype_));
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> a, a_.Turned(given_a));
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> b, b_.Turned(given_b));
    if (a->shape().rank() != b->shape().rank()) {
      return InvalidArgument("Ranks of a and b must match, saw: ", a->shape().rank(), " vs. ",
                             b->shape().rank(), ".");
    }
    if (a->batch() != b->batch()) {
      return InvalidArgument("Batch sizes of a and b must agree, but saw: ", a->batch(), " vs. ",
                             b->batch(), ".");
    }
    if (a->columns() != b->rows()) {
      return InvalidArgument("Inner product dimensions of a and b must agree.  Shapes are: ",
                             a->shape().ToString(), " vs. ", b->shape().ToString());
    }
    Status status;
    VisitDType(dtype_, CsrElements(), [&]<typename T>() { status = Multiply<T>(c, *a, *b); });
    return status;
  }

 private:
  // Row by row, with one sum for each column that an entry falls into (Gustavson, 1978).
  template <typename T>
  static Status Multiply(KernelContext& c, const CsrMatrix& a, const CsrMatrix& b) {
    Shape shape = a.shape();
    shape.SetDim(shape.rank() - 1, b.columns());
    // A shape alone says how many columns there are.
    WEFT_RETURN_IF_ERROR(CheckRoomFor(b.columns(), sizeof(T) + 1, "columns"));
    std::vector<CsrRows> matrices(static_cast<size_t>(a.batch()));
    std::vector<T> values;
    std::vector<T> sums(static_cast<size_t>(b.columns()));
    std::vector<bool> has(static_cast<size_t>(b.columns()), false);
    std::vector<int32_t> touched;
    for (int64_t m = 0; m < a.batch(); ++m) {
      const CsrRows &left = a.matrix(m), &right = b.matrix(m);
      const T* const left_values = a.values().data<T>() + a.offset(m);
      const T* const right_values = b.values().data<T>() + b.offset(m);
      CsrRows& to = matrices[static_cast<size_t>(m)];
      to.starts.push_back(0);
      for (int64_t row = 0; row < a.rows(); ++row) {
        if (c.cancellation().IsCancelled()) return c.cancellation().status();
        touched.clear();
        for (int32_t i = left.starts[row]; i < left.starts[row + 1]; ++i) {
          const int32_t k = left.columns[i];
          for (int32_t j = right.starts[k]; j < right.starts[k + 1]; ++j) {
            const int32_t column = right.columns[j];
            if (!has[column]) {
              has[column] = true;
              sums[column] = T{};
              touched.push_back(column);
            }
            sums[column] += left_values[i] * right_values[j];
          }
        }
        std::sort(touched.begin(), touched.end());
        for (const int32_t column : touched) {
          to.columns.push_back(column);
          values.push_back(sums[column]);
          has[column] = false;
        }
        to.starts.push_back(static_cast<int32_t>(to.columns.size()));
      }
    }
    WEFT_ASSIGN_OR_RETURN(Tensor kept,
                          Tensor::Allocate(DTypeOf<T>, Shape{static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), kept.data<T>());
    c.SetOutput(0, VariantOf(MakeRef<CsrMatrix>(shape, std::move(matrices), std::move(kept))));
    return absl::OkStatus();
  }

  Side a_, b_;
  DType dtype_ = DType::kInvalid;
};

class TransposeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("type"));
    return std::make_unique<TransposeKernel>(dtype, c.AttrOr("conjugate", false));
  }
  TransposeKernel(DType dtype, bool conjugate) : dtype_(dtype), conjugate_(conjugate) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, CsrOf(c.input(0), dtype_));
    WEFT_ASSIGN_OR_RETURN(Ref<CsrMatrix> turned, Transposed(*matrix, conjugate_));
    c.SetOutput(0, VariantOf(std::move(turned)));
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
  const bool conjugate_;
};

// Of op Conj (math/complex.cc), whose variants are such matrices.
class ConjugateKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<CsrMatrix> matrix, CsrOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(Ref<CsrMatrix> conjugate, Conjugated(*matrix));
    c.SetOutput(0, VariantOf(std::move(conjugate)));
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.kernels().Add({.op = "Conj",
                           .types = {{"T", {DType::kVariant}}},
                           .factory = MakeKernel<ConjugateKernel>()});
  catalogue.Add(OpSpec("SparseMatrixMatMul")
                    .Doc("Products of sparse matrices and dense ones.\nEither may be transposed or "
                         "conjugated as well, and so may the product.")
                    .Input("a: variant")
                    .Input("b: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("transpose_a: bool = false")
                    .Attr("transpose_b: bool = false")
                    .Attr("adjoint_a: bool = false")
                    .Attr("adjoint_b: bool = false")
                    .Attr("transpose_output: bool = false")
                    .Attr("conjugate_output: bool = false")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<DenseProductKernel>()));
  catalogue.Add(OpSpec("SparseMatrixSparseMatMul")
                    .Doc("Products of sparse matrices, which may be transposed or conjugated as "
                         "well.")
                    .Input("a: variant")
                    .Input("b: variant")
                    .Output("c: variant")
                    .Attr("type: {float, double, complex64, complex128}")
                    .Attr("transpose_a: bool = false")
                    .Attr("transpose_b: bool = false")
                    .Attr("adjoint_a: bool = false")
                    .Attr("adjoint_b: bool = false")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<SparseProductKernel>()));
  catalogue.Add(OpSpec("SparseMatrixTranspose")
                    .Doc("Sparse matrices with rows and columns exchanged, conjugated on demand.")
                    .Input("input: variant")
                    .Output("output: variant")
                    .Attr("conjugate: bool = false")
                    .Attr("type: {float, double, complex64, complex128}")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<TransposeKernel>()));
}

}  // namespace weft::ops::sparse::csr_products
