// SPDX-License-Identifier: Apache-2.0
#include "platform/model_servers/server_page.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::platform {
namespace {

constexpr char kRequests[] = ":tensorflow:serving:request_count";
constexpr char kLatencies[] = ":tensorflow:serving:request_latency_bucket";
constexpr char kMicros[] = "weft_serving_request_microseconds_total";

// Of `labels`, as they stand between braces.
absl::string_view LabelOf(absl::string_view labels, absl::string_view name) {
  const std::string start = absl::StrCat(name, "=\"");
  size_t at = 0;
  while ((at = labels.find(start, at)) != absl::string_view::npos) {
    if (at > 0 && labels[at - 1] != ',') {
      ++at;
      continue;
    }
    const absl::string_view rest = labels.substr(at + start.size());
    return rest.substr(0, rest.find('"'));
  }
  return "";
}

void ReadLine(absl::string_view line, ServerCounts* counts, bool* is_ours) {
  const size_t space = line.rfind(' ');
  if (line.empty() || line[0] == '#' || space == absl::string_view::npos) return;
  double value = 0;
  if (!absl::SimpleAtod(line.substr(space + 1), &value) || !(value >= 0) || value > 9e15) return;
  const auto count = static_cast<int64_t>(value);
  const absl::string_view head = line.substr(0, space);
  const size_t brace = head.find('{');
  const absl::string_view name = head.substr(0, brace);
  const absl::string_view labels =
      brace == absl::string_view::npos ? "" : head.substr(brace + 1, head.rfind('}') - brace - 1);
  if (name == kMicros) {
    counts->micros += count;
    *is_ours = true;
  } else if (name == kRequests) {
    const absl::string_view status = LabelOf(labels, "status");
    counts->requests += count;
    if (status != "OK" && status != "CANCELLED") counts->errors += count;
  } else if (name == kLatencies) {
    const absl::string_view bound = LabelOf(labels, "le");
    double micros = std::numeric_limits<double>::infinity();
    if (bound != "+Inf" && !absl::SimpleAtod(bound, &micros)) return;
    counts->latencies[micros] += count;
  }
}

}  // namespace

std::optional<ServerCounts> ReadServerPage(absl::string_view page) {
  ServerCounts counts;
  bool is_ours = false;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) ReadLine(line, &counts, &is_ours);
  if (!is_ours) return std::nullopt;
  return counts;
}

ServerCounts ServerCounts::Since(const ServerCounts& before) const {
  if (before.requests > requests || before.micros > micros) return *this;
  ServerCounts since = *this;
  since.requests -= before.requests;
  since.errors -= before.errors;
  since.micros -= before.micros;
  for (auto& [bound, count] : since.latencies) {
    const auto held = before.latencies.find(bound);
    if (held != before.latencies.end()) count -= held->second;
  }
  return since;
}

void ServerCounts::Add(const ServerCounts& other) {
  requests += other.requests;
  errors += other.errors;
  micros += other.micros;
  for (const auto& [bound, count] : other.latencies) latencies[bound] += count;
}

std::optional<absl::Duration> ServerCounts::Latency99() const {
  if (latencies.empty() || latencies.rbegin()->second <= 0) return std::nullopt;
  const double wanted = 0.99 * static_cast<double>(latencies.rbegin()->second);
  double below = 0, lower = 0;
  for (const auto& [bound, count] : latencies) {
    const auto here = static_cast<double>(count);
    if (here >= wanted) {
      if (std::isinf(bound)) return absl::Microseconds(lower);
      // Where it lies between two bounds nobody knows: as if they were spread evenly.
      const double part = here > below ? (wanted - below) / (here - below) : 1;
      return absl::Microseconds(lower + part * (bound - lower));
    }
    below = here;
    lower = bound;
  }
  return absl::Microseconds(lower);
}

}  // namespace weft::platform
