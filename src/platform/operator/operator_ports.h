// SPDX-License-Identifier: Apache-2.0
// The ports of `weft operator`: /metrics, and /healthz with /readyz.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "net/http_server.h"

namespace weft::platform {

struct PortOptions {
  std::string address;      // "host:port", ":port" for every interface; "0": none
  std::string certificate;  // files; empty: made anew, signed by itself
  std::string key;
  std::string token_file;          // whoever asks must know what is in it
  std::vector<std::string> hosts;  // names by which it may be asked for, besides its address
};

// On anything but loopback it speaks TLS, and metrics ask for the token: InvalidArgument without
// one.
StatusOr<std::unique_ptr<HttpServer>> ServeMetrics(const PortOptions& port, const Clock& clock,
                                                   MetricRegistry* metrics);
// `is_ready` is asked on the server's thread. Says yes or no and nothing else, so asks for no
// token.
StatusOr<std::unique_ptr<HttpServer>> ServeHealth(const PortOptions& port, const Clock& clock,
                                                  std::function<bool()> is_ready);

}  // namespace weft::platform
