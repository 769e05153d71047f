// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/gradient_cases_test.h"

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using Cases = std::vector<GradientCase>;

// Matrices whose diagonal outweighs the rest, so that none is near to having no inverse.
Tensor Regular(int64_t count, int64_t n, uint64_t seed = 1) {
  Tensor matrices = Doubles({count, n, n}, seed);
  for (int64_t i = 0; i < count * n; ++i) {
    matrices.data<double>()[i * n + i % n] += 3 + static_cast<double>(i % n);
  }
  return matrices;
}

Tensor Numbers(const Shape& shape, uint64_t seed = 1) {
  Tensor numbers = *Tensor::Zeros(DType::kComplex128, shape);
  const Tensor parts = Doubles({numbers.num_elements(), 2}, seed);
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    numbers.data<Complex128>()[i] = {parts.data<double>()[2 * i], parts.data<double>()[2 * i + 1]};
  }
  return numbers;
}

void AddSystems(Cases& cases) {
  cases.push_back({"MatrixDeterminant", {Regular(2, 3)}});
  cases.push_back({"LogMatrixDeterminant", {Regular(2, 3)}});
  for (const bool adjoint : {false, true}) {
    const AttrMap attrs = {{"adjoint", adjoint}};
    cases.push_back({"MatrixInverse", {Regular(2, 3)}, attrs});
    cases.push_back({"MatrixSolve", {Regular(2, 3), Doubles({2, 3, 2}, 2)}, attrs, 2});
    for (const bool lower : {false, true}) {
      cases.push_back({"MatrixTriangularSolve",
                       {Regular(2, 3), Doubles({3, 2}, 2)},
                       {{"adjoint", adjoint}, {"lower", lower}},
                       2});
    }
  }
}

void AddBands(Cases& cases) {
  for (const bool adjoint : {false, true}) {
    for (const bool lower : {false, true}) {
      cases.push_back({"BandedTriangularSolve",
                       {Between({2, 2, 4}, 1, 2), Between({4, 2}, -1, 1, 2)},
                       {{"adjoint", adjoint}, {"lower", lower}},
                       2});
    }
  }
  const std::vector<TestInput> rows = {Doubles({2, 1, 4}, 1), Doubles({2, 1, 4}, 2),
                                       Doubles({2, 1, 4}, 3), Doubles({2, 4, 2}, 4)};
  cases.push_back({"TridiagonalMatMul", rows, {}, 4});
  Tensor diagonals = Doubles({2, 3, 4});
  for (int64_t i = 0; i < 8; ++i) diagonals.data<double>()[i / 4 * 12 + 4 + i % 4] += 5;
  for (const bool pivoting : {false, true}) {
    const AttrMap attrs = {{"partial_pivoting", pivoting}};
    cases.push_back({"TridiagonalSolve", {diagonals, Doubles({2, 4, 2}, 4)}, attrs, 2});
  }
}

void AddSingular(Cases& cases) {
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 4, 2}, Shape{2, 4}}) {
    cases.push_back({"Svd", {Doubles(shape)}});
    cases.push_back({"Svd", {Doubles(shape)}, {{"compute_uv", false}}, 1, "values alone", 1});
  }
  cases.push_back({"Svd", {Doubles({3, 3})}, {{"full_matrices", true}}, 1, "full"});
  cases.push_back({"MatrixSquareRoot", {Regular(2, 3)}});
}

