// SPDX-License-Identifier: Apache-2.0
#include "platform/object/update_staleness.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr absl::string_view kBegins = "Staleness of ";

bool MakesSense(const UpdateStaleness& staleness) {
  return staleness.updates > 0 && staleness.highest >= 0 && staleness.mean >= 0 &&
         staleness.mean <= static_cast<double>(staleness.highest);
}

// As `weft exec` prints the lines of several processes: "[ps-0] ..."; else empty.
std::string SpeakerOf(absl::string_view line) {
  const size_t close = absl::StartsWith(line, "[") ? line.find("] ") : absl::string_view::npos;
  return close == absl::string_view::npos ? "" : std::string(line.substr(1, close - 1));
}

}  // namespace

std::optional<UpdateStaleness> UpdateStaleness::FromLine(absl::string_view line) {
  const size_t begin = line.find(kBegins);
  if (begin == absl::string_view::npos) return std::nullopt;
  // A log of JSON objects closes its message behind the last number.
  const std::vector<absl::string_view> words = absl::StrSplit(
      line.substr(begin + kBegins.size()), absl::ByAnyChar(" ,\""), absl::SkipEmpty());
  UpdateStaleness staleness;
  const bool is_one = words.size() >= 6 && absl::SimpleAtoi(words[0], &staleness.updates) &&
                      words[1] == "updates:" && words[2] == "mean" &&
                      absl::SimpleAtod(words[3], &staleness.mean) && words[4] == "highest" &&
                      absl::SimpleAtoi(words[5], &staleness.highest);
  if (!is_one || !MakesSense(staleness)) return std::nullopt;
  return staleness;
}

std::optional<UpdateStaleness> UpdateStaleness::FromJson(const Json& json) {
  UpdateStaleness staleness;
  const Json* const mean = FindField(json, {"mean"});
  staleness.mean = mean == nullptr ? -1 : mean->AsDouble().value_or(-1);
  staleness.updates = IntField(json, {"updates"});
  staleness.highest = IntField(json, {"highest"}, -1);
  if (!MakesSense(staleness)) return std::nullopt;
  return staleness;
}

void UpdateStaleness::Add(const UpdateStaleness& other) {
  const auto weight = [](const UpdateStaleness& of) { return static_cast<double>(of.updates); };
  const double sum = weight(*this) * mean + weight(other) * other.mean;
  updates += other.updates;
  mean = updates == 0 ? 0 : sum / static_cast<double>(updates);
  highest = std::max(highest, other.highest);
}

Json UpdateStaleness::Describe() const {
  Json json;
  json.Set("mean", std::round(mean * 100) / 100);
  json.Set("highest", highest);
  json.Set("updates", updates);
  return json;
}

bool ToldStaleness::Hear(absl::string_view line) {
  const std::optional<UpdateStaleness> told = UpdateStaleness::FromLine(line);
  if (told.has_value()) by_task_[SpeakerOf(line)] = *told;
  return told.has_value();
}

Json ToldStaleness::Describe() const {
  UpdateStaleness all;
  for (const auto& [task, told] : by_task_) all.Add(told);
  return all.Describe();
}

}  // namespace weft::platform
