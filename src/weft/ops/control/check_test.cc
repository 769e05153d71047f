// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

TEST(AssertTest, ShowsTheDataOfAFailedAssertion) {
  const auto error = [](std::vector<Tensor> data, int summarize) {
    return std::string(ErrorOf("Assert", {Tensor::Scalar<bool>(false), std::move(data)},
                               {{"summarize", summarize}})
                           .message());
  };
  EXPECT_EQ(error({Make<int32_t>({2, 3}, {0, 1, 2, 3, 4, 5}), Tensor::Scalar("a\nb")}, 4),
            "assertion failed: [[0 1 2][3...]...] [a\\nb]");
  EXPECT_EQ(error({Make<float>({3}, {1.5f, NAN, INFINITY}), Fill<float>({0, 3}, 0, 1)}, 3),
            "assertion failed: [1.5 nan inf] []");
  EXPECT_EQ(error({Tensor::Scalar<float>(0.1f), Tensor::Scalar<double>(1.0 / 7)}, -1),
            "assertion failed: [0.1] [0.14285714285714285]");
  EXPECT_TRUE(
      RunOp("Assert", {Tensor::Scalar<bool>(true), std::vector<Tensor>{Tensor::Scalar("fine")}})
          .ok());
}

TEST(CheckNumericsTest, SaysWhatItFound) {
  const auto check = [](std::vector<float> values) {
    return RunOp("CheckNumerics", {Make<float>(Shape{static_cast<int64_t>(values.size())}, values)},
                 {{"message", "loss"}})
        .status();
  };
  EXPECT_TRUE(check({1, -2, 0}).ok());
  EXPECT_EQ(std::string(check({1, NAN}).message()), "loss : Tensor had NaN values");
  EXPECT_EQ(std::string(check({-INFINITY, NAN}).message()), "loss : Tensor had Inf and NaN values");
  EXPECT_EQ(check({INFINITY}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(PrintTest, PassesItsInputOnAndRefusesUnknownStreams) {
  EXPECT_EQ(RunOne("Print", {Tensor::Scalar<float>(3), std::vector<Tensor>{}}, {{"first_n", 0}})
                .scalar<float>(),
            3);
  EXPECT_EQ(ErrorOf("PrintV2", {Tensor::Scalar("x")}, {{"output_stream", "printer"}}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::ops::testing
