// SPDX-License-Identifier: Apache-2.0
// Checks the vector kernels of one instruction set against plain loops in double. Takes no test
// library, so that it can be built for another processor with nothing but its compiler. Ends with
// 77 where the machine lacks the set.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "hwy/highway.h"
#include "weft/device/cpu/depthwise_kernel.h"
#include "weft/device/cpu/gemm_block.h"
#include "weft/device/cpu/narrow_conv_kernel.h"
#include "weft/device/cpu/winograd_kernel.h"
#include "weft/ops/nn/row_kernel.h"

namespace {

int failures = 0;
int64_t compared = 0;

// Values of [-1, 1], the same ones in every run and on every machine.
template <typename T>
std::vector<T> Values(int64_t count, uint32_t seed) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<int32_t>(seed >> 8) - (1 << 23)) / static_cast<T>(1 << 23);
  }
  return values;
}

void Expect(const std::string& what, double got, double expected, double tolerance) {
  ++compared;
  if (std::abs(got - expected) <= tolerance) return;  // false for a NaN
  if (++failures <= 20)
    std::printf("FAILED %s: got %.9g, expected %.9g within %g\n", what.c_str(), got, expected,
                tolerance);
}

// One element behind the last column of c must stay what it was.
template <typename T>
void CheckProduct(bool packed, int64_t m, int64_t n, int64_t k, bool ta, bool tb,
                  double tolerance) {
  const int64_t as = (ta ? m : k) + 3, bs = (tb ? k : n) + 1, cs = n + 1;
  const auto a = Values<T>((ta ? k : m) * as, 1), b = Values<T>((tb ? n : k) * bs, 2);
  std::vector<T> c(static_cast<size_t>(m * cs), T(77));
  weft::MatrixProduct<T> p;
  p.transpose_a = ta;
  p.transpose_b = tb;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = a.data();
  p.a_stride = as;
  p.b = b.data();
  p.b_stride = bs;
  p.c = c.data();
  p.c_stride = cs;
  const weft::BlockCode<T>& code = weft::GetBlockProducts().of<T>();
  if (packed) {
    const int64_t panels = (n + code.panel - 1) / code.panel;
    std::vector<T> right(static_cast<size_t>(panels * code.panel * k));
    code.pack(p, 0, panels / 2, right.data());
    code.pack(p, panels / 2, panels, right.data());
    code.multiply_packed(p, 0, panels, right.data());
  } else {
    code.whole(p);
  }
  const std::string what = (packed ? "packed product " : "product ") + std::to_string(m) + "x" +
                           std::to_string(n) + "x" + std::to_string(k) + (ta ? " a'" : "") +
                           (tb ? " b'" : "") + (sizeof(T) == 4 ? " float" : " double");
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t x = 0; x < k; ++x)
        sum += double(a[ta ? x * as + i : i * as + x]) * double(b[tb ? j * bs + x : x * bs + j]);
      Expect(what, c[i * cs + j], sum, tolerance * double(k + 1));
    }
    Expect(what + " behind a row", c[i * cs + n], 77, 0);
  }
}

void CheckProducts() {
  const int64_t sizes[][3] = {{1, 1, 1},     {4, 16, 8},    {3, 5, 7},    {5, 17, 1},
                              {13, 33, 65},  {66, 31, 9},   {7, 70, 300}, {65, 130, 70},
                              {9, 530, 270}, {150, 90, 270}};
  for (const auto& s : sizes) {
    for (int form = 0; form < 4; ++form) {
      for (const bool packed : {false, true}) {
        if (packed && s[0] > weft::kRowsAtOnce) continue;
        CheckProduct<float>(packed, s[0], s[1], s[2], form & 1, form & 2, 2e-7);
        CheckProduct<double>(packed, s[0], s[1], s[2], form & 1, form & 2, 4e-16);
      }
    }
  }
}

void CheckNarrow() {
  for (int64_t outputs : {1, 3, 8, 19, 32, 45}) {
    for (int64_t count : {1, 5, 6, 13}) {
      weft::NarrowRow row{nullptr, 2, 3, 5, 40, outputs};
      const auto image = Values<float>(3 * 40, 3);
      row.image = image.data();
      const auto filter = Values<float>(15 * outputs, 4),
                 gradients = Values<float>(count * outputs, 5);
      std::vector<float> out(static_cast<size_t>(count * outputs)),
          sums(static_cast<size_t>(15 * outputs), 0.5f);
      weft::GetNarrowFunctions().forward(row, filter.data(), count, out.data());
      weft::GetNarrowFunctions().add_products(row, gradients.data(), count, sums.data());
      const auto pixel = [&](int64_t x, int64_t tap) {
        return double(image[x * 2 + tap / 5 * 40 + tap % 5]);
      };
      for (int64_t c = 0; c < outputs; ++c) {
        for (int64_t x = 0; x < count; ++x) {
          double sum = 0;
          for (int64_t tap = 0; tap < 15; ++tap) sum += pixel(x, tap) * filter[tap * outputs + c];
          Expect("narrow convolution", out[x * outputs + c], sum, 5e-6);
        }
        for (int64_t tap = 0; tap < 15; ++tap) {
          double sum = 0.5;
          for (int64_t x = 0; x < count; ++x) sum += pixel(x, tap) * gradients[x * outputs + c];
          Expect("narrow convolution's gradient", sums[tap * outputs + c], sum, 5e-6);
        }
      }
    }
  }
}

