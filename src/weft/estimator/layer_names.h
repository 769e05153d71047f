// SPDX-License-Identifier: Apache-2.0
// Names as Keras makes them.
#pragma once

#include <map>
#include <string>

namespace weft::estimator {

// "Conv2DTranspose" as "conv2d_transpose".
std::string SnakeCase(const std::string& class_name);

// Gives "dense", "dense_1", ... for one base after another.
class NameCounter {
 public:
  std::string Next(const std::string& base) {
    const int count = counts_[base]++;
    return count == 0 ? base : base + "_" + std::to_string(count);
  }

 private:
  std::map<std::string, int> counts_;
};

}  // namespace weft::estimator
