// SPDX-License-Identifier: Apache-2.0
#include "net/upgraded_connection.h"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace weft {
namespace {

constexpr size_t kMostUpgradedInput = 256 << 10;

}  // namespace

UpgradedConnection::UpgradedConnection(OwnedFd fd, std::unique_ptr<TlsSession> tls,
                                       std::string input, std::string output)
    : fd_(std::move(fd)),
      tls_(std::move(tls)),
      input_(std::move(input)),
      output_(std::move(output)),
      has_more_(true) {}

UpgradedConnection::~UpgradedConnection() {
  if (tls_ != nullptr) tls_->Close();
}

short UpgradedConnection::events(bool reads) const {
  const bool writes = unsent_bytes() > 0 || (reads && read_wants_write_);
  return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

bool UpgradedConnection::Advance(bool reads) { return Write() && (!reads || Read()) && Write(); }

bool UpgradedConnection::Write() {
  while (sent_ < output_.size()) {
    const char* const data = output_.data() + sent_;
    const size_t size = output_.size() - sent_;
    const ssize_t count =
        tls_ != nullptr ? tls_->Write(data, size) : ::send(fd_.get(), data, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    sent_ += static_cast<size_t>(count);
  }
  output_.clear();
  sent_ = 0;
  return true;
}

bool UpgradedConnection::Read() {
  char buffer[16 << 10];
  read_wants_write_ = false;
  has_more_ = false;
  while (true) {
    if (input_.size() >= kMostUpgradedInput) {
      has_more_ = true;
      return true;
    }
    const ssize_t count = tls_ != nullptr ? tls_->Read(buffer, sizeof(buffer))
                                          : ::recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      read_wants_write_ = tls_ != nullptr && tls_->wants_write();
      return true;
    }
    if (count <= 0) return false;
    input_.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace weft
