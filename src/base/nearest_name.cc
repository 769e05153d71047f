// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace weft {
namespace {

bool IsSame(char a, char b) { return absl::ascii_tolower(a) == absl::ascii_tolower(b); }

// Two neighbours that changed places count once.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (IsSame(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && IsSame(a[i - 1], b[j - 2]) && IsSame(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestName(absl::string_view name, const std::vector<std::string>& known) {
  if (name.size() > 128) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > name.size() + best_distance) continue;
    const size_t distance = EditDistance(name, candidate);
    if (distance < best_distance ||
        (distance == best_distance && !best.empty() && candidate < best)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace weft
