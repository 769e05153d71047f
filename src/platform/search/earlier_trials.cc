// SPDX-License-Identifier: Apache-2.0
#include "platform/search/earlier_trials.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"

#include "net/json.h"

namespace weft::platform {

StatusOr<std::vector<std::vector<double>>> ReadBestPoints(FileSystem& files,
                                                          const std::string& path,
                                                          const SearchSpace& space, bool maximize,
                                                          size_t count) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostBytes));
  std::map<int64_t, std::vector<double>> points;
  std::vector<std::pair<double, int64_t>> ended;
  bool is_header = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const StatusOr<Json> json = Json::Parse(line);
    if (!json.ok() && is_header) return Annotate(json.status(), path);
    if (std::exchange(is_header, false) || !json.ok()) continue;  // a torn last line
    const Json* const number = json->Find("trial");
    const int64_t trial = number == nullptr ? -1 : number->AsInt().value_or(-1);
    if (const Json* const values = json->Find("values")) {
      std::vector<std::pair<std::string, std::string>> assignments;
      for (const JsonMember& member : values->members()) {
        const bool is_ours = absl::c_any_of(
            space.parameters, [&](const SearchParameter& p) { return p.name == member.name; });
        if (is_ours) assignments.emplace_back(member.name, member.value.AsString().value_or(""));
      }
      StatusOr<std::vector<double>> point = space.ReadAssignments(assignments);
      if (point.ok()) points[trial] = *std::move(point);
    } else if (const Json* const objective = json->Find("objective")) {
      const double value = objective->AsDouble().value_or(0);
      ended.emplace_back(maximize ? -value : value, trial);
    }
  }
  absl::c_sort(ended);
  std::vector<std::vector<double>> best;
  for (const auto& [loss, trial] : ended) {
    const auto found = points.find(trial);
    if (found == points.end() || best.size() >= count) continue;
    if (!absl::c_linear_search(best, found->second)) best.push_back(found->second);
  }
  return best;
}

}  // namespace weft::platform
