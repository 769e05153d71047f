// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

// x op y by NumPy's rules, one element at a time.
template <typename T, typename Op>
std::vector<T> Broadcasted(const Tensor& x, const Tensor& y, const Shape& out, Op op) {
  std::vector<T> values;
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const auto at = [&](const Tensor& t) {
      int64_t rest = i, offset = 0, stride = 1;
      for (int back = 1; back <= out.rank(); ++back) {
        const int64_t index = rest % out.dim(out.rank() - back);
        rest /= out.dim(out.rank() - back);
        const int dim = t.rank() - back;
        if (dim < 0) continue;
        if (t.dim(dim) != 1) offset += index * stride;
        stride *= t.dim(dim);
      }
      return t.data<T>()[offset];
    };
    values.push_back(op(at(x), at(y)));
  }
  return values;
}

TEST(ElementwiseTest, BroadcastsEveryPatternOfShapes) {
  const std::vector<std::pair<Shape, Shape>> cases = {
      {{4, 4}, {4, 4}},
      {{}, {}},
      {{}, {3}},
      {{5, 1}, {1, 7}},
      {{2, 3, 4}, {3, 4}},
      {{2, 3, 4}, {3, 1}},
      {{2, 1, 4}, {1, 3, 1}},
      {{0, 3}, {1, 3}},
      {{1}, {0}},
      {{1, 1, 1}, {2}},
      {{2, 1, 2, 1, 2, 1, 2, 1, 2}, {2, 1, 2, 1, 2, 1, 2, 1}},
      {{300, 1, 50}, {1, 7, 50}},
      {{100, 1000}, {100, 1}},
      {{100, 1000}, {1000}}};
  for (const auto& [a, b] : cases) {
    const Tensor x = Fill<float>(a, -5, 5, 1);
    const Tensor y = Fill<float>(b, -5, 5, 2);
    const Tensor z = RunOne("Sub", {x, y});
    StatusOr<Shape> shape = BroadcastShapes(a, b);
    ASSERT_TRUE(shape.ok());
    EXPECT_EQ(z.shape(), *shape);
    ExpectNear<float>(z, Broadcasted<float>(x, y, *shape, [](float p, float q) { return p - q; }));
  }
}

TEST(ElementwiseTest, SaysWhichShapesDoNotBroadcast) {
  const Status status =
      ErrorOf("Equal", {Fill<float>({2}, 0, 1), Fill<float>({3}, 0, 1)}, {{"T", DType::kFloat}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("2 and 3"));
}

TEST(ElementwiseTest, EqualityOfIncompatibleShapesIsAScalarOnRequest) {
  const AttrMap attrs = {{"incompatible_shape_error", false}};
  const Tensor x = Tensor::Vector<float>({1, 2});
  const Tensor y = Tensor::Vector<float>({1, 2, 3});
  EXPECT_FALSE(RunOne("Equal", {x, y}, attrs).scalar<bool>());
  EXPECT_TRUE(RunOne("NotEqual", {x, y}, attrs).scalar<bool>());
}

TEST(ElementwiseTest, LargeTensorsOverwriteAnInputThatNobodyElseReads) {
  auto runner =
      KernelRunner::Make("Add", {Fill<float>({100, 1000}, 0, 1), Fill<float>({1000}, 0, 1)});
  ASSERT_TRUE(runner.ok()) << runner.status();
  const Tensor* input = &(*runner)->context().input(0);
  const std::byte* bytes = input->bytes();
  const float expected =
      input->data<float>()[99999] + (*runner)->context().input(1).data<float>()[999];
  (*runner)->set_last_use(0);
  StatusOr<std::vector<Tensor>> outputs = (*runner)->Run();
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0].bytes(), bytes);
  EXPECT_EQ((*outputs)[0].data<float>()[99999], expected);
}

TEST(ElementwiseTest, MaximumAndMinimumPassNaNOn) {
  const Tensor x = Tensor::Vector<float>({1, kNaN, 2, kInf, -0.0f});
  const Tensor y = Tensor::Vector<float>({kNaN, 1, 3, 0, 0.0f});
  ExpectNear<float>(RunOne("Maximum", {x, y}), {kNaN, kNaN, 3, kInf, 0});
  ExpectNear<float>(RunOne("Minimum", {x, y}), {kNaN, kNaN, 2, 0, 0});
}

