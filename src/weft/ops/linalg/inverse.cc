// SPDX-License-Identifier: Apache-2.0
// What the LU decomposition of matrices tells: inverses, determinants, solutions of systems, and
// the decomposition itself.
#include <Eigen/LU>
#include <cmath>
#include <limits>

#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::inverse {
namespace {

// InvalidArgument where a pivot is 0 or not a number.
template <typename T>
Status CheckPivots(const Eigen::PartialPivLU<Matrix<T>>& lu, const char* what) {
  const RealOf<T> least = lu.matrixLU().diagonal().cwiseAbs().minCoeff();
  return least > RealOf<T>(0) ? absl::OkStatus() : InvalidArgument(what, " is not invertible.");
}

template <typename T>
class InverseKernel final : public OpKernel {
 public:
  explicit InverseKernel(KernelConstruction& c) : adjoint_(c.AttrOr<bool>("adjoint", false)) {}
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(input, 0));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, CubicWork(input.dim(input.rank() - 1)), [&](int64_t i) {
      Eigen::PartialPivLU<Matrix<T>> lu;
      if (adjoint_) {
        lu.compute(LoadMatrix<T>(input, i).adjoint());
      } else {
        lu.compute(LoadMatrix<T>(input, i));
      }
      WEFT_RETURN_IF_ERROR(CheckPivots<T>(lu, "Input"));
      StoreMatrix<T>(lu.inverse(), out, i);
      return absl::OkStatus();
    });
  }

 private:
  const bool adjoint_;
};

// Sign (for complex numbers, direction) and logarithm of the size.
template <typename T>
std::pair<T, RealOf<T>> LogDeterminant(const Matrix<T>& matrix) {
  if (matrix.size() == 0) return {T(1), RealOf<T>(0)};
  const Eigen::PartialPivLU<Matrix<T>> lu(matrix);
  T sign = static_cast<T>(static_cast<RealOf<T>>(lu.permutationP().determinant()));
  RealOf<T> log_size = 0;
  for (int64_t k = 0; k < matrix.rows(); ++k) {
    const T pivot = lu.matrixLU()(k, k);
    const RealOf<T> size = std::abs(pivot);
    if (!(size > RealOf<T>(0)) && !std::isnan(size)) {
      return {T(0), -std::numeric_limits<RealOf<T>>::infinity()};
    }
    sign *= pivot / size;
    log_size += std::log(size);
  }
  return {sign, log_size};
}

template <typename T>
class DeterminantKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(input, 0));
    const Shape batch = WithInner(input.shape(), {});
    WEFT_ASSIGN_OR_RETURN(Tensor * first, c.AllocateOutput(0, batch));
    Tensor* second = nullptr;
    if (c.num_outputs() > 1) {
      WEFT_ASSIGN_OR_RETURN(second, c.AllocateOutput(1, batch));
    }
    return ForEachMatrix(c, count, CubicWork(input.dim(input.rank() - 1)), [&](int64_t i) {
      const auto [sign, log_size] = LogDeterminant<T>(LoadMatrix<T>(input, i));
      const auto store = [i](T value, Tensor* out) {
        StoreMatrix<T>(Matrix<T>::Constant(1, 1, value), out, i);
      };
      store(second == nullptr ? sign * std::exp(log_size) : sign, first);
      if (second != nullptr) store(log_size, second);
      return absl::OkStatus();
    });
  }
};

template <typename T>
class SolveKernel final : public OpKernel {
 public:
  explicit SolveKernel(KernelConstruction& c) : adjoint_(c.AttrOr<bool>("adjoint", false)) {}
  Status Compute(KernelContext& c) override {
    const Tensor matrix = c.input(0), rhs = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(matrix, 0));
    WEFT_RETURN_IF_ERROR(CheckSolvable(matrix, rhs));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, rhs.shape()));
    if (rhs.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, CubicWork(matrix.dim(matrix.rank() - 1)), [&](int64_t i) {
      Eigen::PartialPivLU<Matrix<T>> lu;
      if (adjoint_) {
        lu.compute(LoadMatrix<T>(matrix, i).adjoint());
      } else {
        lu.compute(LoadMatrix<T>(matrix, i));
      }
      WEFT_RETURN_IF_ERROR(CheckPivots<T>(lu, "Input matrix"));
      StoreMatrix<T>(lu.solve(LoadMatrix<T>(rhs, i)), out, i);
      return absl::OkStatus();
    });
  }

 private:
  const bool adjoint_;
};

template <typename T>
class LuKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(input, 0));
    const int64_t n = input.dim(input.rank() - 1);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * order, c.AllocateOutput(1, WithInner(input.shape(), {n})));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, CubicWork(n), [&](int64_t i) {
      const Eigen::PartialPivLU<Matrix<T>> lu(LoadMatrix<T>(input, i));
      WEFT_RETURN_IF_ERROR(CheckPivots<T>(lu, "Input"));
      StoreMatrix<T>(lu.matrixLU(), out, i);
      const auto rows = lu.permutationP().transpose().eval().indices();
      for (int64_t k = 0; k < n; ++k) {
        if (order->dtype() == DType::kInt32) {
          order->data<int32_t>()[i * n + k] = rows[k];
        } else {
          order->data<int64_t>()[i * n + k] = rows[k];
        }
      }
      return absl::OkStatus();
    });
  }
};

