// SPDX-License-Identifier: Apache-2.0
// Runs a libFuzzer target without libFuzzer: on files named on the command line, or for a moment on
// seeded random bytes and small mutations of them, so that every compiler's test run touches every
// target.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

int RunFiles(int count, char** paths) {
  for (int i = 0; i < count; ++i) {
    std::ifstream file(paths[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", paths[i]);
      return 1;
    }
    const Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  return 0;
}

// Small values and small changes reach deeper than uniform noise.
void Mutate(std::mt19937& random, Bytes& bytes) {
  if (bytes.empty() || random() % 8 == 0) {
    bytes.resize(random() % 256);
    for (uint8_t& byte : bytes) byte = random() % 4 == 0 ? random() : random() % 32;
    return;
  }
  const size_t at = random() % bytes.size();
  switch (random() % 4) {
    case 0:
      bytes[at] ^= 1u << random() % 8;
      break;
    case 1:
      bytes[at] = random() % 2 ? 0xff : 0;
      break;
    case 2:
      bytes.resize(at);
      break;
    default:
      bytes.insert(bytes.begin() + at, bytes.begin(), bytes.begin() + at / 2 + 1);
  }
  if (bytes.size() > 65536) bytes.clear();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return RunFiles(argc - 1, argv + 1);
  std::mt19937 random(1);
  Bytes bytes;
  LLVMFuzzerTestOneInput(bytes.data(), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  int runs = 0;
  for (; runs < 200000 && std::chrono::steady_clock::now() < end; ++runs) {
    Mutate(random, bytes);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%d inputs\n", runs);
  return 0;
}
