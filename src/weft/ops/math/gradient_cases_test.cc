// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/gradient_cases_test.h"

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using Cases = std::vector<GradientCase>;

void AddBinary(Cases& cases) {
  for (const char* op :
       {"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "MulNoNan", "Maximum",
        "Minimum", "SquaredDifference", "Pow", "Xlogy", "Xlog1py", "Xdivy", "Atan2"}) {
    cases.push_back({op, {Between({2, 3}, 0.5, 2, 1), Between({2, 3}, 0.6, 2, 2)}, {}, 2});
    cases.push_back(
        {op, {Between({2, 1, 3}, 0.5, 2, 3), Between({4, 1}, 0.6, 2, 4)}, {}, 2, "broadcasting"});
    cases.push_back({op, {Between({}, 0.5, 2, 5), Between({3}, 0.6, 2, 6)}, {}, 2, "scalar"});
  }
  cases.push_back({"FloorMod", {Between({5}, 3.1, 3.9), Between({5}, 1.1, 1.4)}, {}, 2});
  cases.push_back({"Pow",
                   {Make<double>({3}, {-2, 0, 1.5}), Between({3}, 2, 2, 1)},
                   {},
                   1,
                   "of what has no logarithm",
                   -1,
                   {1}});
  for (const char* op :
       {"SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"}) {
    cases.push_back({op, {Between({2, 3}, 0.2, 0.8), Between({2, 3}, -2, 2, 2)}, {}, 2});
  }
  cases.push_back(
      {"AddN",
       {std::vector<Tensor>{Between({2}, -1, 1), Between({2}, -1, 1, 2), Between({2}, -1, 1, 3)}},
       {},
       3});
  cases.push_back({"AccumulateNV2",
                   {std::vector<Tensor>{Between({2}, -1, 1), Between({2}, -1, 1, 2)}},
                   {{"shape", Shape{2}}},
                   2});
  const auto bools = [](const Shape& shape) {
    Tensor numbers = Fill<double>(shape, -1, 1, 9);
    Tensor out = *Tensor::Zeros(DType::kBool, shape);
    for (int64_t i = 0; i < out.num_elements(); ++i)
      out.data<bool>()[i] = numbers.data<double>()[i] > 0;
    return out;
  };
  cases.push_back(
      {"Select", {bools({2, 3}), Between({2, 3}, -1, 1), Between({2, 3}, -1, 1, 2)}, {}, 2});
  cases.push_back(
      {"Select", {bools({4}), Between({4, 3}, -1, 1), Between({4, 3}, -1, 1, 2)}, {}, 2, "rows"});
  cases.push_back(
      {"SelectV2", {bools({2, 1, 3}), Between({4, 1}, -1, 1), Between({}, -1, 1, 2)}, {}, 2});
  cases.push_back(
      {"ClipByValue", {Between({20}, -1, 1), Tensor::Scalar(-0.4), Tensor::Scalar(0.3)}, {}, 3});
}

void AddUnary(Cases& cases) {
  for (const char* op :
       {"Abs", "Neg",   "Sign",   "Square",  "Sqrt",    "Rsqrt", "Reciprocal", "Inv",
        "Exp", "Expm1", "Log",    "Log1p",   "Sigmoid", "Tanh",  "Sin",        "Cos",
        "Tan", "Asin",  "Acos",   "Atan",    "Sinh",    "Cosh",  "Asinh",      "Atanh",
        "Erf", "Erfc",  "Lgamma", "Digamma", "Erfinv",  "Ndtri"}) {
    cases.push_back({op, {Between({2, 3}, 0.2, 0.8)}});
  }
  for (const char* op :
       {"Abs", "Square", "Exp", "Sigmoid", "Tanh", "Sin", "Atan", "Erf", "Asinh"}) {
    cases.push_back({op, {Between({5}, -0.9, -0.1)}, {}, 1, "negative"});
  }
  cases.push_back({"Acosh", {Between({4}, 1.5, 3)}});
  cases.push_back({"Cast", {Between({3}, -2, 2)}, {{"DstT", DType::kDouble}}});
  cases.push_back({"L2Loss", {Between({2, 3}, -2, 2)}});
}