TEST(ElementwiseTest, IntegersWrap) {
  const Tensor big = Tensor::Vector<int32_t>({std::numeric_limits<int32_t>::max()});
  ExpectNear<int32_t>(RunOne("AddV2", {big, Tensor::Scalar<int32_t>(1)}),
                      {std::numeric_limits<int32_t>::min()});
  const Tensor small = Tensor::Vector<int8_t>({-128, 100});
  ExpectNear<int8_t>(RunOne("Neg", {small}), {-128, -100});
  ExpectNear<int8_t>(RunOne("Mul", {small, small}), {0, 16});
  ExpectNear<int8_t>(RunOne("Abs", {small}), {-128, 100});
}

TEST(ElementwiseTest, DivisionByZeroIsAnErrorForIntegersOnly) {
  const Tensor x = Tensor::Vector<int32_t>({1, 2});
  const Tensor zero = Tensor::Vector<int32_t>({1, 0});
  const Status status = ErrorOf("Div", {x, zero});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "Integer division by zero");
  const Tensor f = Tensor::Vector<float>({1, 0, -1});
  ExpectNear<float>(RunOne("RealDiv", {f, Tensor::Scalar<float>(0)}), {kInf, kNaN, -kInf});
  ExpectNear<float>(RunOne("DivNoNan", {f, Tensor::Scalar<float>(0)}), {0, 0, 0});
  ExpectNear<float>(RunOne("MulNoNan", {Tensor::Scalar<float>(kNaN), Tensor::Scalar<float>(0)}),
                    {0});
}

TEST(ElementwiseTest, AddJoinsStrings) {
  const Tensor x = Tensor::Vector<std::string>({"a", "b"});
  EXPECT_EQ(Values<std::string>(RunOne("Add", {x, Tensor::Scalar("!")})),
            (std::vector<std::string>{"a!", "b!"}));
}

// Odd lengths, so that the last vector is not full.
TEST(ElementwiseTest, FunctionsAgreeWithTheStandardLibrary) {
  struct Case {
    const char* op;
    double (*function)(double);
    double low, high;
  };
  const std::vector<Case> cases = {
      {"Exp", std::exp, -20, 20},
      {"Expm1", std::expm1, -3, 3},
      {"Log", std::log, 1e-3, 1e3},
      {"Log1p", std::log1p, -0.9, 9},
      {"Tanh", std::tanh, -4, 4},
      {"Sin", std::sin, -50, 50},
      {"Cos", std::cos, -50, 50},
      {"Tan", std::tan, -1, 1},
      {"Asin", std::asin, -1, 1},
      {"Acos", std::acos, -1, 1},
      {"Atan", std::atan, -9, 9},
      {"Sinh", std::sinh, -3, 3},
      {"Cosh", std::cosh, -3, 3},
      {"Asinh", std::asinh, -9, 9},
      {"Acosh", std::acosh, 1, 9},
      {"Atanh", std::atanh, -.9, .9},
      {"Erf", std::erf, -3, 3},
      {"Erfc", std::erfc, -3, 3},
      {"Sqrt", std::sqrt, 0, 100},
      {"Floor", std::floor, -9, 9},
      {"Ceil", std::ceil, -9, 9},
      {"Round", std::rint, -9, 9},
      {"Abs", std::fabs, -9, 9},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -20, 20},
      {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 100},
      {"Reciprocal", [](double x) { return 1 / x; }, 0.1, 9},
      {"Square", [](double x) { return x * x; }, -9, 9}};
  for (const Case& test : cases) {
    SCOPED_TRACE(test.op);
    const Tensor x = Fill<float>({1037}, test.low, test.high);
    const Tensor y = Fill<double>({1037}, test.low, test.high);
    const Tensor h = Fill<Half>({37}, test.low, test.high);
    std::vector<float> fx;
    std::vector<double> fy;
    std::vector<Half> fh;
    for (float v : x.span<float>()) fx.push_back(static_cast<float>(test.function(v)));
    for (double v : y.span<double>()) fy.push_back(test.function(v));
    for (Half v : h.span<Half>()) fh.push_back(Half(static_cast<float>(test.function(v))));
    ExpectNear<float>(RunOne(test.op, {x}), fx, 5e-7);
    ExpectNear<double>(RunOne(test.op, {y}), fy, 1e-15);
    ExpectNear<Half>(RunOne(test.op, {h}), fh, 1e-3);
  }
}

