// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/tcp/channel.h"

#include <cerrno>

#include <sys/socket.h>

namespace weft::transport::tcp {

Status Channel::StartTls(const JobTls& tls, bool outgoing) {
  if (outgoing) {
    // Whom to expect is said by the job's identity, wherever the task is.
    WEFT_ASSIGN_OR_RETURN(tls_, TlsStream::Connect(*tls.client, fd_.get(), /*host=*/""));
  } else {
    WEFT_ASSIGN_OR_RETURN(tls_, TlsStream::Accept(*tls.server, fd_.get()));
  }
  return absl::OkStatus();
}

ssize_t Channel::Read(const iovec* pieces, int count) {
  if (tls_ != nullptr) return tls_->Read(pieces, count, buffered_only_);
  ssize_t got;
  do {
    got = readv(fd_.get(), pieces, count);
  } while (got < 0 && errno == EINTR);
  return got;
}

ssize_t Channel::Write(iovec* pieces, int count) {
  if (tls_ != nullptr) return tls_->Write(pieces, count);
  msghdr message = {};
  message.msg_iov = pieces;
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t written;
  do {
    written = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (written < 0 && errno == EINTR);
  return written;
}

void Channel::SetLowWater(int bytes) {
  if (tls_ == nullptr) setsockopt(fd_.get(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

Status Channel::WhyBroken(int error) const {
  if (error != EPROTO || tls_ == nullptr) return Unavailable(ErrorText(error));
  return PermissionDenied("no TLS between tasks of one job: ", tls_->error());
}

}  // namespace weft::transport::tcp
