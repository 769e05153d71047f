// SPDX-License-Identifier: Apache-2.0
// Metrics in what a trial prints, as Katib reads it: `accuracy=0.93` anywhere in a line, what
// regular expressions find, or a JSON object a line; and in pages for Prometheus.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace re2 {
class RE2;
}

namespace weft::platform {

struct MetricFormat {
  bool is_json = false;
  // The first group is the name, the second the value. None: `name=value`.
  std::vector<std::string> filters = {};
};

class MetricReader {
 public:
  // A filter that is no regular expression with two groups finds nothing; CheckFilters tells.
  explicit MetricReader(std::vector<std::string> names, const MetricFormat& format = {});
  ~MetricReader();
  MetricReader(MetricReader&&) noexcept;

  // Any part of the output, in order. Lines beyond 64 KiB are cut there.
  void Read(absl::string_view output);
  // The output has ended.
  void Finish();

  // All values of each metric that was seen, in order.
  const std::map<std::string, std::vector<double>>& values() const { return values_; }

 private:
  void ReadLine();
  void ReadPlainLine();
  void ReadJsonLine();
  void ReadWithFilters();
  void Note(absl::string_view name, absl::string_view value);

  const std::vector<std::string> names_;
  const bool is_json_;
  std::vector<std::unique_ptr<re2::RE2>> filters_;
  std::string line_;
  std::map<std::string, std::vector<double>> values_;
};

Status CheckFilters(const std::vector<std::string>& filters);

// The value of each metric on a page in Prometheus' text form; of several the last one.
std::map<std::string, double> ReadPrometheus(absl::string_view page,
                                             const std::vector<std::string>& names);

}  // namespace weft::platform
