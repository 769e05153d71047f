// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/scale_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

namespace weft::platform {
namespace {

// Until two counts of workers ran.
constexpr double kUsualContention = 0.03;
constexpr double kMostContention = 1;
constexpr double kContentionStep = 0.02;
// What servers take of one worker's time, until two counts of anything ran.
constexpr double kUsualServers = 0.35;
constexpr double kMostServers = 4;
constexpr double kServersGrowth = 1.25;  // from one that is tried to the next
constexpr double kLeastServers = 0.005;
// So much is a law worse for each unit that it is away from the usual one: what was measured
// decides, where it decides anything.
constexpr double kUsualWeight = 1e-4;

double ByLaw(double workers, double load, double contention, double servers) {
  return workers / (1 + contention * (workers - 1) + servers * workers * load);
}

// How far the law is from all rates, whatever one worker's is.
double ErrorOf(const std::vector<MeasuredScale>& measured, double contention, double servers) {
  double sum = 0, squares = 0;
  for (const MeasuredScale& each : measured) {
    const double off = std::log(each.rate / ByLaw(each.workers, each.load, contention, servers));
    sum += off;
    squares += off * off;
  }
  return squares - sum * sum / static_cast<double>(measured.size());
}

}  // namespace

ScaleLaw::ScaleLaw(const std::vector<MeasuredScale>& measured, double load)
    : load_(load), contention_(kUsualContention), servers_(load > 0 ? kUsualServers / load : 0) {
  std::set<double> workers, loads;
  for (const MeasuredScale& each : measured) {
    workers.insert(each.workers);
    loads.insert(each.load);
  }
  knows_servers_ = loads.size() > 1;
  if (workers.size() < 2 && !knows_servers_) return;
  double least = std::numeric_limits<double>::infinity();
  const auto try_servers = [&](double servers) {
    for (double contention = 0; contention <= kMostContention; contention += kContentionStep) {
      const double error = ErrorOf(measured, contention, servers) +
                           kUsualWeight * std::pow(contention - kUsualContention, 2);
      if (error < least)
        std::tie(contention_, servers_, least) = std::tuple(contention, servers, error);
    }
  };
  try_servers(0);
  if (knows_servers_) {
    for (double servers = kLeastServers; servers <= kMostServers; servers *= kServersGrowth)
      try_servers(servers);
    return;
  }
  // All of what the workers take from each other may be the servers' part.
  const double most = std::min(contention_, 1 - kContentionStep);
  servers_ = load > 0 ? most / (1 - most) / load : 0;
}

double ScaleLaw::Rate(double workers, double load) const {
  const auto by = [&](double contention, double servers) {
    return ByLaw(workers, load, contention, servers) / ByLaw(1, load_, contention, servers);
  };
  if (knows_servers_) return by(contention_, servers_);
  const double same = ByLaw(workers, 0, contention_, 0);
  if (load >= load_) return same;
  const double rest = std::max(0.0, contention_ * (1 + servers_ * load_) - servers_ * load_);
  return same * ByLaw(workers, load, rest, servers_) / ByLaw(workers, load_, rest, servers_);
}

}  // namespace weft::platform
