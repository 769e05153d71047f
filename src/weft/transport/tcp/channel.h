// SPDX-License-Identifier: Apache-2.0
// The bytes of one connection: a socket, in the clear or with TLS above it.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>
#include <sys/uio.h>

#include "net/job_identity.h"
#include "net/tls_stream.h"
#include "weft/transport/tcp/socket.h"

namespace weft::transport::tcp {

// One thread reads, and one at a time writes, beside each other.
class Channel {
 public:
  explicit Channel(Fd fd) : fd_(std::move(fd)) {}
  // Before the first byte. `tls` of the job that both sides are of.
  Status StartTls(const JobTls& tls, bool outgoing);

  int fd() const { return fd_.get(); }
  bool is_encrypted() const { return tls_ != nullptr; }
  // Once nobody reads or writes.
  void Close() { fd_.Reset(); }

  // As readv and sendmsg: bytes, 0 for the end, or -1 with errno; EPROTO: why_broken() has more.
  ssize_t Read(const iovec* pieces, int count);
  ssize_t Write(iovec* pieces, int count);
  // Bytes that came and that the socket does not tell of any more; while `buffered_only`, Read
  // gives no others.
  bool has_input() const { return tls_ != nullptr && tls_->has_input(); }
  // Nothing more will come, and the socket need not tell: the next Read says why.
  bool has_failed() const { return tls_ != nullptr && tls_->has_failed(); }
  void set_buffered_only(bool on) { buffered_only_ = on; }
  // Bytes were taken by Write, and wait for room in the socket.
  bool has_output() const { return tls_ != nullptr && tls_->has_output(); }
  // False while a handshake goes on: Write takes nothing until the other side has answered.
  bool is_ready() const { return tls_ == nullptr || tls_->is_ready(); }
  // How many bytes have to be there before the socket is said to be readable. In the clear only:
  // an encrypted stream has records, whose ends the caller does not see.
  void SetLowWater(int bytes);
  // Of a call that gave `error`: Unavailable, or PermissionDenied when the other side is not let in
  // or does not let us in.
  Status WhyBroken(int error) const;

 private:
  Fd fd_;
  std::unique_ptr<TlsStream> tls_;  // null: in the clear
  bool buffered_only_ = false;      // the reader's
};

}  // namespace weft::transport::tcp
