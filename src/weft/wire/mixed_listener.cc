// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/mixed_listener.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/time/clock.h"

#include "base/log.h"
#include "net/socket_address.h"

namespace weft::wire {
namespace {

constexpr int kLookEveryMs = 250;  // at those that have said nothing, while there are any
constexpr char kTlsHandshake = 0x16;

// The first address of the host that can be listened at.
StatusOr<OwnedFd> ListenAt(const addrinfo* addresses, const std::string& name) {
  int why = EADDRNOTAVAIL;
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) {
    OwnedFd fd(
        ::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol));
    const int on = 1, off = 0;
    if (fd.is_open()) {
      // SO_REUSEPORT stays off: two servers would share one port's clients without a word.
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      // Accepted connections inherit it.
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      // "::" means every interface, of either version.
      if (at->ai_family == AF_INET6)
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      if (::bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 &&
          ::listen(fd.get(), SOMAXCONN) == 0) {
        return fd;
      }
    }
    why = errno;
    if (why != EADDRNOTAVAIL && why != EAFNOSUPPORT) break;
  }
  return Unavailable("Cannot listen at ", name, ": ", strerror(why));
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

MixedListener::MixedListener(OwnedFd listener, int port, Options options)
    : options_(options),
      port_(port),
      listener_(std::move(listener)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

StatusOr<std::unique_ptr<MixedListener>> MixedListener::Listen(const std::string& address,
                                                               const Options& options) {
  WEFT_ASSIGN_OR_RETURN(const SocketAddress where, ParseSocketAddress(address));
  const std::string port = absl::StrCat(where.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  std::vector<std::string> hosts = {where.host};
  // A system without IPv6 still has all its interfaces.
  if (where.host == "::") hosts.push_back("0.0.0.0");
  Status last;
  for (const std::string& host : hosts) {
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    if (error != 0) {
      last = Unavailable("Cannot listen at ", address, ": ", gai_strerror(error));
      continue;
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
    StatusOr<OwnedFd> fd = ListenAt(found, address);
    if (fd.ok()) {
      const int bound = PortOf(fd->get());
      return std::unique_ptr<MixedListener>(new MixedListener(*std::move(fd), bound, options));
    }
    last = fd.status();
  }
  return last;
}

void MixedListener::Start(Handle handle) {
  handle_ = std::move(handle);
  thread_ = std::make_unique<Thread>("listen", [this] { Run(); });
}

void MixedListener::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
  thread_.reset();
  listener_.Reset();
  silent_.clear();
}

void MixedListener::Run() {
  std::vector<pollfd> ready;
  while (true) {
    ready = {{stop_.get(), POLLIN, 0},
             {listener_.get(), static_cast<short>(accepts_ ? POLLIN : 0), 0}};
    for (const Silent& one : silent_) ready.push_back({one.connection.get(), POLLIN, 0});
    const bool is_quiet = silent_.empty() && accepts_;
    if (::poll(ready.data(), ready.size(), is_quiet ? -1 : kLookEveryMs) < 0) continue;
    if (ready[0].revents != 0) return;
    const absl::Time now = absl::Now();
    size_t at = 2;
    for (auto one = silent_.begin(); one != silent_.end(); ++at) {
      const bool is_over = ready[at].revents != 0 ? Sort(&one->connection)
                                                  : now - one->since > options_.first_byte_within;
      one = is_over ? silent_.erase(one) : std::next(one);
    }
    accepts_ = true;
    if (ready[1].revents != 0) AcceptAll();
  }
}

void MixedListener::AcceptAll() {
  while (true) {
    OwnedFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection.is_open()) {
      const int error = errno;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
        // It stays readable, and would be asked again and again.
        accepts_ = false;
        WEFT_LOG_EVERY(WARNING, absl::Seconds(10))
            << "Cannot accept connections for a while: " << strerror(error);
      }
      return;
    }
    if (Sort(&connection)) continue;
    // A task's client speaks at once: who has said nothing for longest gives way.
    if (silent_.size() >= options_.most_silent) silent_.pop_front();
    silent_.push_back({std::move(connection), absl::Now()});
  }
}

bool MixedListener::Sort(OwnedFd* connection) {
  char first = 0;
  const ssize_t got = ::recv(connection->get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got == 1) handle_(std::move(*connection), first == kTlsHandshake);
  return true;
}

}  // namespace weft::wire
