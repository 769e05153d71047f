// SPDX-License-Identifier: Apache-2.0
// gRPC as this room uses it: unary calls of raw messages by exact path. grpc_service.cc is the only
// file that includes gRPC's headers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/threads.h"
#include "net/job_identity.h"
#include "weft/wire/payload.h"

namespace weft::wire {

// One call being served. Owned by its handler, which may keep it for as long as it takes: a waiting
// call holds no thread. Dropped without a Reply it answers INTERNAL.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  virtual const std::string& method() const = 0;
  // The request; stays valid while the call lives.
  virtual absl::Span<const absl::string_view> request() const = 0;
  // Cancelled when the client goes away, cancels or its deadline passes.
  virtual Cancellation& cancellation() = 0;
  // "ipv4:127.0.0.1:41234"
  virtual std::string peer() const = 0;
  // Once. Error messages over 3,072 bytes are cut: they travel in HTTP/2 headers.
  virtual void Reply(const Status& status, Payload response) = 0;
};

// Any number run at once, on the server's pool, or on its other one if they may wait for other
// tasks.
struct Method {
  template <typename Handle>
  Method(Handle body, bool blocks = false)  // NOLINT(google-explicit-constructor): a lambda is one
      : handle(std::move(body)), may_block(blocks) {}
  std::function<void(std::unique_ptr<ServerCall>)> handle;
  bool may_block;
  // The client may send any number of messages on one stream: each is a call of `handle`, which
  // comes when the one before was answered. An error ends the stream.
  bool streams = false;
};
// By path: "/tensorflow.MasterService/RunStep".
using MethodTable = std::map<std::string, Method, std::less<>>;

// What a port that others than the tasks of one job reach demands of them.
struct PortSecurity {
  std::string certificate_pem, key_pem;  // the server's; empty: no TLS
  std::string client_authority_pem;      // who must have signed a client's; empty: nobody is asked
  // Of which a client names one in its metadata, "authorization: Bearer TOKEN"; none: nobody asks.
  std::vector<std::string> tokens;
};
// Whether `authorization` is "Bearer " and one of `tokens`, in a time that tells nothing of them.
bool HoldsToken(absl::string_view authorization, const std::vector<std::string>& tokens);

// A port that serves a method table; other methods get UNIMPLEMENTED. Thread-safe.
class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  // Listens at "host:port", port 0 for any. Unavailable naming the address and the cause if it
  // cannot. The pools must outlive the server. Without `identity` whoever reaches the port is
  // served, in the clear. With it (borrowed for the call) those are who show the same identity
  // inside TLS, and plain clients on this host's loopback; others get UNAUTHENTICATED and how to
  // come in.
  static StatusOr<std::unique_ptr<GrpcServer>> Start(const std::string& address,
                                                     MethodTable methods, ThreadPool* pool,
                                                     ThreadPool* blocking_pool,
                                                     const JobIdentity* identity = nullptr);
  // The same for clients of all kinds: those that `security` lets in. Also at "unix:PATH", whose
  // port means nothing.
  static StatusOr<std::unique_ptr<GrpcServer>> StartPublic(const std::string& address,
                                                           MethodTable methods, ThreadPool* pool,
                                                           ThreadPool* blocking_pool,
                                                           const PortSecurity& security);
  virtual int port() const = 0;
  // Refuses new calls, gives running ones `grace`, then cancels them, and returns when all have
  // ended. Streams that wait for their clients end at once.
  virtual void Shutdown(absl::Duration grace) = 0;
};

// The response of a call made; chunks live as long as it.
class ClientReply {
 public:
  virtual ~ClientReply() = default;
  virtual absl::Span<const absl::string_view> response() const = 0;
};

struct ClientCall {
  std::string method;
  Payload request;
  absl::Time deadline = absl::InfiniteFuture();
  // Keeps trying to connect until the deadline instead of failing at once.
  bool wait_for_ready = false;
  Cancellation* cancellation = nullptr;  // must outlive the call if set
};

// A connection to another task's port, made and remade when needed. Thread-safe. Calls outlive it.
class GrpcChannel {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<std::unique_ptr<ClientReply>>)>;

  virtual ~GrpcChannel() = default;
  // `address` is "host:port" or a gRPC target. With `identity` (borrowed for the call) inside TLS,
  // but to a loopback host.
  static std::shared_ptr<GrpcChannel> Connect(const std::string& address,
                                              const JobIdentity* identity = nullptr);
  // The same with the identity that this process's environment names (JobIdentityFromEnvironment).
  static StatusOr<std::shared_ptr<GrpcChannel>> ConnectFromEnvironment(const std::string& address);
  // `done` runs once, on gRPC's thread: it must not block. Errors are the peer's, Unavailable when
  // nobody answers, DeadlineExceeded, Cancelled.
  virtual void Call(ClientCall call, Done done) = 0;
  // The same, waiting for it.
  StatusOr<std::unique_ptr<ClientReply>> CallAndWait(ClientCall call);
};

}  // namespace weft::wire
