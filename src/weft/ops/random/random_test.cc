// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "weft/ops/random/philox_kernel.h"
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

// Known answers of the generator's authors (Random123, kat_vectors).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}).Next(),
            (Philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox({ones, ones, ones, ones}, {ones, ones}).Next(),
            (Philox::Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}).Next(),
      (Philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, SkippingIsSteppingAndCarries) {
  Philox stepped(3, 4), skipped(3, 4);
  for (int i = 0; i < 5; ++i) stepped.Next();
  skipped.Skip(5);
  EXPECT_EQ(stepped.Next(), skipped.Next());
  Philox edge({0xffffffff, 0xffffffff, 0xffffffff, 7}, {1, 2});
  edge.Skip(1);
  EXPECT_EQ(edge.Next(), Philox({0, 0, 0, 8}, {1, 2}).Next());
}

const AttrMap kSeeds = {{"seed", 5}, {"seed2", 7}, {"dtype", DType::kFloat}};

TEST(RandomTest, SeedsGiveTheSameNumbersAndRunsGoOn) {
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    auto first = KernelRunner::Make(op, {Tensor::Vector<int32_t>({1003})}, kSeeds);
    auto second = KernelRunner::Make(op, {Tensor::Vector<int64_t>({1003})}, kSeeds);
    ASSERT_TRUE(first.ok() && second.ok());
    const std::vector<float> a = Values<float>((*(*first)->Run())[0]);
    EXPECT_EQ(a, Values<float>((*(*second)->Run())[0]));
    EXPECT_NE(a, Values<float>((*(*first)->Run())[0]));
  }
}

// Without looking up it would take minutes.
TEST(RandomTest, ACancelledStepEndsInTheMiddle) {
  auto runner = KernelRunner::Make("TruncatedNormal", {Tensor::Vector<int32_t>({1 << 27})}, kSeeds);
  ASSERT_TRUE(runner.ok());
  (*runner)->cancellation().Cancel(absl::CancelledError("enough"));
  const auto result = (*runner)->Run();
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
}

TEST(RandomTest, MomentsAndBounds) {
  const Tensor shape = Tensor::Vector<int32_t>({200, 500});
  const auto moments = [](const Tensor& t) {
    double sum = 0, squares = 0;
    for (float v : t.span<float>()) {
      sum += v;
      squares += double{v} * v;
    }
    const double mean = sum / t.num_elements();
    return std::make_pair(mean, squares / t.num_elements() - mean * mean);
  };
  const auto [uniform_mean, uniform_variance] = moments(RunOne("RandomUniform", {shape}, kSeeds));
  EXPECT_NEAR(uniform_mean, 0.5, 0.01);
  EXPECT_NEAR(uniform_variance, 1.0 / 12, 0.01);
  const auto [normal_mean, normal_variance] =
      moments(RunOne("RandomStandardNormal", {shape}, kSeeds));
  EXPECT_NEAR(normal_mean, 0, 0.02);
  EXPECT_NEAR(normal_variance, 1, 0.02);
  const Tensor truncated = RunOne("TruncatedNormal", {shape}, kSeeds);
  for (float v : truncated.span<float>()) ASSERT_LT(std::abs(v), 2);
  EXPECT_NEAR(moments(truncated).second, 0.774, 0.02);
}

TEST(RandomTest, WithoutSeedsEachKernelHasItsOwn) {
  const AttrMap attrs = {{"dtype", DType::kFloat}};
  const Tensor shape = Tensor::Vector<int32_t>({8});
  EXPECT_NE(Values<float>(RunOne("RandomUniform", {shape}, attrs)),
            Values<float>(RunOne("RandomUniform", {shape}, attrs)));
}

TEST(RandomTest, IntegersStayInTheirRangeAndEmptyRangesAreErrors) {
  const Tensor shape = Tensor::Vector<int32_t>({1000});
  const Tensor low = Tensor::Scalar<int64_t>(-3), high = Tensor::Scalar<int64_t>(4);
  const Tensor drawn = RunOne("RandomUniformInt", {shape, low, high});
  const std::vector<int64_t> values = Values<int64_t>(drawn);
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), -3);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 3);
  EXPECT_THAT(std::string(ErrorOf("RandomUniformInt", {shape, high, low}).message()),
              ::testing::HasSubstr("Need minval < maxval, got 4 >= -3"));
}

TEST(RandomTest, BadShapesAreErrors) {
  EXPECT_FALSE(ErrorOf("RandomUniform", {Tensor::Vector<int32_t>({-1})}, kSeeds).ok());
  EXPECT_FALSE(ErrorOf("RandomUniform",
                       {Tensor::Vector<int64_t>({int64_t{1} << 40, int64_t{1} << 40})}, kSeeds)
                   .ok());
  EXPECT_EQ(RunOne("RandomUniform", {Tensor::Vector<int32_t>({0, 3})}, kSeeds).num_elements(), 0);
}

TEST(RandomShuffleTest, KeepsRowsWhole) {
  std::vector<int32_t> values(300);
  std::iota(values.begin(), values.end(), 0);
  const Tensor out =
      RunOne("RandomShuffle", {Make<int32_t>({100, 3}, values)}, {{"seed", 5}, {"seed2", 7}});
  std::vector<int32_t> firsts;
  for (int i = 0; i < 100; ++i) {
    const int32_t* row = out.data<int32_t>() + 3 * i;
    EXPECT_EQ(row[1], row[0] + 1);
    EXPECT_EQ(row[2], row[0] + 2);
    firsts.push_back(row[0]);
  }
  EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
  std::sort(firsts.begin(), firsts.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(firsts[i], 3 * i);
}

}  // namespace
}  // namespace weft::ops::testing
