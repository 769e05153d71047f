// SPDX-License-Identifier: Apache-2.0
// What memory alone costs an all-reduce: each of the processes sums its share of all inputs, which
// lie in shared memory, into all results. Prints "BYTES MEDIAN_US LEAST_US".
//
//   memory_floor RANKS BYTES
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/numbers.h"

namespace {

constexpr int kRounds = 12;

float* Room(size_t bytes) {
  void* const room =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) _exit(1);
  std::memset(room, 0, bytes);
  return static_cast<float*>(room);
}

// Writes go past the caches where the processor lets them.
using Four = float __attribute__((vector_size(16)));
void Write(float* to, Four value) {
#if defined(__SSE2__)
  _mm_stream_ps(to, value);
#else
  *reinterpret_cast<Four*>(to) = value;
#endif
}

void Sum(const std::vector<float*>& in, const std::vector<float*>& out, size_t begin, size_t end) {
  for (size_t at = begin; at < end; at += 16) {
    Four sums[4] = {};
    for (const float* const term : in) {
      for (size_t k = 0; k < 4; ++k) sums[k] += *reinterpret_cast<const Four*>(term + at + 4 * k);
    }
    for (float* const result : out) {
      for (size_t k = 0; k < 4; ++k) Write(result + at + 4 * k, sums[k]);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 0;
  size_t bytes = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &ranks) || ranks < 1 || ranks > 64 ||
      !absl::SimpleAtoi(argv[2], &bytes) || bytes < 64) {
    std::fprintf(stderr, "usage: memory_floor RANKS BYTES\n");
    return 2;
  }
  // A share is of whole lines of a cache.
  const size_t lines = bytes / 64;
  std::vector<float*> in, out;
  for (int k = 0; k < ranks; ++k) {
    in.push_back(Room(bytes));
    out.push_back(Room(bytes));
  }
  std::atomic<int>& arrived = *reinterpret_cast<std::atomic<int>*>(Room(4096));
  int me = 0;
  for (int other = 1; other < ranks && me == 0; ++other) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    me = other;
  }
  int wanted = 0;
  const auto wait_for_all = [&] {
    wanted += ranks;
    ++arrived;
    while (arrived.load() < wanted) sched_yield();
  };
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    wait_for_all();
    const auto begin = std::chrono::steady_clock::now();
    Sum(in, out, lines * static_cast<size_t>(me) / static_cast<size_t>(ranks) * 16,
        lines * static_cast<size_t>(me + 1) / static_cast<size_t>(ranks) * 16);
    wait_for_all();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  if (me != 0) return 0;
  std::sort(times.begin(), times.end());
  std::printf("%zu %f %f\n", bytes, times[times.size() / 2], times[0]);
  while (wait(nullptr) > 0) {
  }
  return 0;
}
