// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();

TEST(DivisionTest, SignsOfQuotientsAndRemainders) {
  const Tensor x = Tensor::Vector<int32_t>({7, -7, 7, -7, kLowest});
  const Tensor y = Tensor::Vector<int32_t>({2, 2, -2, -2, -1});
  ExpectNear<int32_t>(RunOne("FloorDiv", {x, y}), {3, -4, -4, 3, kLowest});
  ExpectNear<int32_t>(RunOne("TruncateDiv", {x, y}), {3, -3, -3, 3, kLowest});
  ExpectNear<int32_t>(RunOne("FloorMod", {x, y}), {1, 1, -1, -1, 0});
  ExpectNear<int32_t>(RunOne("Mod", {x, y}), {1, -1, 1, -1, 0});
  const Tensor f = Tensor::Vector<float>({7, -7, 7, -7, -5});
  const Tensor g = Tensor::Vector<float>({2, 2, -2, -2, std::numeric_limits<float>::infinity()});
  ExpectNear<float>(RunOne("FloorMod", {f, g}),
                    {1, 1, -1, -1, std::numeric_limits<float>::infinity()});
  ExpectNear<float>(RunOne("FloorDiv", {f, g}), {3, -4, -4, 3, 0});
}

TEST(DivisionTest, OfNothingByZeroIsNoError) {
  const Tensor none = Make<int32_t>({0}, {});
  EXPECT_EQ(RunOne("FloorDiv", {none, Tensor::Scalar<int32_t>(0)}).num_elements(), 0);
  EXPECT_FALSE(ErrorOf("FloorMod", {Tensor::Scalar<int32_t>(1), Tensor::Scalar<int32_t>(0)}).ok());
}

TEST(PowerTest, IntegersWrapAndRefuseNegativePowers) {
  const Tensor x = Tensor::Vector<int32_t>({2, -3, 0, 3});
  ExpectNear<int32_t>(RunOne("Pow", {x, Tensor::Vector<int32_t>({31, 3, 0, 0})}),
                      {kLowest, -27, 1, 1});
  EXPECT_EQ(ErrorOf("Pow", {x, Tensor::Scalar<int32_t>(-1)}).message(),
            "Integers to negative integer powers are not allowed");
}

TEST(PowerTest, ZeroWinsOverLogarithms) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor zero = Tensor::Scalar<float>(0);
  ExpectNear<float>(RunOne("Xlogy", {zero, Tensor::Vector<float>({0, nan})}), {0, 0});
  ExpectNear<float>(RunOne("Xdivy", {zero, Tensor::Vector<float>({0, nan})}), {0, 0});
  ExpectNear<float>(RunOne("Xlog1py", {zero, Tensor::Vector<float>({-1, nan})}), {0, 0});
}

TEST(BitwiseTest, ShiftsStayInsideTheType) {
  const Tensor x = Tensor::Vector<int32_t>({1, 1, 1, -8});
  const Tensor by = Tensor::Vector<int32_t>({31, 99, -1, 1});
  ExpectNear<int32_t>(RunOne("LeftShift", {x, by}), {kLowest, kLowest, 1, -16});
  ExpectNear<int32_t>(RunOne("RightShift", {x, by}), {0, 0, 1, -4});
  ExpectNear<uint8_t>(RunOne("PopulationCount", {x}), {1, 1, 1, 29});
}

TEST(ComplexTest, PartsAndBack) {
  const Tensor x = Tensor::Vector<Complex64>({{3, 4}, {-1, 0}});
  ExpectNear<float>(RunOne("ComplexAbs", {x}), {5, 1}, 1e-6);
  ExpectNear<float>(RunOne("Real", {x}), {3, -1});
  ExpectNear<float>(RunOne("Imag", {RunOne("Conj", {x})}), {-4, 0});
  const Tensor back = RunOne("Complex", {RunOne("Real", {x}), RunOne("Imag", {x})});
  EXPECT_EQ(Values<Complex64>(back), Values<Complex64>(x));
  // The parts of complex64 are float: nothing makes double of them.
  EXPECT_FALSE(ErrorOf("Real", {x}, {{"Tout", DType::kDouble}}).ok());
}

