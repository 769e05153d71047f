// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/histogram.h"

#include <algorithm>
#include <limits>

#include "proto/tensorflow/summary.pb.h"

namespace weft::storage {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

std::vector<double> MakeLimits() {
  std::vector<double> positive;
  // Multiplied step by step: the limits shall be the same doubles as everywhere else.
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(kLargest);
  std::vector<double> limits;
  for (auto it = positive.rbegin(); it != positive.rend(); ++it) limits.push_back(-*it);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

}  // namespace

const std::vector<double>& Histogram::BucketLimits() {
  static const auto* const limits = new std::vector<double>(MakeLimits());
  return *limits;
}

void Histogram::Add(double value) {
  const std::vector<double>& limits = BucketLimits();
  const auto bucket = std::upper_bound(limits.begin(), limits.end(), value) - limits.begin();
  counts_[std::min(static_cast<size_t>(bucket), counts_.size() - 1)] += 1;
  min_ = num_ == 0 ? value : std::min(min_, value);
  max_ = num_ == 0 ? value : std::max(max_, value);
  num_ += 1;
  sum_ += value;
  sum_squares_ += value * value;
}

void Histogram::Clear() { *this = Histogram(); }

void Histogram::ToProto(tensorflow::HistogramProto* proto) const {
  proto->Clear();
  proto->set_min(num_ == 0 ? kLargest : min_);
  proto->set_max(num_ == 0 ? -kLargest : max_);
  proto->set_num(num_);
  proto->set_sum(sum_);
  proto->set_sum_squares(sum_squares_);
  const std::vector<double>& limits = BucketLimits();
  for (size_t i = 0; i < counts_.size(); ++i) {
    const bool in_run = counts_[i] == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0;
    if (in_run) continue;
    proto->add_bucket_limit(limits[i]);
    proto->add_bucket(counts_[i]);
  }
}

}  // namespace weft::storage
