// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <map>

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

// The reduction with one plain loop; key = index with reduced positions 0.
std::vector<double> PlainReduce(const Tensor& in, const std::vector<int32_t>& axes, double start,
                                double (*join)(double, double)) {
  std::vector<bool> reduced(in.rank(), false);
  for (int32_t axis : axes) reduced[(axis + in.rank()) % in.rank()] = true;
  std::map<std::vector<int64_t>, double> totals;
  Shape kept;
  for (int d = 0; d < in.rank(); ++d) kept.AddDim(reduced[d] ? 1 : in.dim(d));
  for (const Shape* shape : {static_cast<const Shape*>(&kept), &in.shape()}) {
    for (int64_t i = 0; i < shape->num_elements(); ++i) {
      std::vector<int64_t> key(in.rank());
      int64_t rest = i;
      for (int d = in.rank() - 1; d >= 0; --d) {
        key[d] = reduced[d] ? 0 : rest % shape->dim(d);
        rest /= shape->dim(d);
      }
      auto [at, fresh] = totals.try_emplace(key, start);
      if (shape == &in.shape()) at->second = join(at->second, in.data<float>()[i]);
    }
  }
  std::vector<double> values;
  for (const auto& [key, value] : totals) values.push_back(value);
  return values;
}

TEST(ReduceTest, SumsOverAnyAxes) {
  struct Case {
    Shape shape;
    std::vector<int32_t> axes;
  };
  const std::vector<Case> cases = {{{4, 4}, {0}},       {{4, 4}, {1}},
                                   {{4, 4}, {0, 1}},    {{3, 5, 7}, {1}},
                                   {{3, 5, 7}, {0, 2}}, {{3, 5, 7}, {-1, 0}},
                                   {{3, 5, 7}, {1, 2}}, {{2, 3, 1, 4, 5, 2, 2, 2}, {1, 3, 6}},
                                   {{0, 3}, {0}},       {{3, 0}, {0}},
                                   {{200, 300}, {0}},   {{200, 300}, {1}},
                                   {{100000}, {0}},     {{2, 50000}, {1}},
                                   {{50000, 3}, {0}}};
  for (const Case& test : cases) {
    const Tensor in = Fill<float>(test.shape, -1, 1);
    const Tensor axes = Make<int32_t>({static_cast<int64_t>(test.axes.size())}, test.axes);
    for (const bool keep : {false, true}) {
      const Tensor out = RunOne("Sum", {in, axes}, {{"keep_dims", keep}});
      std::vector<float> expected;
      for (double v : PlainReduce(in, test.axes, 0, [](double a, double b) { return a + b; })) {
        expected.push_back(static_cast<float>(v));
      }
      EXPECT_EQ(out.rank(), keep ? in.rank() : in.rank() - static_cast<int>(test.axes.size()));
      ExpectNear<float>(out, expected, 2e-5);
    }
  }
}

TEST(ReduceTest, EachKindKnowsTheValueOfNothing) {
  const Tensor nothing = Make<float>({0}, {});
  const Tensor axis = Tensor::Scalar<int32_t>(0);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(RunOne("Sum", {nothing, axis}).scalar<float>(), 0);
  EXPECT_EQ(RunOne("Prod", {nothing, axis}).scalar<float>(), 1);
  EXPECT_EQ(RunOne("Max", {nothing, axis}).scalar<float>(), -inf);
  EXPECT_EQ(RunOne("Min", {nothing, axis}).scalar<float>(), inf);
  EXPECT_TRUE(std::isnan(RunOne("Mean", {nothing, axis}).scalar<float>()));
  const Tensor no_bools = Make<uint8_t>({0}, {});
  EXPECT_TRUE(
      RunOne("All", {Tensor(DType::kBool, Shape{0}, no_bools.buffer()), axis}).scalar<bool>());
  EXPECT_FALSE(
      RunOne("Any", {Tensor(DType::kBool, Shape{0}, no_bools.buffer()), axis}).scalar<bool>());
}

TEST(ReduceTest, NarrowTypesAddUpInWideOnes) {
  std::vector<Half> ones(5000, Half(1.0f));
  const Tensor in = Make<Half>({5000}, ones);
  EXPECT_EQ(static_cast<float>(RunOne("Sum", {in, Tensor::Scalar<int32_t>(0)}).scalar<Half>()),
            5000.0f);
  const Tensor matrix = Make<Half>({2500, 2}, ones);
  ExpectNear<Half>(RunOne("Mean", {matrix, Tensor::Scalar<int64_t>(0)}), {Half(1), Half(1)});
}

TEST(ReduceTest, MaxPassesNaNOn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(100, 1.0f);
  values[57] = nan;
  const Tensor in = Make<float>({10, 10}, values);
  EXPECT_TRUE(std::isnan(RunOne("Max", {in, Tensor::Vector<int32_t>({0, 1})}).scalar<float>()));
  EXPECT_TRUE(std::isnan(RunOne("Min", {in, Tensor::Scalar<int32_t>(0)}).data<float>()[7]));
}

TEST(ReduceTest, NamesBadAxes) {
  const Tensor in = Fill<float>({2, 2}, 0, 1);
  EXPECT_THAT(std::string(ErrorOf("Sum", {in, Tensor::Scalar<int32_t>(2)}).message()),
              ::testing::HasSubstr("Invalid reduction dimension (2 for input with 2 dimension(s)"));
  EXPECT_THAT(std::string(ErrorOf("Sum", {in, Tensor::Vector<int32_t>({1, -1})}).message()),
              ::testing::HasSubstr("duplicate dimension: -1"));
}

}  // namespace
}  // namespace weft::ops::testing
