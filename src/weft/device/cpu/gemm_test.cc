// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/gemm.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

template <typename T>
std::vector<T> Filled(int64_t n, int seed) {
  std::vector<T> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = static_cast<T>(static_cast<float>((i * 7 + seed * 13) % 11 - 5) /
                               (std::is_integral_v<T> ? 1 : 4));
  }
  return values;
}

// Every product against three plain loops; rows lie 3 elements further apart than they need to.
template <typename T>
void Check(int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " " << ta << tb);
  const int64_t as = (ta ? m : k) + 3, bs = (tb ? k : n) + 3, cs = n + 3;
  const std::vector<T> a = Filled<T>(as * (ta ? k : m), 1), b = Filled<T>(bs * (tb ? n : k), 2);
  std::vector<T> c(cs * m, T(77.0f));
  const std::vector<T> bias = Filled<T>(n, 3);
  const MatrixProduct<T> product{ta, tb, m, n, k, a.data(), as, b.data(), bs, c.data(), cs};
  const auto share = [](int64_t total, int64_t least,
                        absl::FunctionRef<void(int64_t, int64_t)> body) {
    for (int64_t i = 0; i < total; i += least) body(i, std::min(total, i + least));
  };
  Multiply<T>(product, {.bias = bias.data()}, share);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = static_cast<double>(std::real(std::complex<double>(bias[j])));
      for (int64_t l = 0; l < k; ++l) {
        const std::complex<double> x(ta ? a[l * as + i] : a[i * as + l]);
        const std::complex<double> y(tb ? b[j * bs + l] : b[l * bs + j]);
        sum += (x * y).real();
      }
      const double got = std::complex<double>(c[i * cs + j]).real();
      ASSERT_NEAR(got, sum, 1e-2 + 4e-3 * std::abs(sum)) << i << "," << j;
    }
    for (int64_t j = n; j < cs; ++j) ASSERT_EQ(c[i * cs + j], T(77.0f)) << "wrote beyond a row";
  }
}

TEST(GemmTest, FloatOfEverySizeClass) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (int64_t size : {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33})
        Check<float>(size, size + 1, size + 2, ta, tb);
      Check<float>(1, 300, 7, ta, tb);
      Check<float>(300, 1, 7, ta, tb);
      Check<float>(2, 30, 77, ta, tb);
      for (int64_t m : {1, 2, 3, 4}) Check<float>(m, 301, 702, ta, tb);  // in long runs
      Check<double>(3, 2100, 33, ta, tb);
      Check<float>(3, 4, 0, ta, tb);
      Check<float>(70, 65, 600, ta, tb);
      Check<float>(130, 120, 100, ta, tb);
      Check<float>(8, 1100, 90, ta, tb);
      Check<float>(20, 700, 800, ta, tb);  // waits for memory
      Check<float>(200, 45, 300, ta, tb);  // packed for all threads
    }
  }
}

TEST(GemmTest, DoubleByBlocks) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Check<double>(4, 4, 4, ta, tb);
      Check<double>(7, 13, 5, ta, tb);
      Check<double>(70, 530, 300, ta, tb);
      Check<double>(150, 70, 270, ta, tb);
    }
  }
}

TEST(GemmTest, OtherTypes) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Check<Half>(5, 6, 7, ta, tb);
      Check<Bfloat16>(5, 6, 7, ta, tb);
      Check<int32_t>(5, 6, 7, ta, tb);
      Check<int64_t>(5, 6, 7, ta, tb);
      Check<Complex64>(5, 6, 7, ta, tb);
      Check<Complex128>(5, 6, 7, ta, tb);
    }
  }
}

