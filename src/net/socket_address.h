// SPDX-License-Identifier: Apache-2.0
// host:port as clusters and flags write it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/posix_file.h"
#include "base/status.h"

namespace weft {

struct SocketAddress {
  std::string host;  // a name or an address; IPv6 without its brackets
  int port = 0;      // 0: the system chooses

  // "host:port", "[::1]:port".
  std::string ToString() const;
  bool operator==(const SocketAddress&) const = default;
};

// "host:port" with IPv6 addresses in brackets. InvalidArgument says what is missing.
StatusOr<SocketAddress> ParseSocketAddress(absl::string_view text);

// "localhost", 127.0.0.0/8 and ::1. Other names, also under ".localhost", are not: a resolver may
// send them anywhere, and whoever reaches a port that is not on loopback must show who it is.
bool IsLoopbackHost(absl::string_view host);

// A bound, listening TCP socket (non-blocking, closed on exec). `host` is an address or
// "localhost"; empty is every interface. AlreadyExists when the port is taken. SO_REUSEPORT stays
// off, or two servers would share it.
StatusOr<OwnedFd> ListenTcp(const SocketAddress& address, int backlog = 128);
// The port that a socket got.
StatusOr<int> LocalPort(int fd);

// Whether the host says that nobody listens there, as when the process has ended. False also where
// it has a name instead of an address, or says nothing. Blocks, for a second at most.
bool IsRefused(const SocketAddress& address);

// Ports of 127.0.0.1 that were free a moment ago, all different, and below those that outgoing
// connections get. Another process may take one before it is used.
StatusOr<std::vector<int>> FindFreeLoopbackPorts(int count);

}  // namespace weft
