// SPDX-License-Identifier: Apache-2.0
// The loop that weft's side of a benchmark runs: a line in, a measured round out.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "base/status.h"

namespace weft::bench {

using Step = std::function<StatusOr<double>()>;  // gives the check

inline double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The fastest of several bursts of at least 20 ms each, over a quarter of a second.
inline Status Round(const Step& step, double check) {
  double best = 1e9;
  const double end = Seconds() + 0.25;
  int burst = 1;
  do {
    const double start = Seconds();
    for (int i = 0; i < burst; ++i) {
      WEFT_RETURN_IF_ERROR(step().status());
    }
    const double took = Seconds() - start;
    best = std::min(best, took / burst);
    if (took < 0.02) burst *= 2;
  } while (Seconds() < end);
  std::printf("{\"us\": %.3f, \"check\": %.6g}\n", best * 1e6, check);
  std::fflush(stdout);
  return absl::OkStatus();
}

// Ten steps, of which the last gives the check, then a round for each line of the input.
inline Status Serve(const Step& step) {
  double check = 0;
  for (int i = 0; i < 10; ++i) {
    WEFT_ASSIGN_OR_RETURN(check, step());
  }
  std::string line;
  while (std::getline(std::cin, line)) WEFT_RETURN_IF_ERROR(Round(step, check));
  return absl::OkStatus();
}

}  // namespace weft::bench
