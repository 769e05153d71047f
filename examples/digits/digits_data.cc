// SPDX-License-Identifier: Apache-2.0
#include "digits_data.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

namespace digits {
namespace {

constexpr int kSide = 8;

weft::StatusOr<Set> ToSet(const std::vector<std::vector<int>>& rows, int begin, int end) {
  Set set;
  WEFT_ASSIGN_OR_RETURN(set.images,
                        weft::Tensor::Allocate(weft::DType::kFloat, {end - begin, kPixels}));
  WEFT_ASSIGN_OR_RETURN(set.labels, weft::Tensor::Allocate(weft::DType::kInt64, {end - begin}));
  for (int i = begin; i < end; ++i) {
    for (int p = 0; p < kPixels; ++p) {
      set.images.data<float>()[(i - begin) * kPixels + p] = static_cast<float>(rows[i][p]) / 16.0f;
    }
    set.labels.data<int64_t>()[i - begin] = rows[i][kPixels];
  }
  return set;
}

// The ink at a place between pixels; none outside.
float InkAt(const float* pixels, float y, float x) {
  const int top = static_cast<int>(std::floor(y));
  const int left = static_cast<int>(std::floor(x));
  float ink = 0;
  for (int row : {top, top + 1}) {
    for (int column : {left, left + 1}) {
      if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
      const float near = (1 - std::fabs(y - static_cast<float>(row))) *
                         (1 - std::fabs(x - static_cast<float>(column)));
      ink += near * pixels[row * kSide + column];
    }
  }
  return ink;
}

// Appends the digit as another hand and pen might write it: a little turned, slanted, stretched,
// moved and smudged.
void AppendMoved(const float* pixels, std::mt19937& random, std::vector<float>* out) {
  std::uniform_real_distribution<float> small(-1, 1);
  const float turn = 0.15f * small(random);
  const float slant = 0.15f * small(random);
  const float tall = 1 + 0.1f * small(random);
  const float wide = 1 + 0.1f * small(random);
  const float down = 0.6f * small(random);
  const float right = 0.6f * small(random);
  std::normal_distribution<float> smudge(0, 0.15f);
  constexpr float kMiddle = (kSide - 1) / 2.0f;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const float v = (static_cast<float>(y) - kMiddle - down) * tall;
      const float u = (static_cast<float>(x) - kMiddle - right) * wide + slant * v;
      out->push_back(InkAt(pixels, kMiddle + std::cos(turn) * v - std::sin(turn) * u,
                           kMiddle + std::sin(turn) * v + std::cos(turn) * u) +
                     smudge(random));
    }
  }
}

}  // namespace

weft::StatusOr<Data> Load(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return weft::NotFound("Cannot open the digits at ", path, "; give their path with --data");
  std::vector<std::vector<int>> rows;
  std::string line;
  while (std::getline(file, line)) {
    std::vector<int> row;
    std::istringstream cells(line);
    std::string cell;
    while (std::getline(cells, cell, ',')) row.push_back(std::atoi(cell.c_str()));
    if (row.size() != kPixels + 1 || row[kPixels] < 0 || row[kPixels] >= kClasses) {
      return weft::InvalidArgument(path, ":", rows.size() + 1,
                                   ": expected 64 pixels and a label, got '", line.substr(0, 40),
                                   "'");
    }
    rows.push_back(std::move(row));
  }
  if (rows.size() != kTrain + kTest) {
    return weft::InvalidArgument(path, " has ", rows.size(), " digits, expected ", kTrain + kTest);
  }
  Data data;
  WEFT_ASSIGN_OR_RETURN(data.train, ToSet(rows, 0, kTrain));
  WEFT_ASSIGN_OR_RETURN(data.test, ToSet(rows, kTrain, kTrain + kTest));
  return data;
}

Batches::Batches(const Set& set, int batch_size, unsigned seed)
    : set_(set), batch_size_(batch_size), random_(seed), order_(set.labels.num_elements()) {
  std::iota(order_.begin(), order_.end(), 0);
  next_ = order_.size();
}

Set Batches::Next() {
  if (next_ + batch_size_ > order_.size()) {
    std::shuffle(order_.begin(), order_.end(), random_);
    next_ = 0;
  }
  std::vector<float> images;
  std::vector<int64_t> labels;
  for (int i = 0; i < batch_size_; ++i) {
    const int row = order_[next_++];
    AppendMoved(set_.images.data<float>() + row * kPixels, random_, &images);
    labels.push_back(set_.labels.data<int64_t>()[row]);
  }
  return {weft::Tensor::FromSpan<float>({batch_size_, kPixels}, images),
          weft::Tensor::FromSpan<int64_t>({batch_size_}, labels)};
}

}  // namespace digits