void CheckDepthwise() {
  constexpr int64_t kWidth = 9, kCount = 5, kStep = 2;
  for (int64_t channels : {1, 3, 4, 8, 21, 40, 67}) {
    const auto pixels = Values<float>(kWidth * channels, 6),
               weights = Values<float>(3 * channels, 7);
    const auto gradient = Values<float>(kCount * channels, 8);
    weft::DepthwiseTap taps[3];
    for (int64_t t = 0; t < 3; ++t) taps[t] = {pixels.data(), weights.data() + t * channels, t - 1};
    std::vector<float> out(static_cast<size_t>(kCount * channels), 9);
    weft::GetDepthwiseFunctions().sum_row({taps, 3, kStep, kWidth, channels}, kCount, out.data(),
                                          channels);
    for (int64_t t = 0; t < 3; ++t) {
      std::vector<float> sums(static_cast<size_t>(channels), 0.25f);
      weft::GetDepthwiseFunctions().add_products(pixels.data(), t - 1, kStep, kWidth,
                                                 gradient.data(), kCount, channels, sums.data());
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0.25;
        for (int64_t x = 0; x < kCount; ++x) {
          const int64_t at = x * kStep + t - 1;
          if (at >= 0 && at < kWidth)
            sum += double(pixels[at * channels + c]) * gradient[x * channels + c];
        }
        Expect("depthwise gradient", sums[c], sum, 3e-6);
      }
    }
    for (int64_t x = 0; x < kCount; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t t = 0; t < 3; ++t) {
          const int64_t at = x * kStep + t - 1;
          if (at >= 0 && at < kWidth)
            sum += double(pixels[at * channels + c]) * weights[t * channels + c];
        }
        Expect("depthwise convolution", out[x * channels + c], sum, 3e-6);
      }
    }
  }
}

// Three rows of three neighbouring taps, which have code of their own at step 1.
void CheckDepthwiseSquare(int64_t channels, int64_t step) {
  constexpr int64_t kWidth = 15;
  const int64_t count = (kWidth + step - 1) / step;
  const auto pixels = Values<float>(3 * kWidth * channels, 13);
  const auto weights = Values<float>(9 * channels, 14);
  weft::DepthwiseTap taps[9];
  for (int64_t t = 0; t < 9; ++t) {
    taps[t] = {pixels.data() + t / 3 * kWidth * channels, weights.data() + t * channels, t % 3 - 1};
  }
  std::vector<float> out(static_cast<size_t>(count * channels), 9);
  weft::GetDepthwiseFunctions().sum_row({taps, 9, step, kWidth, channels}, count, out.data(),
                                        channels);
  for (int64_t x = 0; x < count; ++x) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (const weft::DepthwiseTap& tap : taps) {
        const int64_t at = x * step + tap.offset;
        if (at >= 0 && at < kWidth) sum += double(tap.pixels[at * channels + c]) * tap.weights[c];
      }
      Expect("depthwise square", out[x * channels + c], sum, 5e-6);
    }
  }
}

