// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/listen_check.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket_address.h"

namespace weft::wire {

Status CheckListenAddress(const std::string& address) {
  WEFT_ASSIGN_OR_RETURN(const SocketAddress where, ParseSocketAddress(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(where.host.c_str(), absl::StrCat(where.port).c_str(), &hints, &found);
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

}  // namespace weft::wire
