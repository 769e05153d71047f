// SPDX-License-Identifier: Apache-2.0
// The UCI optical digits as tensors; see DATA.md.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace digits {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;
inline constexpr int kTrain = 1437;
inline constexpr int kTest = 360;

// `images` float [n, 64] in 0..1, `labels` int64 [n].
struct Set {
  weft::Tensor images;
  weft::Tensor labels;
};
struct Data {
  Set train;
  Set test;
};

// Reads digits.csv: a line a digit, 64 pixels of 0..16, then the label. InvalidArgument names the
// line.
weft::StatusOr<Data> Load(const std::string& path);

// Batches of random digits without repeats within an epoch, by `seed`. Each is moved by a little,
// so that a model learns shapes and not places.
class Batches {
 public:
  Batches(const Set& set, int batch_size, unsigned seed);
  Set Next();

 private:
  const Set& set_;
  const int batch_size_;
  std::mt19937 random_;
  std::vector<int> order_;
  size_t next_ = 0;
};

}  // namespace digits