// One image through all steps of a Winograd convolution: transforms, products by frequency,
// outputs.
void CheckWinograd(int64_t size, int64_t inputs, int64_t outputs) {
  const auto& f = weft::GetWinogradFunctions();
  const int64_t tile = weft::kWinogradTile - size + 1, side = 2 * tile + 1, before = size / 2;
  const auto padded = [&](int64_t n) { return (n + f.panel - 1) / f.panel * f.panel; };
  std::vector<weft::TilePlace> from, to;
  for (int64_t y = 0; y < side; y += tile) {
    for (int64_t x = 0; x < side; x += tile) {
      from.push_back({0, y - before, x - before});
      to.push_back({0, y, x});
    }
  }
  const auto count = static_cast<int64_t>(from.size());
  const int64_t in = padded(inputs), out = padded(outputs);
  const auto image = Values<float>(side * side * inputs, 9),
             filter = Values<float>(size * size * inputs * outputs, 10);
  std::vector<float> tiles(static_cast<size_t>(weft::kFrequencies * count * in));
  std::vector<float> panels(static_cast<size_t>(weft::kFrequencies * inputs * out));
  std::vector<float> products(static_cast<size_t>(weft::kFrequencies * count * out));
  std::vector<float> result(static_cast<size_t>(side * side * outputs), 99);
  f.input(image.data(), {side, side, inputs}, from.data(), count, tiles.data(), in, count * in);
  weft::FilterPart part{.from = filter.data(),
                        .inputs = inputs,
                        .outputs = outputs,
                        .last_input = inputs,
                        .last_panel = out / f.panel,
                        .to = panels.data(),
                        .panel_stride = inputs * f.panel,
                        .frequency_stride = inputs * out};
  f.filter(size, part);
  // The same filter as that of a gradient would be read.
  std::vector<float> turned(filter.size()), others(panels.size());
  for (int64_t tap = 0; tap < size * size; ++tap) {
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        turned[((size * size - 1 - tap) * outputs + o) * inputs + i] =
            filter[(tap * inputs + i) * outputs + o];
      }
    }
  }
  part.from = turned.data();
  part.rotated = true;
  part.to = others.data();
  f.filter(size, part);
  for (size_t i = 0; i < panels.size(); ++i) Expect("turned filter", others[i], panels[i], 0);
  for (int64_t q = 0; q < weft::kFrequencies; ++q) {
    f.product({tiles.data() + q * count * in, in, 1, panels.data() + q * inputs * out, count,
               out / f.panel, inputs, products.data() + q * count * out, out, false});
  }
  f.output(size, products.data(), out, count * out, {side, side, outputs}, to.data(), count,
           outputs, result.data());
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      for (int64_t o = 0; o < outputs; ++o) {
        double sum = 0;
        for (int64_t dy = 0; dy < size; ++dy) {
          for (int64_t dx = 0; dx < size; ++dx) {
            const int64_t iy = y + dy - before, ix = x + dx - before;
            if (iy < 0 || ix < 0 || iy >= side || ix >= side) continue;
            for (int64_t i = 0; i < inputs; ++i)
              sum += double(image[(iy * side + ix) * inputs + i]) *
                     filter[((dy * size + dx) * inputs + i) * outputs + o];
          }
        }
        Expect("Winograd convolution", result[(y * side + x) * outputs + o], sum,
               2e-5 * double(inputs + 1));
      }
    }
  }
}

template <typename T>
void CheckRows(double tolerance) {
  for (int64_t columns : {1, 2, 7, 16, 33, 100}) {
    constexpr int64_t kRowCount = 3;
    const auto x = Values<T>(kRowCount * columns, 11), bias = Values<T>(columns, 12);
    std::vector<T> sum(x.size()), soft(x.size()), log(x.size());
    const auto& rows = weft::ops::nn::Rows<T>();
    rows.add_bias(x.data(), bias.data(), kRowCount, columns, sum.data());
    rows.softmax(x.data(), kRowCount, columns, soft.data());
    rows.log_softmax(x.data(), kRowCount, columns, log.data());
    for (int64_t r = 0; r < kRowCount; ++r) {
      double total = 0;
      for (int64_t c = 0; c < columns; ++c) total += std::exp(double(x[r * columns + c]));
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = r * columns + c;
        Expect("bias", sum[at], double(x[at]) + bias[c], tolerance);
        Expect("softmax", soft[at], std::exp(double(x[at])) / total, tolerance);
        Expect("log softmax", log[at], double(x[at]) - std::log(total), 8 * tolerance);
      }
    }
  }
}

// Only kernels of the set named are used from here on; false where the machine lacks it.
bool Choose(const std::string& name) {
#if HWY_ARCH_X86
  const int64_t target = name == "AVX-512" ? HWY_AVX3 : name == "AVX2" ? HWY_AVX2 : 0;
  if (target == 0 || (hwy::SupportedTargets() & target) == 0) return false;
  hwy::SetSupportedTargetsForTest(target);
  return true;
#else
  return name == "NEON";  // the only one that the program holds there
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  const int64_t bytes = name == "AVX-512" ? 64 : name == "AVX2" ? 32 : name == "NEON" ? 16 : 0;
  if (bytes == 0) {
    std::printf("usage: %s AVX-512|AVX2|NEON\n", argv[0]);
    return 2;
  }
  if (!Choose(name)) {
    std::printf("SKIPPED: this machine has no %s, so its kernels are not tested here\n",
                name.c_str());
    return 77;
  }
  Expect("bytes of a vector", double(weft::GetWinogradFunctions().panel * 2), double(bytes), 0);
  CheckProducts();
  CheckNarrow();
  CheckDepthwise();
  for (int64_t channels : {1, 3, 8, 21, 67}) {
    for (int64_t step : {1, 2}) CheckDepthwiseSquare(channels, step);
  }
  for (int64_t size : {3, 5}) {
    for (int64_t outputs : {1, 9, 33}) CheckWinograd(size, outputs == 9 ? 5 : 17, outputs);
  }
  CheckRows<float>(1e-6);
  CheckRows<double>(1e-14);
  std::printf("%s: %lld values compared, %d wrong\n", name.c_str(),
              static_cast<long long>(compared), failures);
  return failures == 0 ? 0 : 1;
}
