// SPDX-License-Identifier: Apache-2.0
// TLS over a socket that does not block, for one thread that reads and others that write.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>
#include <sys/uio.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"

struct ssl_st;

namespace weft {

class TlsConfig;

// One connection's side. Thread-safe; of several threads that write only one may be inside Write.
// Borrows the socket. The handshake happens on the way: while !is_ready(), Write takes nothing, and
// whoever reads drives it on.
class TlsStream {
 public:
  // AES-GCM stays within its bounds for 2^24.5 records of 16 KiB; then another key has to be used.
  static constexpr uint64_t kBytesPerKey = uint64_t{64} << 30;

  // A server's side of a connection that was accepted, and a client's to `host`.
  static StatusOr<std::unique_ptr<TlsStream>> Accept(const TlsConfig& config, int fd,
                                                     uint64_t bytes_per_key = kBytesPerKey);
  static StatusOr<std::unique_ptr<TlsStream>> Connect(const TlsConfig& config, int fd,
                                                      const std::string& host,
                                                      uint64_t bytes_per_key = kBytesPerKey);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // As readv: bytes, 0 when the peer has ended, or -1 with errno. EAGAIN: wait for the socket;
  // EPROTO: error() says why. Fewer bytes than asked for mean that nothing is left for now, here or
  // in the socket. `buffered_only` leaves the socket alone.
  ssize_t Read(const iovec* pieces, int count, bool buffered_only);
  // True if bytes that came are still here: the socket does not tell of them again.
  bool has_input() const { return has_input_; }
  // Nothing more will come or leave; the next Read says why.
  bool has_failed() const { return has_failed_; }

  // As writev: how many bytes were taken, which then only has_output() holds back, or -1 with errno
  // as above. Without pieces it sends what is held.
  ssize_t Write(const iovec* pieces, int count);
  // Encrypted bytes wait for room in the socket: call Write when there is some.
  bool has_output() const { return has_output_; }

  // The handshake is over, as far as this side can tell.
  bool is_ready() const { return is_ready_; }
  std::string error() const;

 private:
  struct BioMethods;
  TlsStream(ssl_st* ssl, int fd, uint64_t bytes_per_key);

  // At most some records, so that the other direction has its turn.
  ssize_t ReadSome(const iovec* pieces, int count, size_t done, bool* drained)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ssize_t WriteSome(const iovec* pieces, int count, size_t done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the next record use another key when this one has seen enough.
  bool UseUpKey(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False with errno when not all has left.
  bool Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a call that gave `result`: errno as Read and Write have it; 0 for the peer's end.
  int Outcome(int result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int fd_;
  const uint64_t bytes_per_key_;
  mutable absl::Mutex mutex_;
  ssl_st* const ssl_ ABSL_PT_GUARDED_BY(mutex_);
  uint64_t key_left_ ABSL_GUARDED_BY(mutex_);          // bytes
  std::vector<char> scratch_ ABSL_GUARDED_BY(mutex_);  // gathers small pieces into one record
  std::vector<char> output_ ABSL_GUARDED_BY(mutex_);   // encrypted
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;            // of output_
  bool may_receive_ ABSL_GUARDED_BY(mutex_) = true;
  std::string error_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_input_{false}, has_output_{false}, is_ready_{false}, has_failed_{false};
};

}  // namespace weft
