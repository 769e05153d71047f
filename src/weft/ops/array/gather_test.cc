// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using ::testing::HasSubstr;

TEST(GatherTest, TakesSlicesAlongEveryAxis) {
  const Tensor x = Fill<float>({3, 4, 5}, -1, 1);
  const std::vector<int32_t> ids = {2, 0, 1, 2};
  for (int axis = 0; axis < 3; ++axis) {
    const Tensor y =
        RunOne("GatherV2", {x, Make<int32_t>({2, 2}, ids), Tensor::Scalar<int32_t>(axis)});
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < 3; ++i) {
      if (i != axis) (i < axis ? outer : inner) *= x.dim(i);
    }
    std::vector<float> expected;
    for (int64_t o = 0; o < outer; ++o) {
      for (const int32_t id : ids) {
        for (int64_t i = 0; i < inner; ++i)
          expected.push_back(x.data<float>()[(o * x.dim(axis) + id) * inner + i]);
      }
    }
    EXPECT_EQ(y.rank(), 4);
    EXPECT_EQ(Values<float>(y), expected);
  }
}

TEST(GatherTest, BatchesGoTogether) {
  const Tensor x = Make<int32_t>({2, 3}, {10, 11, 12, 20, 21, 22});
  const Tensor y =
      RunOne("GatherV2", {x, Make<int32_t>({2, 2}, {2, 0, 1, 1}), Tensor::Scalar<int32_t>(1)},
             {{"batch_dims", 1}});
  EXPECT_EQ(Values<int32_t>(y), (std::vector<int32_t>{12, 10, 21, 21}));
}

TEST(GatherTest, NamesTheIndexThatIsOutOfRange) {
  const Tensor x = Fill<float>({3, 2}, 0, 1);
  const auto error = [&](const Tensor& ids) {
    return std::string(ErrorOf("GatherV2", {x, ids, Tensor::Scalar<int32_t>(0)}).message());
  };
  EXPECT_THAT(error(Make<int32_t>({1}, {5})), HasSubstr("indices[0] = 5 is not in [0, 3)"));
  EXPECT_THAT(error(Make<int32_t>({2, 2}, {0, 1, -1, 2})),
              HasSubstr("indices[1,0] = -1 is not in [0, 3)"));
  EXPECT_THAT(error(Tensor::Scalar<int32_t>(3)), HasSubstr("indices = 3 is not in [0, 3)"));
  EXPECT_THAT(error(Tensor::Scalar<int64_t>(INT64_MAX)), HasSubstr("is not in [0, 3)"));
}

TEST(GatherTest, StringsAndEmptyOnes) {
  const Tensor x = Make<std::string>({3}, {"a", "b", "c"});
  EXPECT_EQ(Values<std::string>(RunOne("Gather", {x, Make<int32_t>({2}, {2, 0})})),
            (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(RunOne("Gather", {x, Make<int32_t>({0, 4}, {})}).shape(), (Shape{0, 4}));
}

TEST(GatherNdTest, TuplesNameElementsAndSlices) {
  const Tensor x = Make<int32_t>({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(Values<int32_t>(RunOne("GatherNd", {x, Make<int32_t>({2, 2}, {0, 2, 1, 0})})),
            (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(Values<int32_t>(RunOne("GatherNd", {x, Make<int32_t>({1, 1}, {1})})),
            (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(RunOne("GatherNd", {x, Make<int32_t>({2, 0}, {})}).shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(std::string(ErrorOf("GatherNd", {x, Make<int32_t>({2, 2}, {0, 0, 2, 0})}).message()),
              HasSubstr("indices[1] = [2, 0] does not index into param shape [2,3]"));
  EXPECT_EQ(Values<int32_t>(RunOne("GatherNd", {x, Make<int32_t>({2, 2}, {9, 0, 1, 1})},
                                   {{"bad_indices_policy", "IGNORE"}})),
            (std::vector<int32_t>{0, 4}));
}

TEST(ScatterNdTest, AddsWhereTuplesMeet) {
  const Tensor y = RunOne("ScatterNd", {Make<int32_t>({3, 1}, {1, 3, 1}),
                                        Make<int32_t>({3}, {10, 20, 30}), Make<int32_t>({1}, {4})});
  EXPECT_EQ(Values<int32_t>(y), (std::vector<int32_t>{0, 40, 0, 20}));
  EXPECT_EQ(ErrorOf("ScatterNd",
                    {Make<int32_t>({1, 1}, {4}), Make<int32_t>({1}, {1}), Make<int32_t>({1}, {4})})
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("ScatterNd", {Make<int32_t>({1, 1}, {0}), Make<int32_t>({2}, {1, 1}),
                                  Make<int32_t>({1}, {4})})
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("ScatterNd",
                    {Make<int32_t>({1, 1}, {0}), Make<int32_t>({1}, {1}), Make<int32_t>({1}, {-4})})
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TensorScatterTest, EveryMode) {
  const Tensor x = Make<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor ids = Make<int32_t>({2, 1}, {2, 2});
  const Tensor updates = Make<float>({2, 2}, {10, -10, 20, -20});
  const auto last_row = [&](const char* op) {
    const std::vector<float> values = Values<float>(RunOne(op, {x, ids, updates}));
    return std::vector<float>{values[4], values[5]};
  };
  EXPECT_EQ(last_row("TensorScatterUpdate"), (std::vector<float>{20, -20}));
  EXPECT_EQ(last_row("TensorScatterAdd"), (std::vector<float>{35, -24}));
  EXPECT_EQ(last_row("TensorScatterSub"), (std::vector<float>{-25, 36}));
  EXPECT_EQ(last_row("TensorScatterMin"), (std::vector<float>{5, -20}));
  EXPECT_EQ(last_row("TensorScatterMax"), (std::vector<float>{20, 6}));
}

}  // namespace
}  // namespace weft::ops::testing