Status LuShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(SquareShape(c));
  const PartialShape shape = c.output(0);
  c.set_output(1, ReplaceInner(shape, 1, {}));
  return absl::OkStatus();
}

// With Y = A^-1 it is -Y^H G Y^H; for the adjoint's inverse, -Y G^H Y.
Status InverseGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool adjoint, c.Attr<bool>("adjoint"));
  const Endpoint y = c.output(0);
  const Endpoint product = adjoint ? Product(c, y, Product(c, c.gradient(), y, true))
                                   : Product(c, y, Product(c, c.gradient(), y, false, true), true);
  c.set_input(0, c.Op("Neg", {product}));
  return absl::OkStatus();
}

// `factor`, one a matrix, times the inverse of the adjoint.
Endpoint TimesInverse(GradientContext& c, Endpoint factor) {
  const Endpoint inverse = c.Op("MatrixInverse", {c.input(0)}, {{"adjoint", true}});
  const Endpoint minus_one = c.builder().Scalar<int32_t>(-1);
  const Endpoint wide = c.Op("ExpandDims", {c.Op("ExpandDims", {factor, minus_one}), minus_one});
  return c.Op("Mul", {wide, inverse});
}

Status DeterminantGradient(GradientContext& c) {
  const Endpoint size = Conjugate(c, c.output(0));
  c.set_input(0, TimesInverse(c, c.Op("Mul", {c.gradient(), size})));
  return absl::OkStatus();
}

Status LogDeterminantGradient(GradientContext& c) {
  if (c.gradient(1)) c.set_input(0, TimesInverse(c, c.gradient(1)));
  return absl::OkStatus();
}

Status SolveGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool adjoint, c.Attr<bool>("adjoint"));
  const Endpoint rhs = c.Op("MatrixSolve", {c.input(0), c.gradient()}, {{"adjoint", !adjoint}});
  const Endpoint y = c.output(0);
  c.set_input(0, c.Op("Neg", {adjoint ? Product(c, y, rhs, false, true)
                                      : Product(c, rhs, y, false, true)}));
  c.set_input(1, rhs);
  return absl::OkStatus();
}

void RegisterDeterminants(Catalogue& catalogue) {
  OpSpec determinant("MatrixDeterminant"), logarithm("LogMatrixDeterminant");
  determinant.Doc("The determinant of each matrix.").Input("input: T").Output("output: T");
  logarithm.Doc("Sign and logarithm of the absolute value of each matrix's determinant.")
      .Input("input: T")
      .Output("sign: T")
      .Output("log_abs_determinant: T");
  determinant.Gradient(DeterminantGradient);
  logarithm.Gradient(LogDeterminantGradient);
  for (OpSpec* spec : {&determinant, &logarithm}) {
    spec->Attr("T: {half, float, double, complex64, complex128}").Shape(SquareToScalarShape);
    catalogue.Add(AddSolverKernels<DeterminantKernel>(*spec));
  }
}

void RegisterOldNames(Catalogue& catalogue) {
  OpSpec inverse = OldName("BatchMatrixInverse", "MatrixInverse");
  inverse.Input("input: T").Output("output: T").Attr("adjoint: bool = false").Shape(SquareShape);
  catalogue.Add(AddRealKernels<InverseKernel>(inverse));
  OpSpec solve = OldName("BatchMatrixSolve", "MatrixSolve");
  solve.Input("matrix: T").Input("rhs: T").Output("output: T").Attr("adjoint: bool = false");
  solve.Shape([](ShapeContext& c) { return SolveShape(c, true); });
  catalogue.Add(AddRealKernels<SolveKernel>(solve));
  OpSpec determinant = OldName("BatchMatrixDeterminant", "MatrixDeterminant");
  determinant.Input("input: T")
      .Output("output: T")
      .Attr("T: {float, double, complex64, complex128}")
      .Shape(SquareToScalarShape)
      .NoGradient();
  catalogue.Add(AddSolverKernels<DeterminantKernel>(determinant));
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec inverse("MatrixInverse");
  inverse
      .Doc(
          "The inverse of each matrix, or of its adjoint.\n"
          "InvalidArgument if a matrix has none.")
      .Input("input: T")
      .Output("output: T")
      .Attr("adjoint: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Gradient(InverseGradient);
  catalogue.Add(AddSolverKernels<InverseKernel>(inverse));
  RegisterDeterminants(catalogue);
  RegisterOldNames(catalogue);
  OpSpec solve("MatrixSolve");
  solve
      .Doc(
          "X with matrix X = rhs, or with the adjoint of matrix.\n"
          "InvalidArgument if a matrix has no inverse.")
      .Input("matrix: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("adjoint: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape([](ShapeContext& c) { return SolveShape(c, true); })
      .Gradient(SolveGradient);
  catalogue.Add(AddSolverKernels<SolveKernel>(solve));
  OpSpec lu("Lu");
  lu.Doc(
        "L and U with L U = the input's rows in the order p.\n"
        "`lu` holds U and, below the diagonal, L, whose diagonal is 1. InvalidArgument if a "
        "matrix has no inverse.")
      .Input("input: T")
      .Output("lu: T")
      .Output("p: output_idx_type")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Attr("output_idx_type: {int32, int64} = DT_INT32")
      .Shape(LuShape)
      .NoGradient();
  catalogue.Add(AddSolverKernels<LuKernel>(lu));
}

}  // namespace weft::ops::linalg::inverse
