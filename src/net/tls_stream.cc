// SPDX-License-Identifier: Apache-2.0
#include "net/tls_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include "net/openssl_handles.h"
#include "net/tls.h"

namespace weft {
namespace {

constexpr size_t kRecordBytes = 16 * 1024;
constexpr size_t kReadAheadBytes = 64 * 1024;
constexpr size_t kBytesPerTurn = 256 * 1024;

// The record that ends a handshake because of the protocol's version.
constexpr char kAlert[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46};

// The place `done` bytes into the pieces, and what lies there in one piece.
iovec At(const iovec* pieces, int count, size_t done) {
  for (int i = 0; i < count; ++i) {
    if (done < pieces[i].iov_len) {
      return {static_cast<char*>(pieces[i].iov_base) + done, pieces[i].iov_len - done};
    }
    done -= pieces[i].iov_len;
  }
  return {nullptr, 0};
}

bool IsOtherProtocol(unsigned long code) {
  const int reason = ERR_GET_REASON(code);
  return ERR_GET_LIB(code) == ERR_LIB_SSL &&
         (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
          reason == SSL_R_HTTPS_PROXY_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
          reason == SSL_R_UNKNOWN_PROTOCOL);
}

}  // namespace

// Where OpenSSL's own BIO of a socket would raise SIGPIPE, and send each record by itself.
struct TlsStream::BioMethods {
  static TlsStream* Of(BIO* bio) { return static_cast<TlsStream*>(::BIO_get_data(bio)); }

  static int Write(BIO* bio, const char* data, int size) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    BIO_clear_retry_flags(bio);
    std::vector<char>& output = Of(bio)->output_;
    output.insert(output.end(), data, data + size);
    return size;
  }

  static int Read(BIO* bio, char* buffer, int size) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    BIO_clear_retry_flags(bio);
    const TlsStream* const stream = Of(bio);
    ssize_t got = -1;
    errno = stream->may_receive_ ? EINTR : EAGAIN;
    while (got < 0 && errno == EINTR) {
      errno = 0;
      got = ::recv(stream->fd_, buffer, static_cast<size_t>(size), MSG_DONTWAIT);
    }
    if (got < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
    return static_cast<int>(got);
  }

  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO* Make(TlsStream* stream) {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* const made =
          ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
      ::BIO_meth_set_write(made, &Write);
      ::BIO_meth_set_read(made, &Read);
      ::BIO_meth_set_ctrl(made, &Control);
      return made;
    }();
    BIO* const bio = ::BIO_new(method);
    ::BIO_set_data(bio, stream);
    ::BIO_set_init(bio, 1);
    return bio;
  }
};

TlsStream::TlsStream(SSL* ssl, int fd, uint64_t bytes_per_key)
    : fd_(fd), bytes_per_key_(bytes_per_key), ssl_(ssl), key_left_(bytes_per_key) {
  BIO* const bio = BioMethods::Make(this);
  ::SSL_set_bio(ssl, bio, bio);
  ::SSL_set_read_ahead(ssl, 1);
  ::SSL_set_default_read_buffer_len(ssl, kReadAheadBytes);
}

TlsStream::~TlsStream() { ::SSL_free(ssl_); }

StatusOr<std::unique_ptr<TlsStream>> TlsStream::Accept(const TlsConfig& config, int fd,
                                                       uint64_t bytes_per_key) {
  WEFT_ASSIGN_OR_RETURN(SSL* const ssl, config.NewSession());
  ::SSL_set_accept_state(ssl);
  return std::unique_ptr<TlsStream>(new TlsStream(ssl, fd, bytes_per_key));
}

StatusOr<std::unique_ptr<TlsStream>> TlsStream::Connect(const TlsConfig& config, int fd,
                                                        const std::string& host,
                                                        uint64_t bytes_per_key) {
  WEFT_ASSIGN_OR_RETURN(SSL* const ssl, config.NewSession());
  config.ExpectServer(ssl, host);
  return std::unique_ptr<TlsStream>(new TlsStream(ssl, fd, bytes_per_key));
}

int TlsStream::Outcome(int result) {
  const int saved_errno = errno;
  switch (::SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SYSCALL:
      return saved_errno;
    default: {
      const unsigned long code = ::ERR_peek_error();
      // The peer closed without a word, which OpenSSL counts as an error.
      if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return 0;
      const bool is_refusal = ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
      const bool is_other = IsOtherProtocol(code);
      error_ = is_other ? "the other side does not speak TLS" : TakeOpensslError();
      // OpenSSL has no answer for it; an alert lets it tell its user what this port wants.
      if (is_other && output_.empty()) output_.assign(std::begin(kAlert), std::end(kAlert));
      if (is_refusal) {
        error_ = absl::StrCat("the other side's certificate is not accepted: ",
                              ::X509_verify_cert_error_string(::SSL_get_verify_result(ssl_)));
      }
      has_failed_ = true;
      return EPROTO;
    }
  }
}

