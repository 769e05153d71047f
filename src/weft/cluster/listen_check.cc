// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/listen_check.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace weft::cluster {

StatusOr<std::pair<std::string, int>> SplitHostPort(absl::string_view address) {
  const auto bad = [&] {
    const bool is_bare_v6 =
        address.find(':') != address.rfind(':') && !absl::StartsWith(address, "[");
    return InvalidArgument("Bad address: '", address, "', expected host:port",
                           is_bare_v6 ? "; IPv6 is written in brackets, like [::1]:2222" : "");
  };
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return bad();
  absl::string_view host = address.substr(0, colon);
  const absl::string_view digits = address.substr(colon + 1);
  int port = 0;
  if (digits.empty() || digits.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(digits, &port) || port > 65535) {
    return bad();
  }
  const bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (host.empty() || (!bracketed && absl::StrContains(host, ":"))) return bad();
  return std::make_pair(std::string(host), port);
}

std::string JoinHostPort(absl::string_view host, int port) {
  return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

bool IsLoopbackHost(absl::string_view host) {
  const std::string lower = absl::AsciiStrToLower(host);
  if (lower == "localhost" || absl::EndsWith(lower, ".localhost")) return true;
  in_addr four{};
  if (inet_pton(AF_INET, lower.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, lower.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Status CheckListenAddress(const std::string& address) {
  WEFT_ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host_port.first.c_str(), absl::StrCat(host_port.second).c_str(), &hints, &found);
  if (error != 0) {
    return Unavailable("Cannot listen at ", address, ": ", gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  int absent = 0;  // why, if none of the host's addresses is of this machine
  bool bound = false;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) {
      absent = errno;
      continue;
    }
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // Without a listen a second bind may pass.
    const bool free = bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 1) == 0;
    const int why = errno;
    close(fd);
    if (!free && why != EADDRNOTAVAIL) {
      return Unavailable("Cannot listen at ", address, ": ", strerror(why));
    }
    bound = bound || free;
    if (!free) absent = why;
  }
  if (!bound) return Unavailable("Cannot listen at ", address, ": ", strerror(absent));
  return absl::OkStatus();
}

}  // namespace weft::cluster
