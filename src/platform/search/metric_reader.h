// SPDX-License-Identifier: Apache-2.0
// Metrics in what a trial prints: `accuracy=0.93` anywhere in a line, as Katib reads standard
// output.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::platform {

class MetricReader {
 public:
  explicit MetricReader(std::vector<std::string> names) : names_(std::move(names)) {}

  // Any part of the output, in order. Lines beyond 64 KiB are cut there.
  void Read(absl::string_view output);
  // The output has ended.
  void Finish();

  // All values of each metric that was seen, in order.
  const std::map<std::string, std::vector<double>>& values() const { return values_; }

 private:
  void ReadLine();

  const std::vector<std::string> names_;
  std::string line_;
  std::map<std::string, std::vector<double>> values_;
};

}  // namespace weft::platform
