// SPDX-License-Identifier: Apache-2.0
// Non-blocking TCP sockets as values: addresses, listening, connecting. Thread-safe, stateless.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "absl/time/time.h"

#include "base/status.h"

namespace weft::transport::tcp {

// Owns a file descriptor; closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset();

 private:
  int fd_ = -1;
};

struct ResolvedAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

// "host:port" and "[v6]:port" to addresses, in the order to try them. Waits for the resolver unless
// the host is a number. InvalidArgument for bad syntax, Unavailable if the name is not known,
// DeadlineExceeded.
StatusOr<std::vector<ResolvedAddress>> Resolve(const std::string& address,
                                               absl::Time deadline = absl::InfiniteFuture());

// "10.0.0.2:2222" or "[::1]:2222".
std::string AddressText(const ResolvedAddress& address);
// The local or the other end of a socket; "unknown address" if it has none.
std::string LocalText(int fd);
std::string RemoteText(int fd);
// True if both ends have the same IP address: the other process is in this network namespace.
bool SameHost(int fd);

// Unavailable when the address is taken or not ours.
StatusOr<Fd> ListenOn(const ResolvedAddress& address);

// Starts connecting; the socket gets writable when it is known how that went (ConnectError).
StatusOr<Fd> StartConnect(const ResolvedAddress& address);
Status ConnectError(int fd);

// No delay for small frames; unacknowledged bytes end the connection after `dead_after`, if that is
// finite.
void TuneConnection(int fd, absl::Duration dead_after);

// "Connection refused", for an errno.
std::string ErrorText(int error);

}  // namespace weft::transport::tcp
