// SPDX-License-Identifier: Apache-2.0
#include "platform/console/doctor.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace weft::platform {
namespace {

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kWorse:
      return "worse";
    case Verdict::kBad:
      return "bad";
  }
  return "bad";
}

const char* Mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "ok  ";
    case Verdict::kWorse:
      return "note";
    case Verdict::kBad:
      return "BAD ";
  }
  return "BAD ";
}

}  // namespace

std::string DescribeFindings(const std::vector<Finding>& findings, bool is_quiet) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.about.size());
  std::string text;
  for (const Verdict verdict : {Verdict::kGood, Verdict::kWorse, Verdict::kBad}) {
    for (const Finding& finding : findings) {
      if (finding.verdict != verdict || (is_quiet && verdict == Verdict::kGood)) continue;
      absl::StrAppendFormat(&text, "%s  %-*s  %s\n", Mark(verdict), static_cast<int>(width),
                            finding.about, finding.found);
      if (finding.next.empty()) continue;
      absl::StrAppendFormat(&text, "      %*s  next: %s\n", static_cast<int>(width), "",
                            finding.next);
    }
  }
  return text;
}

Json FindingsAsJson(const std::vector<Finding>& findings) {
  Json list = Json::MakeArray();
  for (const Finding& finding : findings) {
    Json entry;
    entry.Set("check", finding.about);
    entry.Set("verdict", Word(finding.verdict));
    entry.Set("found", finding.found);
    if (!finding.next.empty()) entry.Set("next", finding.next);
    list.Append(std::move(entry));
  }
  return list;
}

bool IsAnyBad(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.verdict == Verdict::kBad; });
}

}  // namespace weft::platform
