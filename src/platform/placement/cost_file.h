// SPDX-License-Identifier: Apache-2.0
// What the runtime measured of a program's step, as a file (JSON): its ops with their times and the
// tensors they make, and what went over which link. `weft server --cost_file` and others write it
// (docs/placement.md has the format); the platform only reads it, and never sees the runtime.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace weft::platform {

inline constexpr char kCostFormat[] = "weft.dev/costs";
inline constexpr int64_t kCostVersion = 1;

struct TensorCost {
  std::string dtype;
  std::vector<int64_t> dims;
  int64_t bytes = 0;
};

struct OpInput {
  std::string op;
  int port = 0;  // -1: it only waits for the op
};

struct OpCost {
  std::string name;
  std::string op;
  std::string device;           // where it ran; may be empty
  std::vector<OpInput> inputs;  // of ops that the file does not hold: constants that were folded
  std::vector<TensorCost> outputs;
  int64_t state_bytes = 0;    // of a variable: what it holds from step to step
  double seconds = -1;        // a step, the mean; negative: never measured
  double least_seconds = -1;  // the least
};

struct LinkCost {
  std::string from;  // devices
  std::string to;
  int64_t transfers = 0;  // a step
  int64_t bytes = 0;      // a step
  double seconds = 0;     // a step, of all transfers together
};

struct CostFile {
  std::string graph;          // fingerprint of names, ops and edges
  int64_t steps = 0;          // that were measured; 0: the file was made from a graph alone
  double step_seconds = -1;   // the mean
  double least_seconds = -1;  // the least
  int64_t batch = 0;          // examples a step; 0: not known
  std::vector<OpCost> ops;
  std::vector<LinkCost> links;
};

// InvalidArgument names the file, the place in it and what was expected; a file of another version
// is refused by its number. Bytes, ops and edges are limited.
StatusOr<CostFile> ParseCostFile(const std::string& text, const std::string& file);

}  // namespace weft::platform
