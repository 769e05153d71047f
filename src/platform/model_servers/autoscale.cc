// SPDX-License-Identifier: Apache-2.0
#include "platform/model_servers/autoscale.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace weft::platform {
namespace {

constexpr double kTolerance = 0.1;

int64_t ServersFor(double requests, const ServerScaling& scaling) {
  const double servers = std::ceil(requests / scaling.target - 1e-9);
  return static_cast<int64_t>(std::min(servers, static_cast<double>(scaling.most)));
}

}  // namespace

ScalingAnswer NextReplicas(const ServerScaling& scaling, int64_t current,
                           const std::vector<std::optional<double>>& loads, absl::Time now,
                           ScalingMemory* memory) {
  const int64_t clamped = std::clamp(current, scaling.least, scaling.most);
  if (clamped != current) {
    memory->wanted.clear();
    return {clamped, absl::StrFormat("between %d and %d are allowed", scaling.least, scaling.most)};
  }
  double known = 0, silent = 0;
  for (const std::optional<double>& load : loads) {
    known += load.value_or(0);
    silent += load.has_value() ? 0 : 1;
  }
  // Those that do not say could be idle for more, busy for fewer.
  int64_t wanted = ServersFor(known, scaling);
  if (wanted < current)
    wanted = std::min(current, ServersFor(known + silent * scaling.target, scaling));
  const double used = known / (scaling.target * static_cast<double>(std::max<int64_t>(1, current)));
  if (std::abs(used - 1) <= kTolerance) wanted = current;
  wanted = std::clamp(wanted, scaling.least, scaling.most);
  wanted = std::min(wanted, std::max(current * 2, current + 4));

  // What was wanted before the controller began nobody knows: as many as there are.
  if (memory->wanted.empty()) memory->wanted.emplace_back(now, current);
  memory->wanted.emplace_back(now, wanted);
  int64_t least_up = wanted, most_down = wanted;
  for (const auto& [time, number] : memory->wanted) {
    if (now - time <= scaling.settle_up) least_up = std::min(least_up, number);
    if (now - time <= scaling.settle_down) most_down = std::max(most_down, number);
  }
  if (scaling.settle_up == absl::ZeroDuration()) least_up = wanted;
  if (scaling.settle_down == absl::ZeroDuration()) most_down = wanted;
  const absl::Duration longest = std::max(scaling.settle_up, scaling.settle_down);
  while (now - memory->wanted.front().first > longest) memory->wanted.pop_front();

  int64_t next = current;
  if (wanted > current) next = std::max(current, least_up);
  if (wanted < current) next = std::min(current, most_down);
  if (next == current) return {current, ""};
  return {next, absl::StrFormat("%.1f requests wait or run, %g at a server shall", known,
                                scaling.target)};
}

}  // namespace weft::platform