TEST(SelectTest, RowsElementsAndStrings) {
  Tensor condition = *Tensor::Zeros(DType::kBool, Shape{2});
  condition.data<bool>()[0] = true;
  const Tensor t = Make<float>({2, 2}, {1, 2, 3, 4});
  const Tensor e = Make<float>({2, 2}, {5, 6, 7, 8});
  ExpectNear<float>(RunOne("Select", {condition, t, e}), {1, 2, 7, 8});
  ExpectNear<float>(RunOne("SelectV2", {condition, t, e}), {1, 6, 3, 8});
  const Tensor words = RunOne("SelectV2", {condition, Tensor::Scalar("yes"), Tensor::Scalar("no")});
  EXPECT_EQ(Values<std::string>(words), (std::vector<std::string>{"yes", "no"}));
  EXPECT_FALSE(
      ErrorOf("Select", {condition, Fill<float>({3, 2}, 0, 1), Fill<float>({3, 2}, 0, 1)}).ok());
}

TEST(ClipTest, KeepsNaNAndTheLowerBoundWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::Vector<float>({nan, 1, 5});
  const Tensor two = Tensor::Scalar<float>(2), three = Tensor::Scalar<float>(3);
  ExpectNear<float>(RunOne("ClipByValue", {x, two, three}), {nan, 2, 3});
  ExpectNear<float>(RunOne("ClipByValue", {x, three, two}), {nan, 3, 3});
  EXPECT_FALSE(ErrorOf("ClipByValue", {x, Tensor::Vector<float>({1, 2}), three}).ok());
}

TEST(SpecialTest, KnownValues) {
  const Tensor half = Tensor::Scalar<double>(0.5);
  ExpectNear<double>(RunOne("Lgamma", {half}), {0.5723649429247001}, 1e-15);
  ExpectNear<double>(
      RunOne("Digamma", {Tensor::Vector<double>({1, 0.5, -0.5, 100})}),
      {-0.5772156649015329, -1.9635100260214235, 0.03648997397857652, 4.600161852738087}, 1e-14);
  ExpectNear<double>(RunOne("Erfinv", {Tensor::Vector<double>({0.5, -0.9, 0.999999, 1})}),
                     {0.4769362762044699, -1.1630871536766743, 3.458910737275499,
                      std::numeric_limits<double>::infinity()},
                     1e-12);
  ExpectNear<double>(
      RunOne("Ndtri", {Tensor::Vector<double>({0.5, 0.975, 1e-20, 0})}),
      {0, 1.959963984540054, -9.262340089798408, -std::numeric_limits<double>::infinity()}, 1e-13);
  ExpectNear<double>(RunOne("Zeta", {Tensor::Vector<double>({2, 4}), Tensor::Scalar<double>(1)}),
                     {1.6449340668482264, 1.0823232337111382}, 1e-14);
  ExpectNear<double>(
      RunOne("Polygamma", {Tensor::Scalar<double>(1), Tensor::Vector<double>({1, 0.5})}),
      {1.6449340668482264, 4.934802200544679}, 1e-14);
}

TEST(BatchMatMulTest, BatchesBroadcast) {
  const Tensor x = Fill<float>({2, 1, 2, 3}, -1, 1);
  const Tensor y = Fill<float>({4, 3, 2}, -1, 1, 2);
  const Tensor z = RunOne("BatchMatMulV2", {x, y});
  ASSERT_EQ(z.shape(), (Shape{2, 4, 2, 2}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const Tensor one = RunOne(
          "MatMul", {Make<float>({2, 3}, {x.data<float>() + 6 * i, x.data<float>() + 6 * i + 6}),
                     Make<float>({3, 2}, {y.data<float>() + 6 * j, y.data<float>() + 6 * j + 6})});
      const float* part = z.data<float>() + 4 * (4 * i + j);
      ExpectNear<float>(one, {part, part + 4}, 1e-6);
    }
  }
  EXPECT_FALSE(ErrorOf("BatchMatMul", {x, y}).ok());
}

TEST(BatchMatMulTest, AdjointConjugates) {
  const Tensor x = Make<Complex64>({1, 1}, {{1, 2}});
  const Tensor z = RunOne("BatchMatMul", {x, x}, {{"adj_x", true}});
  EXPECT_EQ(z.data<Complex64>()[0], Complex64(5, 0));
  const Tensor bytes = Make<int8_t>({1, 2}, {100, 100});
  ExpectNear<int32_t>(
      RunOne("BatchMatMulV3", {bytes, Make<int8_t>({2, 1}, {100, 100})}, {{"Tout", DType::kInt32}}),
      {20000});
}

}  // namespace
}  // namespace weft::ops::testing