Tensor Z(const Shape& shape, uint64_t seed = 1) {
  const Tensor real = Between(shape, 0.5, 2, seed);
  const Tensor imaginary = Between(shape, -2, 2, seed + 100);
  Tensor out = *Tensor::Zeros(DType::kComplex128, shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    out.data<Complex128>()[i] = {real.data<double>()[i], imaginary.data<double>()[i]};
  }
  return out;
}

void AddComplex(Cases& cases) {
  for (const char* op : {"Real", "Imag", "Angle", "ComplexAbs"}) {
    cases.push_back({op, {Z({3})}, {{"Tout", DType::kDouble}, {"T", DType::kComplex128}}});
  }
  cases.push_back({"Complex",
                   {Between({3}, -1, 1), Between({3}, -1, 1, 2)},
                   {{"Tout", DType::kComplex128}},
                   2});
  for (const char* op :
       {"Conj", "Neg", "Square", "Exp", "Log", "Sin", "Tanh", "Sigmoid", "Reciprocal", "Sqrt"}) {
    cases.push_back({op, {Z({3})}, {}, 1, "complex"});
  }
  for (const char* op : {"AddV2", "Mul", "RealDiv", "Pow"}) {
    cases.push_back({op, {Z({2, 2}), Z({2}, 2)}, {}, 2, "complex"});
  }
  cases.push_back({"MatMul", {Z({2, 3}), Z({3, 2}, 2)}, {}, 2, "complex"});
  cases.push_back(
      {"BatchMatMulV2", {Z({1, 3, 2}), Z({1, 3, 2}, 2)}, {{"adj_x", true}}, 2, "complex"});
}

void AddSpecial(Cases& cases) {
  const Tensor orders = Make<double>({2}, {1, 2});
  cases.push_back({"Polygamma", {orders, Between({2}, 1.2, 3)}, {}, 1});
  cases.push_back({"Zeta", {Make<double>({2}, {2.5, 4}), Between({2}, 1.2, 3)}, {}, 1});
  for (const char* op : {"BesselI0", "BesselI1", "BesselI0e", "BesselI1e", "BesselJ0", "BesselJ1",
                         "Dawsn", "FresnelCos", "FresnelSin"}) {
    cases.push_back({op, {Between({2, 3}, 0.2, 3)}});
    cases.push_back({op, {Between({4}, -3, -0.2)}, {}, 1, "negative"});
  }
  for (const char* op : {"BesselK0", "BesselK1", "BesselK0e", "BesselK1e", "BesselY0", "BesselY1",
                         "Expint", "Spence"}) {
    cases.push_back({op, {Between({2, 3}, 0.4, 3)}});
  }
  for (const char* op : {"Igamma", "Igammac"}) {
    cases.push_back({op, {Between({2, 3}, 0.5, 3), Between({2, 3}, 0.5, 5, 2)}, {}, 2});
    cases.push_back({op, {Between({2, 1}, 4, 6), Between({3}, 7, 9, 2)}, {}, 2, "broadcasting"});
  }
  const Tensor a = Between({2, 3}, 0.5, 3), b = Between({2, 3}, 0.5, 3, 2);
  cases.push_back({"Betainc", {a, b, Between({2, 3}, 0.2, 0.8, 3)}, {}, 1, "", -1, {0, 1}});
  cases.push_back({"Betainc", {a, b, Between({}, 0.2, 0.8, 3)}, {}, 1, "scalar", -1, {0, 1}});
  cases.push_back({"Cross", {Between({2, 3}, -2, 2), Between({2, 3}, -2, 2, 2)}, {}, 2});
}

