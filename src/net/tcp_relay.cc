// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_relay.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace weft {
namespace {

constexpr size_t kMostWaiting = 256 << 10;  // bytes, each way
constexpr size_t kPiece = 64 << 10;
constexpr size_t kMostPairs = 4096;
constexpr int kBacklog = 512;
constexpr absl::Duration kNoDescriptors = absl::Milliseconds(20);
constexpr timeval kLongestConnect = {2,
                                     0};  // a refusal comes at once, a full queue of a server never

void SetUp(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

}  // namespace

StatusOr<std::unique_ptr<TcpRelay>> TcpRelay::Start() {
  std::unique_ptr<TcpRelay> relay(new TcpRelay());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoStatus(errno, "make a pipe", "");
  relay->wake_read_.Reset(ends[0]);
  relay->wake_write_.Reset(ends[1]);
  relay->thread_ = std::make_unique<Thread>("weft-relay", [raw = relay.get()] { raw->Run(); });
  return relay;
}

TcpRelay::~TcpRelay() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.reset();
}

void TcpRelay::Wake() {
  const char byte = 0;
  // A full pipe wakes it too.
  [[maybe_unused]] const ssize_t written = ::write(wake_write_.get(), &byte, 1);
}

Status TcpRelay::Lead(const SocketAddress& at, std::vector<SocketAddress> targets) {
  {
    absl::MutexLock lock(&mutex_);
    Entrance& entrance = entrances_[at.ToString()];
    if (!entrance.listener.is_open()) {
      StatusOr<OwnedFd> listener = ListenTcp(at, kBacklog);
      if (!listener.ok()) {
        entrances_.erase(at.ToString());
        return listener.status();
      }
      entrance.listener = *std::move(listener);
    }
    entrance.targets = std::move(targets);
  }
  Wake();
  return absl::OkStatus();
}

void TcpRelay::Drop(const SocketAddress& at) {
  {
    absl::MutexLock lock(&mutex_);
    entrances_.erase(at.ToString());
  }
  Wake();
}

OwnedFd TcpRelay::Connect(Entrance* entrance) {
  for (size_t i = 0; i < entrance->targets.size(); ++i) {
    const SocketAddress& target = entrance->targets[entrance->next++ % entrance->targets.size()];
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(target.port));
    OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.is_open() || ::inet_pton(AF_INET, target.host.c_str(), &address.sin_addr) != 1)
      continue;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kLongestConnect, sizeof(kLongestConnect));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
      return fd;
  }
  return OwnedFd();
}

void TcpRelay::Accept() {
  for (auto& [name, entrance] : entrances_) {
    while (pairs_.size() < kMostPairs) {
      OwnedFd client(::accept4(entrance.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.is_open()) {
        // Without descriptors it would be asked for again at once.
        if (errno == EMFILE || errno == ENFILE) absl::SleepFor(kNoDescriptors);
        break;
      }
      OwnedFd server = Connect(&entrance);
      if (!server.is_open()) continue;
      SetUp(client.get());
      SetUp(server.get());
      auto pair = std::make_unique<Pair>();
      pair->client.fd = std::move(client);
      pair->server.fd = std::move(server);
      pairs_.push_back(std::move(pair));
    }
  }
}

// False: one of them broke.
bool TcpRelay::Move(Side* from, Side* to) {
  char piece[kPiece];
  while (!from->has_ended && to->waiting.size() < kMostWaiting) {
    const ssize_t count = ::recv(from->fd.get(), piece, sizeof(piece), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return false;
    if (count == 0) {
      from->has_ended = true;
    } else {
      to->waiting.append(piece, static_cast<size_t>(count));
    }
  }
  size_t sent = 0;
  while (sent < to->waiting.size()) {
    const ssize_t count =
        ::send(to->fd.get(), to->waiting.data() + sent, to->waiting.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return false;
    sent += static_cast<size_t>(count);
  }
  to->waiting.erase(0, sent);
  if (from->has_ended && to->waiting.empty() && !to->is_shut) {
    ::shutdown(to->fd.get(), SHUT_WR);
    to->is_shut = true;
  }
  return true;
}

void TcpRelay::Run() {
  std::vector<pollfd> fds;
  while (true) {
    fds = {{wake_read_.get(), POLLIN, 0}};
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      if (pairs_.size() < kMostPairs) {
        for (const auto& [name, entrance] : entrances_)
          fds.push_back({entrance.listener.get(), POLLIN, 0});
      }
    }
    const auto add = [&fds](const Side& side, const Side& other) {
      const int events = (!side.has_ended && other.waiting.size() < kMostWaiting ? POLLIN : 0) |
                         (side.waiting.empty() ? 0 : POLLOUT);
      if (events != 0) fds.push_back({side.fd.get(), static_cast<short>(events), 0});
    };
    for (const auto& pair : pairs_) {
      add(pair->client, pair->server);
      add(pair->server, pair->client);
    }
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    char bytes[64];
    while (::read(wake_read_.get(), bytes, sizeof(bytes)) > 0) {
    }
    {
      absl::MutexLock lock(&mutex_);
      Accept();
    }
    std::erase_if(pairs_, [](const std::unique_ptr<Pair>& pair) {
      const bool stands = Move(&pair->client, &pair->server) && Move(&pair->server, &pair->client);
      return !stands || (pair->client.is_shut && pair->server.is_shut);
    });
  }
}

}  // namespace weft
