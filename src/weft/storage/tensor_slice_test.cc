// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/tensor_slice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "proto/tensorflow/tensor_shape.pb.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/ordered_code.h"

namespace weft::storage {
namespace {

std::string Signed(int64_t value) {
  std::string out;
  AppendOrderedSigned(value, &out);
  return out;
}

TEST(OrderedCodeTest, KnownBytes) {
  EXPECT_EQ(Signed(0), "\x80");
  EXPECT_EQ(Signed(63), "\xbf");
  EXPECT_EQ(Signed(64), "\xc0\x40");
  EXPECT_EQ(Signed(100), "\xc0\x64");
  EXPECT_EQ(Signed(200), "\xc0\xc8");
  EXPECT_EQ(Signed(-1), "\x7f");
  EXPECT_EQ(Signed(-64), "\x40");
  EXPECT_EQ(Signed(-65), "\x3f\xbf");
  EXPECT_EQ(Signed(INT64_MAX).size(), 10u);
  // The key of a 4x300 tensor's first two rows, as TensorFlow writes it.
  EXPECT_EQ(BundleSliceKey("p", TensorSlice::Parse("0,2:-").value()),
            std::string("\x00p\x00\x01\x01\x02\x80\x82\x80\x7f", 10));
}

TEST(OrderedCodeTest, BytesSortAsValuesDo) {
  std::vector<int64_t> values = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
  for (int bit = 5; bit < 63; ++bit) {
    for (int64_t near = -2; near <= 2; ++near) {
      values.push_back((int64_t{1} << bit) + near);
      values.push_back(-(int64_t{1} << bit) + near);
    }
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (size_t i = 1; i < values.size(); ++i) {
    EXPECT_LT(Signed(values[i - 1]), Signed(values[i])) << values[i - 1] << " " << values[i];
  }
  std::string a, b, c;
  AppendOrderedString("a", &a);
  AppendOrderedString(absl::string_view("a\0", 2), &b);
  AppendOrderedString("a\xff", &c);
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
  std::string small, large;
  AppendOrderedNumber(255, &small);
  AppendOrderedNumber(256, &large);
  EXPECT_EQ(small, "\x01\xff");
  EXPECT_LT(small, large);
}

TEST(TensorSliceTest, ParsesAndPrints) {
  for (const char* text : {"", "-", "0,2:-:5,1"}) {
    const TensorSlice slice = TensorSlice::Parse(text).value();
    EXPECT_EQ(slice.ToString(), text);
    tensorflow::TensorSliceProto proto;
    slice.ToProto(&proto);
    EXPECT_EQ(TensorSlice::FromProto(proto).value(), slice);
  }
  for (const char* text :
       {":", "0", "0,0", "-1,2", "1,2,3", "a,b", "0,2:", "0,99999999999999999999"}) {
    EXPECT_FALSE(TensorSlice::Parse(text).ok()) << text;
  }
}

TEST(TensorSliceTest, ShapeAndSlice) {
  EXPECT_TRUE(ShapeAndSlice::Parse("").value().whole);
  const ShapeAndSlice parsed = ShapeAndSlice::Parse("4 300 0,2:-").value();
  EXPECT_FALSE(parsed.whole);
  EXPECT_EQ(parsed.full_shape, Shape({4, 300}));
  EXPECT_EQ(parsed.slice.Within(parsed.full_shape).value().shape(), Shape({2, 300}));
  for (const char* text : {" ", "4", "4 300", "4 0,2:-", "4 300 3,2:-", "4  300 0,2:-",
                           "-4 300 0,2:-", "4 x 0,2:-", "9223372036854775807 9 0,1:-"}) {
    EXPECT_FALSE(ShapeAndSlice::Parse(text).ok()) << text;
  }
}

TEST(TensorSliceTest, ExtentsMustLieInside) {
  tensorflow::TensorSliceProto proto;
  auto* extent = proto.add_extent();
  extent->set_start(3);
  EXPECT_FALSE(TensorSlice::FromProto(proto).ok());  // whole, yet it starts somewhere
  extent->set_length(INT64_MAX);
  EXPECT_FALSE(TensorSlice::FromProto(proto).value().Within({10}).ok());
  extent->set_length(-5);
  EXPECT_FALSE(TensorSlice::FromProto(proto).ok());
  EXPECT_FALSE(TensorSlice::Parse("0,1").value().Within({}).ok());
}

// Cuts a tensor in pieces and joins it again, element by element against plain indexing.
TEST(TensorSliceTest, CopiesWhatSlicesShare) {
  const Shape shape = {5, 4, 6};
  Tensor full = Tensor::Zeros(DType::kInt32, shape).value();
  for (int i = 0; i < 120; ++i) full.data<int32_t>()[i] = i;
  const TensorSlice all = TensorSlice::Full(3).Within(shape).value();
  for (const char* text :
       {"-:-:-", "1,2:-:-", "-:1,3:-", "-:-:2,2", "1,3:1,2:1,4", "4,1:3,1:5,1"}) {
    const TensorSlice slice = TensorSlice::Parse(text).value().Within(shape).value();
    Tensor part = Tensor::Zeros(DType::kInt32, slice.shape()).value();
    CopyShared(all, full, slice, &part);
    const auto& e = slice.extents;
    int64_t n = 0;
    for (int64_t i = e[0].start; i < e[0].start + e[0].length; ++i) {
      for (int64_t j = e[1].start; j < e[1].start + e[1].length; ++j) {
        for (int64_t k = e[2].start; k < e[2].start + e[2].length; ++k) {
          ASSERT_EQ(part.data<int32_t>()[n++], (i * 4 + j) * 6 + k) << text;
        }
      }
    }
    Tensor back = Tensor::Zeros(DType::kInt32, shape).value();
    CopyShared(slice, part, all, &back);
    int64_t sum = 0, expected = 0;
    for (int i = 0; i < 120; ++i) {
      sum += back.data<int32_t>()[i];
      if (back.data<int32_t>()[i] != 0) {
        EXPECT_EQ(back.data<int32_t>()[i], i);
      }
    }
    for (int i = 0; i < part.num_elements(); ++i) expected += part.data<int32_t>()[i];
    EXPECT_EQ(sum, expected);
  }
}

}  // namespace
}  // namespace weft::storage
