// SPDX-License-Identifier: Apache-2.0
// Why a port cannot be listened at: gRPC only says that it cannot.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::cluster {

// ("host", 80) of "host:80", "[::1]:80". InvalidArgument naming the text otherwise.
StatusOr<std::pair<std::string, int>> SplitHostPort(absl::string_view address);

// "host:port", with brackets where the host is an IPv6 address.
std::string JoinHostPort(absl::string_view host, int port);

// True if every address the host means is of this machine's loopback ("localhost", 127.x, ::1).
bool IsLoopbackHost(absl::string_view host);

// OK if "host:port" can be bound now; Unavailable naming address and cause (port taken, no such
// address, not permitted) otherwise.
Status CheckListenAddress(const std::string& address);

}  // namespace weft::cluster
