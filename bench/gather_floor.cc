// SPDX-License-Identifier: Apache-2.0
// The limit of look-ups: rows of a table copied by a plain loop that asks memory for rows ahead.
// Each line of stdin is "ROWS WIDTH COUNT" (floats a row, rows looked up); answers
// {"us": of one look-up in the fastest burst} of the best of one and all threads, and of several
// distances ahead.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "base/threads.h"

namespace {

using Clock = std::chrono::steady_clock;

double Microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// kRow: bytes of a row, or 0 where they are known only now.
template <size_t kRow>
void Copy(const std::byte* table, size_t row, const int32_t* ids, size_t begin, size_t end,
          size_t ahead, std::byte* out) {
  if (kRow > 0) row = kRow;
  for (size_t i = begin; i < end; ++i) {
    const std::byte* const later =
        table + static_cast<size_t>(ids[std::min(i + ahead, end - 1)]) * row;
    for (size_t at = 0; at < std::min<size_t>(row, 256); at += 64) __builtin_prefetch(later + at);
    std::memcpy(out + i * row, table + static_cast<size_t>(ids[i]) * row, row);
  }
}

// The fastest of bursts in a tenth of a second.
double Fastest(const std::function<void()>& step) {
  double best = 1e30;
  int burst = 1;
  for (const auto start = Clock::now(); Clock::now() - start < std::chrono::milliseconds(100);) {
    const auto begin = Clock::now();
    for (int i = 0; i < burst; ++i) step();
    const double took = Microseconds(Clock::now() - begin);
    best = std::min(best, took / burst);
    if (took < 2e4) burst *= 2;
  }
  return best;
}

}  // namespace

int main() {
  weft::ComputePool pool("look-ups", 0);
  size_t rows = 0, width = 0, count = 0;
  while (std::scanf("%zu %zu %zu", &rows, &width, &count) == 3 && rows > 0 && width > 0) {
    const size_t row = width * sizeof(float);
    const std::vector<std::byte> table(rows * row, std::byte{1});
    std::vector<std::byte> out(count * row);
    std::vector<int32_t> ids(count);
    std::mt19937 generator(1);
    for (int32_t& id : ids) id = static_cast<int32_t>(generator() % rows);
    const auto copy = row == 8 ? Copy<8> : row == 64 ? Copy<64> : row == 256 ? Copy<256> : Copy<0>;
    double best = 1e30;
    for (const size_t way : {8, 16, 32, 9, 17, 33}) {
      const size_t ahead = way & ~size_t{1};
      const auto look_up = [&](int64_t begin, int64_t end) {
        copy(table.data(), row, ids.data(), static_cast<size_t>(begin), static_cast<size_t>(end),
             ahead, out.data());
      };
      const auto all = static_cast<int64_t>(count);
      const double us = Fastest([&] {
        if (way == ahead) {
          look_up(0, all);
        } else {
          pool.ParallelFor(all, std::max<int64_t>(all / pool.num_threads(), 1), look_up);
        }
      });
      best = std::min(best, us);
    }
    std::printf("{\"us\": %f, \"check\": 0}\n", best);
    std::fflush(stdout);
  }
  return 0;
}
