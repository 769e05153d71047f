// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/tcp/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

#include "net/socket_address.h"

namespace weft::transport::tcp {
namespace {

StatusOr<Fd> NewSocket(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Unavailable("Cannot make a socket: ", ErrorText(errno));
  return Fd(fd);
}

const sockaddr* Raw(const ResolvedAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

std::vector<ResolvedAddress> AddressesOf(const addrinfo* found) {
  std::vector<ResolvedAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    ResolvedAddress entry;
    std::memcpy(&entry.storage, one->ai_addr, one->ai_addrlen);
    entry.size = one->ai_addrlen;
    addresses.push_back(entry);
  }
  return addresses;
}

// A look-up by name. The resolver writes to it until it has ended, even if nobody waits any more.
struct Lookup {
  Lookup(std::string the_host, std::string the_port)
      : host(std::move(the_host)), port(std::move(the_port)) {
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
    request.ar_name = host.c_str();
    request.ar_service = port.c_str();
    request.ar_request = &hints;
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup() {
    if (request.ar_result != nullptr) freeaddrinfo(request.ar_result);
  }
  bool HasEnded() { return gai_error(&request) != EAI_INPROGRESS; }
  // False if the deadline came first.
  bool WaitUntil(absl::Time deadline) {
    const gaicb* const list[] = {&request};
    while (!HasEnded()) {
      // In slices, because a far deadline has no timespec.
      const absl::Duration left = std::min(deadline - absl::Now(), absl::Minutes(1));
      if (left <= absl::ZeroDuration()) return false;
      const timespec wait = absl::ToTimespec(left);
      gai_suspend(list, 1, &wait);
    }
    return true;
  }

  const std::string host;
  const std::string port;
  addrinfo hints = {};
  gaicb request = {};
};

// Keeps what the resolver still writes to, and drops what has ended since.
void Abandon(std::unique_ptr<Lookup> lookup) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto* const abandoned = new std::vector<std::unique_ptr<Lookup>>;
  absl::MutexLock lock(&mutex);
  abandoned->erase(
      std::remove_if(abandoned->begin(), abandoned->end(),
                     [](const std::unique_ptr<Lookup>& old) { return old->HasEnded(); }),
      abandoned->end());
  abandoned->push_back(std::move(lookup));
}

StatusOr<std::vector<ResolvedAddress>> LookUp(const std::string& address,
                                              std::unique_ptr<Lookup> lookup, absl::Time deadline) {
  gaicb* list[] = {&lookup->request};
  int error = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr);
  if (error == 0) {
    if (!lookup->WaitUntil(deadline)) {
      if (gai_cancel(&lookup->request) == EAI_NOTCANCELED) Abandon(std::move(lookup));
      return DeadlineExceeded("No answer in time to the look-up of the host name, address '",
                              address, "'");
    }
    error = gai_error(&lookup->request);
  }
  if (error != 0) {
    return Unavailable("Host name is not known: ", gai_strerror(error), ", address '", address,
                       "'");
  }
  std::vector<ResolvedAddress> addresses = AddressesOf(lookup->request.ar_result);
  if (addresses.empty()) return Unavailable("Host has no address: '", address, "'");
  return addresses;
}

std::string EndText(int fd, int (*end)(int, sockaddr*, socklen_t*)) {
  ResolvedAddress address;
  address.size = sizeof(address.storage);
  if (end(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return "unknown address";
  }
  return AddressText(address);
}

int LocalEnd(int fd, sockaddr* address, socklen_t* size) { return getsockname(fd, address, size); }
int RemoteEnd(int fd, sockaddr* address, socklen_t* size) { return getpeername(fd, address, size); }

}  // namespace

void Fd::Reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

std::string ErrorText(int error) { return std::generic_category().message(error); }

StatusOr<std::vector<ResolvedAddress>> Resolve(const std::string& address, absl::Time deadline) {
  WEFT_ASSIGN_OR_RETURN(const SocketAddress named, ParseSocketAddress(address));
  const std::string& host = named.host;
  const std::string port = absl::StrCat(named.port);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) == 0) {
    std::vector<ResolvedAddress> addresses = AddressesOf(found);
    freeaddrinfo(found);
    return addresses;
  }
  return LookUp(address, std::make_unique<Lookup>(host, port), deadline);
}

std::string AddressText(const ResolvedAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    return absl::StrCat("[", text, "]:", ntohs(v6->sin6_port));
  }
  if (address.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    return absl::StrCat(text, ":", ntohs(v4->sin_port));
  }
  return "unknown address";
}

std::string LocalText(int fd) { return EndText(fd, LocalEnd); }
std::string RemoteText(int fd) { return EndText(fd, RemoteEnd); }

bool SameHost(int fd) {
  ResolvedAddress local, remote;
  local.size = remote.size = sizeof(sockaddr_storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local.storage), &local.size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&remote.storage), &remote.size) != 0 ||
      local.storage.ss_family != remote.storage.ss_family) {
    return false;
  }
  const std::string here = AddressText(local), there = AddressText(remote);
  return here.substr(0, here.rfind(':')) == there.substr(0, there.rfind(':'));
}

StatusOr<Fd> ListenOn(const ResolvedAddress& address) {
  WEFT_ASSIGN_OR_RETURN(Fd fd, NewSocket(address.storage.ss_family));
  // A restarted server takes its port back; SO_REUSEPORT stays off, so two never share one.
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), Raw(address), address.size) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return Unavailable("Cannot listen: ", ErrorText(errno), ", address ", AddressText(address));
  }
  return fd;
}

StatusOr<Fd> StartConnect(const ResolvedAddress& address) {
  WEFT_ASSIGN_OR_RETURN(Fd fd, NewSocket(address.storage.ss_family));
  if (connect(fd.get(), Raw(address), address.size) != 0 && errno != EINPROGRESS) {
    return Unavailable(ErrorText(errno), ", address ", AddressText(address));
  }
  return fd;
}

Status ConnectError(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return Unavailable(ErrorText(error));
  return absl::OkStatus();
}

void TuneConnection(int fd, absl::Duration dead_after) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // 0 leaves it to the system.
  const int64_t limit_ms = absl::ToInt64Milliseconds(dead_after);
  const unsigned int timeout_ms = limit_ms > INT32_MAX ? 0 : static_cast<unsigned int>(limit_ms);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

}  // namespace weft::transport::tcp
