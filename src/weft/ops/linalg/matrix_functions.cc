// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms and square roots of matrices.
#include <unsupported/Eigen/MatrixFunctions>

#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::matrix_functions {
namespace {

using E = Endpoint;
using ComplexMatrix = Matrix<Complex128>;

using Result = StatusOr<ComplexMatrix>;

Result Exponential(const ComplexMatrix& x) { return ComplexMatrix(x.exp()); }
Result SquareRoot(const ComplexMatrix& x) { return ComplexMatrix(x.sqrt()); }
// Eigen ends the process where it finds no triangular form, as for NaN.
Result Logarithm(const ComplexMatrix& x) {
  if (Eigen::ComplexSchur<ComplexMatrix>(x, /*computeU=*/false).info() != Eigen::Success) {
    return InvalidArgument("Schur decomposition was not successful. The input might not be valid.");
  }
  return ComplexMatrix(x.log());
}

// Real matrices are computed as complex ones, whose triangular form is always a triangle.
template <Result (*function)(const ComplexMatrix&)>
class FunctionKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(input, 0));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, 16 * CubicWork(input.dim(input.rank() - 1)), [&](int64_t i) {
      if (IsComplex(input.dtype())) {
        WEFT_ASSIGN_OR_RETURN(const ComplexMatrix found,
                              function(LoadMatrix<Complex128>(input, i)));
        StoreMatrix<Complex128>(found, out, i);
      } else {
        WEFT_ASSIGN_OR_RETURN(const ComplexMatrix found,
                              function(LoadMatrix<double>(input, i).cast<Complex128>()));
        StoreMatrix<double>(found.real(), out, i);
      }
      return absl::OkStatus();
    });
  }
};

// With S = sqrt(A), dA = S dS + dS S: the gradient X of A solves S^H X + X S^H = dL/dS, a system
// for all elements of X at once.
Status SquareRootGradient(GradientContext& c) {
  const E root = c.output(0), conjugate = Conjugate(c, root);
  GraphBuilder& b = c.builder();
  const auto vector = [&](int32_t value) { return b.Constant(Tensor::Vector<int32_t>({value})); };
  const E identity = c.Op("MatrixDiag", {c.Op("OnesLike", {c.Op("MatrixDiagPart", {root})})});
  const E left =
      c.Op("Einsum", {std::vector<E>{conjugate, identity}}, {{"equation", "...ki,...jl->...ijkl"}});
  const E right =
      c.Op("Einsum", {std::vector<E>{identity, conjugate}}, {{"equation", "...ik,...jl->...ijkl"}});
  const E shape = c.Op("Shape", {root}), rank = c.Op("Shape", {shape});
  const E batch = c.Op("Slice", {shape, vector(0), c.Op("Sub", {rank, vector(2)})});
  const E size = c.Op("Slice", {shape, c.Op("Sub", {rank, vector(1)}), vector(1)});
  const E elements = c.Op("Mul", {size, size});
  const auto joined = [&](std::vector<E> parts) {
    return c.Op("ConcatV2", {parts, b.Scalar<int32_t>(0)});
  };
  const E system =
      c.Op("Reshape", {c.Op("AddV2", {left, right}), joined({batch, elements, elements})});
  const E rhs = c.Op("Reshape", {c.gradient(), joined({batch, elements, vector(1)})});
  c.set_input(0, c.Op("Reshape", {c.Op("MatrixSolve", {system, rhs}), shape}));
  return absl::OkStatus();
}

OpSpec Signature(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc).Input("input: T").Output("output: T").Attr(types).Shape(SquareShape);
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  constexpr char kTypes[] = "T: {double, float, half, complex64, complex128}";
  const std::map<std::string, std::vector<DType>> all = {
      {"T", DTypesOf<float, double, Complex64, Complex128>()}};
  catalogue.Add(Signature("MatrixSquareRoot",
                          "The matrix S with S S = input and eigenvalues that are not on the left.",
                          kTypes)
                    .Gradient(SquareRootGradient)
                    .Kernel({.types = all, .factory = MakeKernel<FunctionKernel<SquareRoot>>()}));
  catalogue.Add(Signature("MatrixLogarithm", "The matrix whose exponential is the input.",
                          "T: {complex64, complex128}")
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf<Complex64, Complex128>()}},
                             .factory = MakeKernel<FunctionKernel<Logarithm>>()}));
  catalogue.Add(
      Signature("MatrixExponential", "The exponential of each matrix.", kTypes)
          .Deprecated(27, "Use Python implementation tf.linalg.matrix_exponential instead.")
          .NoGradient()
          .Kernel({.types = all, .factory = MakeKernel<FunctionKernel<Exponential>>()}));
}

}  // namespace weft::ops::linalg::matrix_functions
