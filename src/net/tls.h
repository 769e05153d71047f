// SPDX-License-Identifier: Apache-2.0
// TLS 1.2 and newer over sockets that do not block.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace weft {

// One connection's side. Not thread-safe. Borrows the socket.
class TlsSession {
 public:
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // As recv and send: bytes, 0 when the peer has ended, or -1 with errno; EAGAIN: wait until the
  // socket can be read, or written when wants_write(). EPROTO: error() says why. The handshake
  // happens on the way.
  ssize_t Read(char* buffer, size_t size);
  ssize_t Write(const char* data, size_t size);
  // The last call waits for room to write, whichever it was.
  bool wants_write() const { return wants_write_; }
  const std::string& error() const { return error_; }
  // Says good-bye, if that does not block.
  void Close();

 private:
  friend class TlsConfig;
  explicit TlsSession(ssl_st* ssl) : ssl_(ssl) {}
  ssize_t Outcome(int result);

  ssl_st* const ssl_;
  bool wants_write_ = false;
  std::string error_;
};

struct TlsClientOptions {
  std::string authority_pem;    // who must have signed the server; empty: the system's
  std::string certificate_pem;  // ours, when not empty
  std::string key_pem;
  bool skip_verification = false;
  std::string server_name;  // whom the server's certificate is for; empty: the host called
};

// Whom a server lets in.
struct TlsPeerRule {
  std::string authority_pem;  // who must have signed the client's certificate; empty: anybody may
  std::string common_name;    // whose it must be; empty: any
};

// What sessions share. Thread-safe.
class TlsConfig {
 public:
  // InvalidArgument when the texts are no certificate and its key.
  static StatusOr<std::shared_ptr<TlsConfig>> Server(const std::string& certificate_pem,
                                                     const std::string& key_pem,
                                                     const TlsPeerRule& clients = {});
  static StatusOr<std::shared_ptr<TlsConfig>> Client(const TlsClientOptions& options);
  // A server's next sessions show another certificate; those that are open stay as they are.
  Status Renew(const std::string& certificate_pem, const std::string& key_pem);
  // For peers that are all our own: TLS 1.3, the fastest cipher first.
  Status PreferSpeed();
  ~TlsConfig();
  TlsConfig(const TlsConfig&) = delete;
  TlsConfig& operator=(const TlsConfig&) = delete;

  StatusOr<std::unique_ptr<TlsSession>> Accept(int fd) const;
  // `host` is what the server's certificate must be for, unless the options name another: a name or
  // an address.
  StatusOr<std::unique_ptr<TlsSession>> Connect(int fd, const std::string& host) const;

 private:
  explicit TlsConfig(ssl_ctx_st* context) : context_(context) {}

  friend class TlsStream;
  StatusOr<ssl_st*> NewSession() const;
  void ExpectServer(ssl_st* ssl, const std::string& host) const;

  TlsPeerRule clients_;      // of a server
  std::string server_name_;  // of a client
  mutable absl::Mutex mutex_;
  ssl_ctx_st* context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
