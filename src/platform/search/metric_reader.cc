// SPDX-License-Identifier: Apache-2.0
#include "platform/search/metric_reader.h"

#include <algorithm>
#include <cmath>

#include <re2/re2.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "net/json.h"

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

void MetricReader::Note(absl::string_view name, absl::string_view value) {
  double number = 0;
  if (std::find(names_.begin(), names_.end(), name) == names_.end()) return;
  if (absl::SimpleAtod(absl::StripAsciiWhitespace(value), &number))
    values_[std::string(name)].push_back(number);
}

void MetricReader::ReadLine() {
  if (is_json_) {
    ReadJsonLine();
  } else if (!filters_.empty()) {
    ReadWithFilters();
  } else {
    ReadPlainLine();
  }
  line_.clear();
}

void MetricReader::ReadPlainLine() {
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
      Note(name, line.substr(from, to - from));
    }
  }
}

void MetricReader::ReadJsonLine() {
  const StatusOr<Json> object = Json::Parse(line_);
  if (!object.ok()) return;
  for (const std::string& name : names_) {
    const Json* const value = object->Find(name);
    if (value == nullptr) continue;
    Note(name, value->is_string() ? value->AsString().value_or("") : value->Dump());
  }
}

void MetricReader::ReadWithFilters() {
  for (const std::unique_ptr<re2::RE2>& filter : filters_) {
    std::vector<re2::StringPiece> groups(
        static_cast<size_t>(std::max(2, filter->NumberOfCapturingGroups())) + 1);
    re2::StringPiece line(line_);
    while (filter->Match(line, 0, line.size(), re2::RE2::UNANCHORED, groups.data(),
                         static_cast<int>(groups.size()))) {
      Note(absl::StripAsciiWhitespace({groups[1].data(), groups[1].size()}),
           {groups[2].data(), groups[2].size()});
      // At least one character on.
      const auto end = static_cast<size_t>(groups[0].data() - line.data()) +
                       std::max<size_t>(1, groups[0].size());
      if (end > line.size()) break;
      line.remove_prefix(end);
    }
  }
}

MetricReader::MetricReader(std::vector<std::string> names, const MetricFormat& format)
    : names_(std::move(names)), is_json_(format.is_json) {
  for (const std::string& filter : format.filters) {
    auto made = std::make_unique<re2::RE2>(filter, re2::RE2::Quiet);
    if (made->ok() && made->NumberOfCapturingGroups() >= 2) filters_.push_back(std::move(made));
  }
}

MetricReader::~MetricReader() = default;
MetricReader::MetricReader(MetricReader&&) noexcept = default;

Status CheckFilters(const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) {
    const re2::RE2 made(filter, re2::RE2::Quiet);
    if (!made.ok()) return InvalidArgument("the filter '", filter, "': ", made.error());
    if (made.NumberOfCapturingGroups() < 2) {
      return InvalidArgument("the filter '", filter,
                             "' has no two groups: the first finds a name, the second its value");
    }
  }
  return absl::OkStatus();
}

std::map<std::string, double> ReadPrometheus(absl::string_view page,
                                             const std::vector<std::string>& names) {
  std::map<std::string, double> values;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    const size_t end = line.find_first_of("{ ");
    if (line.empty() || line[0] == '#' || end == line.npos) continue;
    const std::string name(line.substr(0, end));
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (line[end] == '{') {
      const size_t close = line.rfind('}');
      if (close == line.npos) continue;
      line.remove_prefix(close + 1);
    } else {
      line.remove_prefix(end);
    }
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double value = 0;
    if (!words.empty() && absl::SimpleAtod(words[0], &value)) values[name] = value;
  }
  return values;
}

}  // namespace weft::platform
