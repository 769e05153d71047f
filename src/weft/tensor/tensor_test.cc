// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/tensor.h"

#include <functional>
#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(TensorTest, ElementsAreReadAsWhatTheyAre) {
  Tensor tensor = Tensor::Vector<float>({1, 2});
  tensor.data<float>()[1] = 3;
  EXPECT_EQ(tensor.span<float>()[1], 3);
  EXPECT_EQ(Tensor::Scalar<int64_t>(7).scalar<int64_t>(), 7);
  EXPECT_EQ(Tensor().data<float>(), nullptr);
}

std::string ErrorOf(const std::function<void()>& read) {
  try {
    read();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(TensorTest, AnotherTypeIsRefusedAndBothAreNamed) {
  const Tensor numbers = Tensor::Vector<float>({1, 2});
  const Tensor number = Tensor::Scalar<float>(1);
  const Tensor text = Tensor::Scalar("text");
  EXPECT_THAT(ErrorOf([&] { number.scalar<double>(); }),
              HasSubstr("A tensor of float [] is read as double"));
  EXPECT_THAT(ErrorOf([&] { numbers.data<int32_t>(); }),
              HasSubstr("A tensor of float [2] is read as int32"));
  EXPECT_THAT(ErrorOf([&] { numbers.span<uint32_t>(); }), HasSubstr("is read as uint32"));
  EXPECT_THAT(ErrorOf([&] { text.data<float>(); }),
              HasSubstr("A tensor of string [] is read as float"));
  Tensor changed = numbers;
  EXPECT_THAT(ErrorOf([&] { changed.mutable_span<Half>(); }), HasSubstr("is read as half"));
}

TEST(TensorDeathTest, AProgramThatDoesNotCatchItEndsWithTheMessage) {
  EXPECT_DEATH(
      {
        const auto end = []() noexcept { (void)Tensor::Scalar<float>(1).scalar<double>(); };
        end();
      },
      "A tensor of float \\[\\] is read as double");
}

TEST(TensorTest, BitsAreReadAsWhatMovesThem) {
  const Tensor number = Tensor::Scalar<float>(1);
  EXPECT_EQ(*number.bits<uint32_t>(), 0x3f800000u);
}

}  // namespace
}  // namespace weft