// The same product in one piece and in as many as there can be.
template <typename T>
void CheckBits(int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " " << ta << tb);
  std::vector<T> a = Filled<T>(m * k, 1);
  const std::vector<T> b = Filled<T>(k * n, 2);
  for (T& value : a) value /= 7;  // so that sums round
  std::vector<T> whole(m * n), pieces(m * n), alone(m * n);
  MatrixProduct<T> p{ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, whole.data(), n};
  Multiply<T>(p, {}, [](int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
    body(0, total);
  });
  p.c = pieces.data();
  Multiply<T>(p, {}, [](int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
    for (int64_t i = total; i > 0; --i) body(i - 1, i);
  });
  EXPECT_EQ(whole, pieces);
  p.c = alone.data();
  Multiply(p);
  EXPECT_EQ(whole, alone);
}

TEST(GemmTest, BitsDoNotDependOnHowWorkIsShared) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      CheckBits<float>(300, 130, 520, ta, tb);
      CheckBits<float>(50, 600, 300, ta, tb);
      CheckBits<float>(2000, 10, 300, ta, tb);
      CheckBits<float>(1, 3000, 905, ta, tb);
      CheckBits<float>(4, 1100, 700, ta, tb);
      CheckBits<float>(129, 4200, 300, ta, tb);  // more of b than is packed at a time
      CheckBits<double>(200, 150, 300, ta, tb);
    }
  }
}

// Products added one after the other, in pieces, beside a Multiply and an addition for each.
template <typename T>
void CheckSum(int64_t m, int64_t n, const std::vector<int64_t>& depths, bool ta, bool tb) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << " " << ta << tb);
  const std::vector<T> b = Filled<T>(n * 700, 2);
  std::vector<T> a = Filled<T>(m * 700, 1);
  for (T& value : a) value /= 7;  // so that sums round
  std::vector<T> wanted = Filled<T>(m * n, 3), got = wanted, alone(m * n);
  std::vector<MatrixProduct<T>> products;
  for (const int64_t k : depths) {
    products.push_back(
        {ta, tb, m, n, k, a.data(), ta ? m : k, b.data() + k, tb ? k : n, alone.data(), n});
    Multiply<T>(products.back());
    for (int64_t i = 0; i < m * n; ++i) wanted[i] += alone[i];
    products.back().c = got.data();
  }
  const auto share = [](int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
    for (int64_t i = total; i > 0; --i) body(i - 1, i);
  };
  EXPECT_TRUE(AddProducts<T>(products, share));
  EXPECT_EQ(wanted, got);
}

TEST(GemmTest, SumsOfProductsHaveTheBitsOfOneAfterTheOther) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const int64_t m : {1, 2, 5, 40, 128, 300}) {
        for (const int64_t n : {1, 5, 8, 31, 32, 100, 260}) {
          CheckSum<float>(m, n, {32, 7, 0, 256, 300, 1}, ta, tb);
        }
      }
      CheckSum<double>(70, 50, {32, 7, 300}, ta, tb);
      CheckSum<float>(20, 1000, {600, 32}, ta, tb);  // one that waits for memory
    }
  }
}

TEST(GemmTest, NothingIsRead) {
  float c = 5;
  Multiply<float>({false, false, 0, 3, 2, nullptr, 2, nullptr, 3, &c, 3});
  EXPECT_EQ(c, 5);
}

TEST(GemmTest, ActivationRunsOnEachRow) {
  const float a[4] = {1, 0, 0, 1}, b[4] = {-1, 2, 3, -4}, bias[2] = {0.5f, 0.5f};
  float c[4];
  ProductEpilogue epilogue{.bias = bias};
  epilogue.activation = [](const std::byte* in, int, const std::byte*, int, std::byte* out,
                           int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      reinterpret_cast<float*>(out)[i] = std::max(0.0f, reinterpret_cast<const float*>(in)[i]);
    }
  };
  const auto share = [](int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
    body(0, total);
  };
  Multiply<float>({false, false, 2, 2, 2, a, 2, b, 2, c, 2}, epilogue, share);
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(c[1], 2.5f);
  EXPECT_EQ(c[2], 3.5f);
  EXPECT_EQ(c[3], 0);
}

}  // namespace
}  // namespace weft
