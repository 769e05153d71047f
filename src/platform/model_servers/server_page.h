// SPDX-License-Identifier: Apache-2.0
// What a server counts, from its page for Prometheus.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace weft::platform {

// Since the server began.
struct ServerCounts {
  int64_t requests = 0;
  int64_t errors = 0;                   // of them; what a client cancelled is none
  int64_t micros = 0;                   // that requests spent there, all added up
  std::map<double, int64_t> latencies;  // requests at or below so many microseconds

  // Those since `before`; all of them where the server began anew.
  ServerCounts Since(const ServerCounts& before) const;
  void Add(const ServerCounts& other);
  // Within which 99 in 100 were answered; none without requests.
  std::optional<absl::Duration> Latency99() const;
};

// None: the page is not one of `weft serve`.
std::optional<ServerCounts> ReadServerPage(absl::string_view page);

}  // namespace weft::platform
