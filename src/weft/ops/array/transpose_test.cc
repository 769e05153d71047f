// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

// Element `at` (by coordinates) of a row-major tensor.
int64_t Flat(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t flat = 0;
  for (int i = 0; i < shape.rank(); ++i) flat = flat * shape.dim(i) + at[static_cast<size_t>(i)];
  return flat;
}
std::vector<int64_t> Coordinates(const Shape& shape, int64_t flat) {
  std::vector<int64_t> at(static_cast<size_t>(shape.rank()));
  for (int i = shape.rank(); i-- > 0;) {
    at[static_cast<size_t>(i)] = flat % shape.dim(i);
    flat /= shape.dim(i);
  }
  return at;
}

template <typename T>
std::vector<T> Transposed(const Tensor& x, const std::vector<int32_t>& perm, Shape* shape) {
  *shape = Shape();
  for (const int32_t p : perm) shape->AddDim(x.dim(p));
  std::vector<T> out(static_cast<size_t>(x.num_elements()));
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const std::vector<int64_t> to = Coordinates(*shape, i);
    std::vector<int64_t> from(to.size());
    for (size_t d = 0; d < to.size(); ++d) from[static_cast<size_t>(perm[d])] = to[d];
    out[static_cast<size_t>(i)] = x.data<T>()[Flat(x.shape(), from)];
  }
  return out;
}

Tensor PermTensor(const std::vector<int32_t>& perm) {
  return Make<int32_t>(Shape{static_cast<int64_t>(perm.size())}, perm);
}

TEST(TransposeTest, EveryPermutationOfManyShapes) {
  const std::vector<Shape> cases = {
      {},        {5},          {3, 4},    {33, 70},        {2, 3, 4},
      {4, 1, 3}, {2, 3, 4, 5}, {0, 3, 2}, {2, 1, 3, 2, 2}, {17, 2, 19}};
  for (const Shape& shape : cases) {
    const Tensor x = Fill<float>(shape, -9, 9);
    std::vector<int32_t> perm(static_cast<size_t>(shape.rank()));
    std::iota(perm.begin(), perm.end(), 0);
    do {
      Shape expected_shape;
      const std::vector<float> expected = Transposed<float>(x, perm, &expected_shape);
      const Tensor y = RunOne("Transpose", {x, PermTensor(perm)});
      ASSERT_EQ(y.shape(), expected_shape);
      ASSERT_EQ(Values<float>(y), expected) << shape.ToString();
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(TransposeTest, ElementsOfEverySizeAndStrings) {
  const std::vector<int32_t> perm = {2, 0, 1};
  const Shape shape{3, 4, 5};
  Shape out;
  const auto check = [&]<typename T>(const Tensor& x) {
    const std::vector<T> expected = Transposed<T>(x, perm, &out);
    EXPECT_EQ(Values<T>(RunOne("Transpose", {x, PermTensor(perm)})), expected);
  };
  check.operator()<uint8_t>(Fill<uint8_t>(shape, 0, 200));
  check.operator()<int16_t>(Fill<int16_t>(shape, -200, 200));
  check.operator()<double>(Fill<double>(shape, -1, 1));
  std::vector<std::string> texts;
  std::vector<Complex128> complexes;
  for (int i = 0; i < 60; ++i) {
    texts.push_back(absl::StrCat("a long enough text to need memory of its own ", i));
    complexes.push_back({i * 1.0, -i * 2.0});
  }
  check.operator()<std::string>(Make<std::string>(shape, texts));
  check.operator()<Complex128>(Make<Complex128>(shape, complexes));
}

TEST(TransposeTest, MovingOnlyDimensionsOfOneSharesBytes) {
  const Tensor x = Fill<float>({1, 7, 1, 3}, 0, 1);
  const Tensor y = RunOne("Transpose", {x, PermTensor({1, 0, 3, 2})});
  EXPECT_TRUE(y.SharesBufferWith(x));
  EXPECT_EQ(y.shape(), (Shape{7, 1, 3, 1}));
}

TEST(TransposeTest, RefusesWhatIsNoPermutation) {
  const Tensor x = Fill<float>({2, 3}, 0, 1);
  for (const std::vector<int32_t>& perm :
       std::vector<std::vector<int32_t>>{{0}, {0, 0}, {0, 2}, {0, 1, 2}, {-3, 0}}) {
    EXPECT_EQ(ErrorOf("Transpose", {x, PermTensor(perm)}).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(ErrorOf("InvertPermutation", {PermTensor({0, 0})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("InvertPermutation", {PermTensor({1, 2})}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TransposeTest, ConjugatesComplexNumbers) {
  const Tensor x = Make<Complex64>({1, 2}, {{1, 2}, {3, -4}});
  const Tensor y = RunOne("ConjugateTranspose", {x, PermTensor({1, 0})});
  EXPECT_EQ(Values<Complex64>(y), (std::vector<Complex64>{{1, -2}, {3, 4}}));
}

TEST(TransposeTest, InvertsPermutations) {
  EXPECT_EQ(Values<int32_t>(RunOne("InvertPermutation", {PermTensor({2, 0, 3, 1})})),
            (std::vector<int32_t>{1, 3, 0, 2}));
}

}  // namespace
}  // namespace weft::ops::testing
