// SPDX-License-Identifier: Apache-2.0
#include "platform/search/metric_reader.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace weft::platform {
namespace {

constexpr size_t kMostOfLine = 64 << 10;

bool IsOfName(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
         c == '/';
}

}  // namespace

void MetricReader::Read(absl::string_view output) {
  for (const char c : output) {
    if (c == '\n' || c == '\r') {
      ReadLine();
    } else if (line_.size() < kMostOfLine) {
      line_ += c;
    }
  }
}

void MetricReader::Finish() { ReadLine(); }

void MetricReader::ReadLine() {
  const absl::string_view line = line_;
  for (const std::string& name : names_) {
    for (size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
      if (at > 0 && IsOfName(line[at - 1])) continue;  // the end of a longer name
      size_t from = at + name.size();
      while (from < line.size() && line[from] == ' ') ++from;
      if (from >= line.size() || line[from] != '=') continue;
      ++from;
      while (from < line.size() && line[from] == ' ') ++from;
      size_t to = from;
      while (to < line.size() && (IsOfName(line[to]) || line[to] == '+')) ++to;
      // A full stop ends a sentence, not a number.
      while (to > from && line[to - 1] == '.') --to;
      double value = 0;
      if (absl::SimpleAtod(line.substr(from, to - from), &value)) values_[name].push_back(value);
    }
  }
  line_.clear();
}

}  // namespace weft::platform
