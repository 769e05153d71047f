// SPDX-License-Identifier: Apache-2.0
#include "digits_data.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

namespace digits {
namespace {

weft::StatusOr<Set> ToSet(const std::vector<std::vector<int>>& rows, int begin, int end) {
  Set set;
  WEFT_ASSIGN_OR_RETURN(set.images, weft::Tensor::Allocate(weft::DType::kFloat, {end - begin, kPixels}));
  WEFT_ASSIGN_OR_RETURN(set.labels, weft::Tensor::Allocate(weft::DType::kInt64, {end - begin}));
  for (int i = begin; i < end; ++i) {
    for (int p = 0; p < kPixels; ++p) {
      set.images.data<float>()[(i - begin) * kPixels + p] = static_cast<float>(rows[i][p]) / 16.0f;
    }
    set.labels.data<int64_t>()[i - begin] = rows[i][kPixels];
  }
  return set;
}

}  // namespace

weft::StatusOr<Data> Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return weft::NotFound("Cannot open the digits at ", path, "; give their path with --data");
  std::vector<std::vector<int>> rows;
  std::string line;
  while (std::getline(file, line)) {
    std::vector<int> row;
    std::istringstream cells(line);
    std::string cell;
    while (std::getline(cells, cell, ',')) row.push_back(std::atoi(cell.c_str()));
    if (row.size() != kPixels + 1 || row[kPixels] < 0 || row[kPixels] >= kClasses) {
      return weft::InvalidArgument(path, ":", rows.size() + 1, ": expected 64 pixels and a label, got '",
                                   line.substr(0, 40), "'");
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
    : set_(set), batch_size_(batch_size), state_(seed), order_(set.labels.num_elements()) {
  std::iota(order_.begin(), order_.end(), 0);
  next_ = order_.size();
}

Set Batches::Next() {
  if (next_ + batch_size_ > order_.size()) {
    std::shuffle(order_.begin(), order_.end(), std::mt19937(state_++));
    next_ = 0;
  }
  std::vector<float> images;
  std::vector<int64_t> labels;
  for (int i = 0; i < batch_size_; ++i) {
    const int row = order_[next_++];
    const float* pixels = set_.images.data<float>() + row * kPixels;
    images.insert(images.end(), pixels, pixels + kPixels);
    labels.push_back(set_.labels.data<int64_t>()[row]);
  }
  return {weft::Tensor::FromSpan<float>({batch_size_, kPixels}, images),
          weft::Tensor::FromSpan<int64_t>({batch_size_}, labels)};
}

}  // namespace digits