TEST(ElementwiseTest, FunctionsKnowTheirEdges) {
  const Tensor x = Tensor::Vector<float>({kNaN, kInf, -kInf, 0, -1e-38f, 1e30f, -1e30f, 89});
  ExpectNear<float>(RunOne("Exp", {x}), {kNaN, kInf, 0, 1, 1, kInf, 0, kInf});
  ExpectNear<float>(RunOne("Expm1", {x}), {kNaN, kInf, -1, 0, -1e-38f, kInf, -1, kInf});
  ExpectNear<float>(RunOne("Tanh", {x}), {kNaN, 1, -1, 0, -1e-38f, 1, -1, 1});
  ExpectNear<float>(RunOne("Sigmoid", {x}), {kNaN, 1, 0, 0.5, 0.5, 1, 0, 1});
  const Tensor y = Tensor::Vector<float>({kNaN, kInf, -kInf, 0, -1, 1e-45f, 1});
  ExpectNear<float>(RunOne("Log", {y}), {kNaN, kInf, kNaN, -kInf, kNaN, -103.2789f, 0}, 1e-6);
  ExpectNear<float>(RunOne("Log1p", {y}), {kNaN, kInf, kNaN, 0, -kInf, 1e-45f, 0.6931472f}, 1e-6);
  const Tensor z = Tensor::Vector<float>({kNaN, kInf, 1e30f, 0});
  ExpectNear<float>(RunOne("Sin", {z}), {kNaN, kNaN, std::sin(1e30f), 0}, 1e-6);
  ExpectNear<float>(RunOne("Sign", {z}), {kNaN, 1, 1, 0});
}

TEST(ElementwiseTest, AddNSumsAndRefusesOtherShapes) {
  std::vector<Tensor> parts;
  std::vector<float> expected(5000, 0);
  for (int i = 0; i < 9; ++i) {
    parts.push_back(Fill<float>({5000}, -1, 1, i));
    for (int j = 0; j < 5000; ++j) expected[j] += parts.back().data<float>()[j];
  }
  ExpectNear<float>(RunOne("AddN", {parts}), expected);
  parts[3] = Tensor::Scalar<float>(1);
  EXPECT_FALSE(ErrorOf("AddN", {parts}).ok());
}

TEST(ElementwiseTest, GradientAxesOfBroadcasting) {
  const auto axes = [](std::initializer_list<int32_t> a, std::initializer_list<int32_t> b) {
    StatusOr<std::vector<Tensor>> out =
        RunOp("BroadcastGradientArgs", {Tensor::Vector<int32_t>(a), Tensor::Vector<int32_t>(b)});
    EXPECT_TRUE(out.ok()) << out.status();
    return std::make_pair(Values<int32_t>((*out)[0]), Values<int32_t>((*out)[1]));
  };
  using V = std::vector<int32_t>;
  EXPECT_EQ(axes({2, 3}, {2, 3}), std::make_pair(V{}, V{}));
  EXPECT_EQ(axes({2, 3}, {3}), std::make_pair(V{}, V{0}));
  EXPECT_EQ(axes({2, 3}, {}), std::make_pair(V{}, (V{0, 1})));
  EXPECT_EQ(axes({2, 1, 3}, {5, 1}), std::make_pair(V{1}, (V{0, 2})));
  EXPECT_EQ(axes({1, 2}, {1, 1}), std::make_pair(V{0}, (V{0, 1})));
}

TEST(CastTest, RoundsTowardZeroAndKeepsProcessorsRulesOutOfRange) {
  const Tensor x = Tensor::Vector<float>({-1.9f, 2.9f, kNaN, 3e9f, -200});
  ExpectNear<int32_t>(
      RunOne("Cast", {x}, {{"DstT", DType::kInt32}}),
      {-1, 2, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::min(), -200});
  EXPECT_EQ(Values<bool>(RunOne("Cast", {x}, {{"DstT", DType::kBool}})),
            (std::vector<bool>(5, true)));
  const Tensor c = Tensor::Vector<Complex64>({{1, 2}});
  ExpectNear<float>(RunOne("Cast", {c}, {{"DstT", DType::kFloat}}), {1});
  EXPECT_EQ(RunOne("Cast", {x}, {{"DstT", DType::kFloat}}).bytes(), x.bytes());
}

TEST(CastTest, TruncateCutsBitsInsteadOfRounding) {
  const Tensor x = Tensor::Vector<float>({1.9999999f});
  const AttrMap truncate = {{"DstT", DType::kBfloat16}, {"Truncate", true}};
  EXPECT_EQ(RunOne("Cast", {x}, truncate).data<Bfloat16>()->bits, 0x3fff);
  EXPECT_EQ(RunOne("Cast", {x}, {{"DstT", DType::kBfloat16}}).data<Bfloat16>()->bits, 0x4000);
}

}  // namespace
}  // namespace weft::ops::testing