void AddDecompositions(Cases& cases) {
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{2, 4, 3}, Shape{2, 3, 4}}) {
    cases.push_back({"Qr", {Doubles(shape)}, {}, 1, shape.ToString()});
    const Tensor rhs = Doubles({2, shape.dim(1), 2}, 2), regularizer = Tensor::Scalar(0.5);
    cases.push_back({"MatrixSolveLs", {Doubles(shape), rhs, regularizer}, {}, 2, shape.ToString()});
  }
  cases.push_back({"Qr", {Doubles({2, 3, 4})}, {{"full_matrices", true}}, 1, "full"});
  // Vectors have any length and phase, so differences of them are no measure; nor have those of two
  // conjugate values, whose order is by chance: these values are real and lie apart.
  Tensor apart = Between({2, 3, 3}, -0.3, 0.3);
  for (int64_t i = 0; i < 6; ++i)
    apart.data<double>()[i * 3 + i % 3] += 1 + 2 * static_cast<double>(i % 3);
  for (const bool vectors : {false, true}) {
    const AttrMap attrs = {{"Tout", DType::kComplex128}, {"compute_v", vectors}};
    cases.push_back({"Eig", {apart}, attrs, 1, "real", -1, {}, {0}});
    cases.push_back({"Eig", {Numbers({3, 3})}, attrs, 1, "complex", -1, {}, {0}});
  }
}

void AddManyZeros(Cases& cases) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      cases.push_back({"SparseMatMul",
                       {Fill<float>(ta ? Shape{4, 3} : Shape{3, 4}, -1, 1),
                        Fill<float>(tb ? Shape{2, 4} : Shape{4, 2}, -1, 1, 2)},
                       {{"transpose_a", ta}, {"transpose_b", tb}},
                       2});
    }
  }
}

void AddEquations(Cases& cases) {
  for (const char* equation : {"bij,bjk->bik", "bij,bkj->kib", "bij,bij->b"}) {
    const std::vector<Tensor> operands = {
        Doubles({2, 3, 4}), equation[4] == 'b' && equation[5] == 'j' ? Doubles({2, 4, 2}, 2)
                            : equation[5] == 'k'                     ? Doubles({2, 5, 4}, 2)
                                                                     : Doubles({2, 3, 4}, 2)};
    cases.push_back({"Einsum", {operands}, {{"equation", equation}}, 2});
  }
  cases.push_back({"Einsum", {std::vector<Tensor>{Doubles({2, 3})}}, {{"equation", "ij->ji"}}});
}

void AddRealTransforms(Cases& cases) {
  const AttrMap attrs = {{"Treal", DType::kDouble}, {"Tcomplex", DType::kComplex128}};
  for (const int32_t length : {5, 6}) {
    const auto last = static_cast<int64_t>(length / 2 + 1);
    const std::string note = absl::StrCat(length, " values");
    cases.push_back({"RFFT", {Doubles({2, length}), Tensor::Vector({length})}, attrs, 1, note});
    cases.push_back({"IRFFT", {Numbers({2, last}), Tensor::Vector({length})}, attrs, 1, note});
    cases.push_back(
        {"RFFT2D", {Doubles({2, 3, length}), Tensor::Vector({3, length})}, attrs, 1, note});
    cases.push_back(
        {"IRFFT2D", {Numbers({2, 3, last}), Tensor::Vector({3, length})}, attrs, 1, note});
  }
  cases.push_back({"RFFT", {Doubles({2, 7}), Tensor::Vector({4})}, attrs, 1, "cut"});
}

}  // namespace

std::vector<GradientCase> LinearAlgebraGradientCases() {
  Cases cases;
  AddRealTransforms(cases);
  cases.push_back({"SelfAdjointEigV2", {Regular(2, 3)}});
  cases.push_back({"SelfAdjointEigV2", {Regular(2, 3)}, {{"compute_v", false}}, 1, "values"});
  AddSystems(cases);
  AddBands(cases);
  AddSingular(cases);
  AddDecompositions(cases);
  AddManyZeros(cases);
  AddEquations(cases);
  for (const char* op : {"FFT", "IFFT"}) cases.push_back({op, {Numbers({2, 6})}});
  for (const char* op : {"FFT2D", "IFFT2D"}) cases.push_back({op, {Numbers({2, 3, 4})}});
  for (const char* op : {"FFT3D", "IFFT3D"}) cases.push_back({op, {Numbers({2, 3, 2})}});
  // Only the lower half of a symmetric matrix is read, so differences of one element are no
  // measure.
  cases.push_back({"Cholesky", {Regular(1, 1)}});
  return cases;
}

}  // namespace weft::ops::testing
