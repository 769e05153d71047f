// SPDX-License-Identifier: Apache-2.0
#include "net/socket_address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include "base/files.h"

namespace weft {
namespace {

union AnyAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

StatusOr<int> ParsePort(absl::string_view text, absl::string_view whole) {
  int port = -1;
  const bool digits = !text.empty() && absl::c_all_of(text, [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (!digits || !absl::SimpleAtoi(text, &port) || port < 0 || port > 65535) {
    return InvalidArgument("The port of an address must be a number from 0 to 65535: '", whole,
                           "'");
  }
  return port;
}

bool IsHostName(absl::string_view host) {
  for (const char c : host) {
    const auto u = static_cast<unsigned char>(c);
    if (!absl::ascii_isalnum(u) && c != '.' && c != '-' && c != '_') return false;
  }
  return !host.empty() && host.size() <= 253;
}

constexpr int kLowestPort = 10000;

// The first port that the system gives to outgoing connections: one of those could be taken while a
// server is being started again.
int EphemeralFloor() {
  RealFileSystem files;
  const StatusOr<std::string> range = ReadFile(files, "/proc/sys/net/ipv4/ip_local_port_range", 64);
  int floor = 0;
  if (!range.ok() || !absl::SimpleAtoi(range->substr(0, range->find_first_of(" \t")), &floor)) {
    return 32768;
  }
  return floor;
}

StatusOr<socklen_t> FillAddress(const SocketAddress& address, AnyAddress* out) {
  std::memset(out, 0, sizeof(*out));
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const uint16_t port = htons(static_cast<uint16_t>(address.port));
  if (host.empty()) {
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = port;
    out->v6.sin6_addr = in6addr_any;
    return static_cast<socklen_t>(sizeof(sockaddr_in6));
  }
  if (::inet_pton(AF_INET, host.c_str(), &out->v4.sin_addr) == 1) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = port;
    return static_cast<socklen_t>(sizeof(sockaddr_in));
  }
  if (::inet_pton(AF_INET6, host.c_str(), &out->v6.sin6_addr) == 1) {
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = port;
    return static_cast<socklen_t>(sizeof(sockaddr_in6));
  }
  return InvalidArgument("An address to listen on must be numeric or 'localhost': '", host, "'");
}

}  // namespace

std::string SocketAddress::ToString() const {
  const bool is_v6 = absl::StrContains(host, ':');
  return absl::StrCat(is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", port);
}

StatusOr<SocketAddress> ParseSocketAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (absl::StartsWith(text, "[")) {
    const size_t bracket = text.find(']');
    if (bracket == absl::string_view::npos || colon != bracket + 1) {
      return InvalidArgument("An IPv6 address is written in brackets, like [::1]:2222, found '",
                             text, "'");
    }
    const std::string host(text.substr(1, bracket - 1));
    in6_addr unused;
    // A link-local address may name its interface: fe80::1%eth0.
    if (::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &unused) != 1) {
      return InvalidArgument("There is no IPv6 address in the brackets: '", text, "'");
    }
    WEFT_ASSIGN_OR_RETURN(const int port, ParsePort(text.substr(colon + 1), text));
    return SocketAddress{host, port};
  }
  if (colon == absl::string_view::npos) {
    return InvalidArgument("An address is written host:port, found '", text, "'");
  }
  const absl::string_view host = text.substr(0, colon);
  if (absl::StrContains(host, ':')) {
    return InvalidArgument("An IPv6 address is written in brackets, like [::1]:2222, found '", text,
                           "'");
  }
  if (!IsHostName(host)) {
    return InvalidArgument("The host of an address must be a name or an address, found '", text,
                           "'");
  }
  WEFT_ASSIGN_OR_RETURN(const int port, ParsePort(text.substr(colon + 1), text));
  return SocketAddress{std::string(host), port};
}

bool IsLoopbackHost(absl::string_view host) {
  if (absl::EqualsIgnoreCase(host, "localhost")) return true;
  const std::string text(host);
  in_addr v4;
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return ::inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

StatusOr<OwnedFd> ListenTcp(const SocketAddress& address, int backlog) {
  AnyAddress any;
  WEFT_ASSIGN_OR_RETURN(socklen_t size, FillAddress(address, &any));
  OwnedFd fd(::socket(any.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open() && errno == EAFNOSUPPORT && address.host.empty()) {
    // No IPv6 here: every interface of IPv4.
    return ListenTcp({"0.0.0.0", address.port}, backlog);
  }
  if (!fd.is_open()) return ErrnoStatus(errno, "make a socket for", address.ToString());
  const int on = 1;
  const int off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (any.any.sa_family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, address.host.empty() ? &off : &on,
                 sizeof(on));
  }
  if (::bind(fd.get(), &any.any, size) != 0 || ::listen(fd.get(), backlog) != 0) {
    if (errno == EADDRINUSE) {
      return AlreadyExists("The port is taken by another process: ", address.ToString());
    }
    return ErrnoStatus(errno, "listen on", address.ToString());
  }
  return fd;
}

bool IsRefused(const SocketAddress& address) {
  AnyAddress any;
  const StatusOr<socklen_t> size = FillAddress(address, &any);
  if (!size.ok()) return false;
  const OwnedFd fd(::socket(any.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  return ::connect(fd.get(), &any.any, *size) != 0 && errno == ECONNREFUSED;
}

StatusOr<int> LocalPort(int fd) {
  AnyAddress any;
  socklen_t size = sizeof(any);
  if (::getsockname(fd, &any.any, &size) != 0)
    return ErrnoStatus(errno, "read the address of", "a socket");
  return ntohs(any.any.sa_family == AF_INET6 ? any.v6.sin6_port : any.v4.sin_port);
}

StatusOr<std::vector<int>> FindFreeLoopbackPorts(int count) {
  const int ceiling = EphemeralFloor();
  std::vector<OwnedFd> held;  // all at once, so that no port comes twice
  std::vector<int> ports;
  std::random_device random;
  std::uniform_int_distribution<int> pick(kLowestPort, std::max(kLowestPort, ceiling - 1));
  for (int tries = 0; ports.size() < static_cast<size_t>(std::max(count, 0));) {
    // After many misses the system chooses, and the port may be another's before it is used.
    const int wanted = tries++ < 20 * count && ceiling > kLowestPort ? pick(random) : 0;
    StatusOr<OwnedFd> fd = ListenTcp({"127.0.0.1", wanted}, 1);
    if (!fd.ok() && wanted != 0) continue;
    WEFT_RETURN_IF_ERROR(fd.status());
    WEFT_ASSIGN_OR_RETURN(const int port, LocalPort(fd->get()));
    ports.push_back(port);
    held.push_back(*std::move(fd));
  }
  return ports;
}

}  // namespace weft
