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

}  // namespace

std::vector<GradientCase> LinearAlgebraGradientCases() {
  Cases cases;
  AddSystems(cases);
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