bool TlsStream::Flush() {
  while (sent_ < output_.size()) {
    const ssize_t sent =
        ::send(fd_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      has_output_ = true;
      return false;
    }
    sent_ += static_cast<size_t>(sent);
  }
  output_.clear();
  sent_ = 0;
  has_output_ = false;
  return true;
}

ssize_t TlsStream::ReadSome(const iovec* pieces, int count, size_t done, bool* drained) {
  size_t got = 0;
  int error = has_failed_ ? EPROTO : 0;
  *drained = true;
  while (error == 0) {
    const iovec to = At(pieces, count, done + got);
    if (to.iov_len == 0 || got >= kBytesPerTurn) {
      *drained = false;
      break;
    }
    ::ERR_clear_error();
    errno = 0;
    const int result =
        ::SSL_read(ssl_, to.iov_base, static_cast<int>(std::min(to.iov_len, kBytesPerTurn)));
    if (result > 0) {
      got += static_cast<size_t>(result);
      continue;
    }
    error = Outcome(result);
    if (error == 0) break;
  }
  is_ready_ = ::SSL_is_init_finished(ssl_) == 1;
  has_input_ = ::SSL_has_pending(ssl_) == 1;
  // What the handshake answers, or why it ends. A socket that is full shows in has_output().
  if (sent_ < output_.size()) Flush();
  if (got > 0) return static_cast<ssize_t>(got);
  errno = error;
  return error == 0 ? 0 : -1;
}

ssize_t TlsStream::Read(const iovec* pieces, int count, bool buffered_only) {
  size_t done = 0;
  while (true) {
    bool drained = false;
    ssize_t got = 0;
    int error = 0;
    {
      absl::MutexLock lock(&mutex_);
      may_receive_ = !buffered_only;
      got = ReadSome(pieces, count, done, &drained);
      error = errno;
      may_receive_ = true;
    }
    if (got > 0) done += static_cast<size_t>(got);
    if (got > 0 && !drained && At(pieces, count, done).iov_len > 0) continue;
    // An end or an error that came behind the bytes is told by the next call.
    if (done > 0) return static_cast<ssize_t>(done);
    errno = error;
    return got;
  }
}

bool TlsStream::UseUpKey(uint64_t bytes) {
  key_left_ -= std::min(bytes, key_left_);
  if (key_left_ > 0) return true;
  key_left_ = bytes_per_key_;
  if (::SSL_version(ssl_) < TLS1_3_VERSION) return true;
  return ::SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
}

ssize_t TlsStream::WriteSome(const iovec* pieces, int count, size_t done) {
  size_t taken = 0;
  int error = has_failed_ ? EPROTO : 0;
  while (error == 0 && taken < kBytesPerTurn) {
    iovec from = At(pieces, count, done + taken);
    if (from.iov_len == 0) break;
    if (from.iov_len < kRecordBytes) {
      scratch_.clear();
      while (scratch_.size() < kRecordBytes) {
        const iovec next = At(pieces, count, done + taken + scratch_.size());
        if (next.iov_len == 0) break;
        const char* const data = static_cast<const char*>(next.iov_base);
        scratch_.insert(scratch_.end(), data,
                        data + std::min(next.iov_len, kRecordBytes - scratch_.size()));
      }
      from = {scratch_.data(), scratch_.size()};
    }
    ::ERR_clear_error();
    errno = 0;
    const int result =
        ::SSL_write(ssl_, from.iov_base, static_cast<int>(std::min(from.iov_len, kBytesPerTurn)));
    if (result > 0) {
      taken += static_cast<size_t>(result);
      if (!UseUpKey(static_cast<uint64_t>(result))) error = EPROTO;
      continue;
    }
    error = Outcome(result);
    if (error == 0) error = EPIPE;
  }
  is_ready_ = ::SSL_is_init_finished(ssl_) == 1;
  if (taken > 0) return static_cast<ssize_t>(taken);
  errno = error;
  return error == 0 ? 0 : -1;
}

ssize_t TlsStream::Write(const iovec* pieces, int count) {
  size_t done = 0;
  while (true) {
    absl::MutexLock lock(&mutex_);
    if (sent_ < output_.size() && !Flush()) return done > 0 ? static_cast<ssize_t>(done) : -1;
    const ssize_t taken = WriteSome(pieces, count, done);
    const int error = errno;
    if (taken > 0) done += static_cast<size_t>(taken);
    const bool flushed = Flush();
    if (taken <= 0 || !flushed || At(pieces, count, done).iov_len == 0) {
      if (done > 0) return static_cast<ssize_t>(done);
      errno = error;
      return taken;
    }
  }
}

std::string TlsStream::error() const {
  absl::MutexLock lock(&mutex_);
  return error_;
}

}  // namespace weft