void AddReductions(Cases& cases) {
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"}) {
    for (const bool keep : {false, true}) {
      const AttrMap attrs = {{"keep_dims", keep}};
      cases.push_back({op, {Between({2, 3, 4}, 0.5, 1.5), I({0, 2})}, attrs});
      cases.push_back({op, {Between({2, 3, 4}, 0.5, 1.5), I({-2})}, attrs});
      cases.push_back({op, {Between({4}, 0.5, 1.5), I(0)}, attrs, 1, "everything"});
    }
  }
  cases.push_back({"Prod", {Make<double>({2, 3}, {1, 0, 2, 3, 4, 5}), I(1)}, {}, 1, "with a zero"});
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const AttrMap attrs = {{"exclusive", exclusive}, {"reverse", reverse}};
      cases.push_back({"Cumsum", {Between({3, 4}, -1, 1), I(1)}, attrs});
      cases.push_back({"Cumprod", {Between({3, 4}, 0.5, 1.5), I(0)}, attrs});
    }
  }
  cases.push_back({"CumulativeLogsumexp", {Between({5}, -1, 1), I(0)}});
  for (const char* kind : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    cases.push_back({absl::StrCat("Segment", kind), {Between({4, 2}, 0.5, 2), I({0, 0, 1, 3})}});
    if (std::string(kind) == "Mean") continue;
    // Every segment has a row: the largest of none is the lowest number, where differences drown.
    cases.push_back({absl::StrCat("UnsortedSegment", kind),
                     {Between({5, 2}, 0.5, 2), I({2, 0, -1, 2, 1}), I(3)}});
  }
  cases.push_back(
      {"SegmentProd", {Make<double>({4}, {0, 2, 0, 0}), I({0, 0, 1, 1})}, {}, 1, "with zeros"});
  for (const char* kind : {"Sum", "Mean", "SqrtN"}) {
    const std::string op = absl::StrCat("SparseSegment", kind);
    cases.push_back({op, {Between({4, 2}, 0.5, 2), I({0, 2, 0, 3}), I({0, 0, 1, 3})}});
    cases.push_back(
        {op + "WithNumSegments", {Between({4, 2}, 0.5, 2), I({1, 2, 2}), I({0, 0, 1}), I(3)}});
  }
  cases.push_back({"TopK", {Between({2, 3, 5}, -1, 1)}, {{"k", 3}}});
  cases.push_back({"NextAfter", {Between({2, 3}, 1, 2), Between({3}, 3, 4)}, {}, 2});
  cases.push_back({"TopKV2", {Between({2, 3, 5}, -1, 1), I(3)}});
  cases.push_back({"NthElement", {Between({3, 5}, -1, 1), I(2)}});
}

void AddProducts(Cases& cases) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Shape a = ta ? Shape{3, 2} : Shape{2, 3};
      const Shape b = tb ? Shape{4, 3} : Shape{3, 4};
      cases.push_back({"MatMul",
                       {Between(a, -1, 1), Between(b, -1, 1, 2)},
                       {{"transpose_a", ta}, {"transpose_b", tb}},
                       2});
      const auto batch = [](const Shape& shape, int64_t n) {
        return Shape{n, shape.dim(0), shape.dim(1)};
      };
      const AttrMap adjoint = {{"adj_x", ta}, {"adj_y", tb}};
      cases.push_back({"BatchMatMul",
                       {Between(batch(a, 2), -1, 1), Between(batch(b, 2), -1, 1, 2)},
                       adjoint,
                       2});
      cases.push_back(
          {"BatchMatMulV2", {Between(batch(a, 2), -1, 1), Between(b, -1, 1, 2)}, adjoint, 2});
      AttrMap v3 = adjoint;
      v3.emplace("Tout", DType::kDouble);
      cases.push_back(
          {"BatchMatMulV3", {Between(a, -1, 1), Between(batch(b, 2), -1, 1, 2)}, v3, 2});
    }
  }
}

void AddChosen(Cases& cases) {
  const Tensor spread =
      Make<float>({2, 3}, std::vector<float>{0.9f, 0.1f, 0.5f, 0.3f, 0.7f, -0.4f});
  for (const int64_t axis : {0, 1}) {
    for (const bool largest : {false, true}) {
      cases.push_back({"ApproxTopK",
                       {spread},
                       {{"k", 2}, {"reduction_dimension", axis}, {"is_max_k", largest}}});
    }
  }
  cases.push_back({"IsotonicRegression", {Doubles({3, 6})}, {{"output_dtype", DType::kDouble}}});
}

}  // namespace

std::vector<GradientCase> MathGradientCases() {
  Cases cases;
  AddChosen(cases);
  AddComplex(cases);
  AddSpecial(cases);
  AddBinary(cases);
  AddUnary(cases);
  AddReductions(cases);
  AddProducts(cases);
  return cases;
}

std::vector<GradientCase> GradientCases() {
  Cases all = MathGradientCases();
  for (Cases more : {ArrayGradientCases(), NetworkGradientCases(), SparseGradientCases(),
                     LinearAlgebraGradientCases(), ImageGradientCases()}) {
    for (GradientCase& one : more) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace weft::ops::testing
