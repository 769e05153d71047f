// SPDX-License-Identifier: Apache-2.0
// Counts of values in TensorFlow's buckets, each 10% wider than the one before. Not thread-safe.
#pragma once

#include <vector>

#include "absl/types/span.h"

namespace tensorflow {
class HistogramProto;
}

namespace weft::storage {

class Histogram {
 public:
  // Upper limits of all buckets, rising, the last the largest double.
  static const std::vector<double>& BucketLimits();

  Histogram() : counts_(BucketLimits().size(), 0) {}
  // NaN counts in no bucket's range and must not come here.
  void Add(double value);
  void Clear();
  double num() const { return num_; }
  // Runs of empty buckets become one.
  void ToProto(tensorflow::HistogramProto* proto) const;

 private:
  std::vector<double> counts_;
  double min_ = 0, max_ = 0;  // mean nothing while num_ is 0
  double num_ = 0, sum_ = 0, sum_squares_ = 0;
};

}  // namespace weft::storage
