// SPDX-License-Identifier: Apache-2.0
// The loop that weft's side of a benchmark runs: a line in, a measured round out.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iostream>
#include <string>

#include "base/status.h"

namespace weft::bench {

using Step = std::function<StatusOr<double>()>;  // gives the check

inline double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of all threads of this process.
inline double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The fastest of several bursts of at least 20 ms each, over a quarter of a second, and the CPU
// time of a step over all of them.
inline Status Round(const Step& step, double check) {
  double best = 1e9;
  const double end = Seconds() + 0.25, cpu = CpuSeconds();
  int burst = 1, count = 0;
  do {
    const double start = Seconds();
    for (int i = 0; i < burst; ++i) {
      WEFT_RETURN_IF_ERROR(step().status());
    }
    const double took = Seconds() - start;
    best = std::min(best, took / burst);
    count += burst;
    if (took < 0.02) burst *= 2;
  } while (Seconds() < end);
  std::printf("{\"us\": %.3f, \"check\": %.6g, \"cpu_us\": %.3f}\n", best * 1e6, check,
              (CpuSeconds() - cpu) / count * 1e6);
  std::fflush(stdout);
  return absl::OkStatus();
}

// `checks` steps, of which the last gives the check, then a round for each line of the input.
inline Status Serve(const Step& step, int checks = 10) {
  double check = 0;
  for (int i = 0; i < checks; ++i) {
    WEFT_ASSIGN_OR_RETURN(check, step());
  }
  std::string line;
  while (std::getline(std::cin, line)) WEFT_RETURN_IF_ERROR(Round(step, check));
  return absl::OkStatus();
}

}  // namespace weft::bench
