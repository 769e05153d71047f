// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using ::testing::HasSubstr;

// Log-probabilities of one row, in double.
std::vector<double> LogSoftmaxOf(const float* x, int64_t n) {
  double max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) max = std::max<double>(max, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(x[i] - max - std::log(sum));
  return out;
}

TEST(SoftmaxTest, RowsOfEveryLength) {
  for (const int64_t columns : {1, 2, 3, 7, 8, 9, 10, 16, 31, 100, 1000}) {
    const Tensor x = Fill<float>({5, columns}, -10, 10);
    const Tensor log = RunOne("LogSoftmax", {x});
    const Tensor soft = RunOne("Softmax", {x});
    std::vector<float> log_expected, soft_expected;
    for (int64_t r = 0; r < 5; ++r) {
      for (const double l : LogSoftmaxOf(x.data<float>() + r * columns, columns)) {
        log_expected.push_back(static_cast<float>(l));
        soft_expected.push_back(static_cast<float>(std::exp(l)));
      }
    }
    ExpectNear<float>(log, log_expected, 2e-6);
    ExpectNear<float>(soft, soft_expected, 1e-6);
  }
}

TEST(SoftmaxTest, ExtremeLogits) {
  const float inf = INFINITY;
  ExpectNear<float>(RunOne("Softmax", {Make<float>({2, 3}, {1000, 0, -1000, -inf, 0, -inf})}),
                    {1, 0, 0, 0, 1, 0});
  const Tensor bad = RunOne("Softmax", {Make<float>({1, 2}, {std::nanf(""), 0})});
  EXPECT_TRUE(std::isnan(bad.data<float>()[0]) && std::isnan(bad.data<float>()[1]));
  EXPECT_EQ(RunOne("Softmax", {Fill<float>({0, 3}, 0, 1)}).shape(), (Shape{0, 3}));
  EXPECT_EQ(RunOne("Softmax", {Fill<float>({3, 0}, 0, 1)}).shape(), (Shape{3, 0}));
  EXPECT_EQ(ErrorOf("Softmax", {Tensor::Scalar<float>(1)}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CrossEntropyTest, DenseLabels) {
  for (const int64_t columns : {1, 3, 8, 10, 37}) {
    const Tensor x = Fill<float>({6, columns}, -5, 5);
    const Tensor labels = Fill<float>({6, columns}, 0, 1, 2);
    StatusOr<std::vector<Tensor>> out = RunOp("SoftmaxCrossEntropyWithLogits", {x, labels});
    ASSERT_TRUE(out.ok()) << out.status();
    std::vector<float> loss, backprop;
    for (int64_t r = 0; r < 6; ++r) {
      const std::vector<double> log = LogSoftmaxOf(x.data<float>() + r * columns, columns);
      double total = 0;
      for (int64_t i = 0; i < columns; ++i) {
        const double label = labels.data<float>()[r * columns + i];
        total -= label * log[static_cast<size_t>(i)];
        backprop.push_back(static_cast<float>(std::exp(log[static_cast<size_t>(i)]) - label));
      }
      loss.push_back(static_cast<float>(total));
    }
    ExpectNear<float>((*out)[0], loss, 5e-6);
    ExpectNear<float>((*out)[1], backprop, 2e-6);
  }
}

TEST(CrossEntropyTest, BroadcastsLabels) {
  const Tensor x = Fill<double>({4, 3}, -5, 5);
  const Tensor label = Make<double>({1, 3}, {0.2, 0.3, 0.5});
  const Tensor repeated = RunOne("Tile", {label, Make<int32_t>({2}, {4, 1})});
  ExpectNear<double>(RunOne("SoftmaxCrossEntropyWithLogits", {x, label}),
                     Values<double>(RunOne("SoftmaxCrossEntropyWithLogits", {x, repeated})));
  EXPECT_EQ(ErrorOf("SoftmaxCrossEntropyWithLogits", {x, Fill<double>({4, 2}, 0, 1)}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CrossEntropyTest, SparseLabelsAreOneHotOnes) {
  for (const DType dtype : {DType::kFloat, DType::kHalf, DType::kBfloat16, DType::kDouble}) {
    const Tensor wide = Fill<float>({5, 4}, -3, 3);
    const Tensor x = RunOne("Cast", {wide}, {{"DstT", dtype}});
    const Tensor labels = Make<int64_t>({5}, {0, 3, 1, 2, 2});
    const Tensor hot =
        RunOne("OneHot", {labels, Tensor::Scalar<int32_t>(4),
                          RunOne("Cast", {Tensor::Scalar<float>(1)}, {{"DstT", dtype}}),
                          RunOne("Cast", {Tensor::Scalar<float>(0)}, {{"DstT", dtype}})});
    StatusOr<std::vector<Tensor>> sparse =
        RunOp("SparseSoftmaxCrossEntropyWithLogits", {x, labels});
    StatusOr<std::vector<Tensor>> dense = RunOp("SoftmaxCrossEntropyWithLogits", {x, hot});
    ASSERT_TRUE(sparse.ok() && dense.ok()) << sparse.status() << dense.status();
    for (size_t i = 0; i < 2; ++i) {
      const Tensor a = RunOne("Cast", {(*sparse)[i]}, {{"DstT", DType::kDouble}});
      const Tensor b = RunOne("Cast", {(*dense)[i]}, {{"DstT", DType::kDouble}});
      ExpectNear<double>(a, Values<double>(b),
                         dtype == DType::kBfloat16 ? 8e-3
                         : dtype == DType::kHalf   ? 1e-3
                                                   : 1e-6);
    }
  }
}

TEST(CrossEntropyTest, NamesTheLabelThatIsNoClass) {
  const Tensor x = Fill<float>({2, 3}, 0, 1);
  EXPECT_THAT(
      std::string(ErrorOf("SparseSoftmaxCrossEntropyWithLogits", {x, Make<int32_t>({2}, {0, 5})})
                      .message()),
      HasSubstr("Received a label value of 5 which is outside the valid range of [0, 3).  Label "
                "values: 0 5"));
  EXPECT_EQ(ErrorOf("SparseSoftmaxCrossEntropyWithLogits", {x, Make<int32_t>({2}, {-1, 0})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOf("SparseSoftmaxCrossEntropyWithLogits", {x, Make<int32_t>({3}, {0, 0, 0})}).code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(BiasAddTest, BothLayoutsAndTheirGradient) {
  const Tensor x = Fill<float>({2, 3, 4, 5}, -1, 1);
  const Tensor last = Fill<float>({5}, -1, 1, 2);
  const Tensor second = Fill<float>({3}, -1, 1, 3);
  const Tensor nhwc = RunOne("BiasAdd", {x, last});
  const Tensor nchw = RunOne("BiasAdd", {x, second}, {{"data_format", "NCHW"}});
  std::vector<float> sum_last(5, 0), sum_second(3, 0);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    ASSERT_EQ(nhwc.data<float>()[i], x.data<float>()[i] + last.data<float>()[i % 5]);
    ASSERT_EQ(nchw.data<float>()[i], x.data<float>()[i] + second.data<float>()[i / 20 % 3]);
    sum_last[static_cast<size_t>(i % 5)] += x.data<float>()[i];
    sum_second[static_cast<size_t>(i / 20 % 3)] += x.data<float>()[i];
  }
  ExpectNear<float>(RunOne("BiasAddGrad", {x}), sum_last, 1e-5);
  ExpectNear<float>(RunOne("BiasAddGrad", {x}, {{"data_format", "NCHW"}}), sum_second, 1e-5);
}

TEST(BiasAddTest, RefusesWrongShapes) {
  EXPECT_EQ(ErrorOf("BiasAdd", {Fill<float>({2, 3}, 0, 1), Fill<float>({2}, 0, 1)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("BiasAdd", {Fill<float>({3}, 0, 1), Fill<float>({3}, 0, 1)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunOne("BiasAddGrad", {Fill<float>({0, 3}, 0, 1)}).shape(), (Shape{3}));
}

TEST(ActivationTest, KnownValues) {
  const float nan = std::nanf("");
  const Tensor x = Make<float>({6}, {-2, -0.0f, 0.5f, 3, 7, nan});
  ExpectNear<float>(RunOne("Relu", {x}), {0, 0, 0.5f, 3, 7, nan});
  ExpectNear<float>(RunOne("Relu6", {x}), {0, 0, 0.5f, 3, 6, nan});
  ExpectNear<float>(RunOne("LeakyRelu", {x}, {{"alpha", 0.1f}}), {-0.2f, 0, 0.5f, 3, 7, nan}, 1e-7);
  ExpectNear<float>(RunOne("Elu", {x}), {std::expm1(-2.0f), 0, 0.5f, 3, 7, nan}, 1e-6);
  ExpectNear<float>(RunOne("Softplus", {x}),
                    {std::log1p(std::exp(-2.0f)), std::log(2.0f), std::log1p(std::exp(0.5f)),
                     std::log1p(std::exp(3.0f)), std::log1p(std::exp(7.0f)), nan},
                    1e-6);
  ExpectNear<float>(RunOne("Softsign", {x}), {-2 / 3.0f, 0, 0.5f / 1.5f, 0.75f, 7 / 8.0f, nan},
                    1e-6);
  EXPECT_EQ(Values<int8_t>(RunOne("Relu", {Make<int8_t>({3}, {-128, 0, 127})})),
            (std::vector<int8_t>{0, 0, 127}));
  const Tensor big = RunOne("Softplus", {Make<float>({2}, {1000, -1000})});
  ExpectNear<float>(big, {1000, 0});
}

TEST(ActivationTest, GradientsByDifferences) {
  const struct {
    const char* forward;
    const char* backward;
    bool by_output;
  } pairs[] = {{"Relu", "ReluGrad", false},
               {"Relu6", "Relu6Grad", false},
               {"Elu", "EluGrad", true},
               {"Selu", "SeluGrad", true},
               {"Softplus", "SoftplusGrad", false},
               {"Softsign", "SoftsignGrad", false},
               {"LeakyRelu", "LeakyReluGrad", false}};
  const Tensor x = Make<double>({5}, {-3, -0.5, 0.25, 2, 6.5});
  const Tensor up = Make<double>({5}, {1, 2, 3, 4, 5});
  for (const auto& p : pairs) {
    const double step = 1e-6;
    std::vector<double> above = Values<double>(x), below = above, expected;
    for (double& v : above) v += step;
    for (double& v : below) v -= step;
    const Tensor high = RunOne(p.forward, {Make<double>({5}, above)});
    const Tensor low = RunOne(p.forward, {Make<double>({5}, below)});
    for (int i = 0; i < 5; ++i) {
      expected.push_back(up.data<double>()[i] * (high.data<double>()[i] - low.data<double>()[i]) /
                         (2 * step));
    }
    const Tensor at = p.by_output ? RunOne(p.forward, {x}) : x;
    ExpectNear<double>(RunOne(p.backward, {up, at}), expected, 1e-7);
  }
  EXPECT_EQ(ErrorOf("ReluGrad", {up, Fill<double>({4}, 0, 1)}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::ops::testing
