// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/grpc_service.h"

#include <atomic>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"

#include "net/socket_address.h"
#include "proto/tensorflow/error_payloads.pb.h"
#include "weft/wire/idle_streams.h"
#include "weft/wire/listen_check.h"
#include "weft/wire/mixed_listener.h"

namespace weft::wire {
namespace {

constexpr int kWindowBytes = 16 << 20;  // what may be under way on one call
constexpr int kFrameBytes = 1 << 20;
constexpr int kHandshakeMs = 10'000;  // for a client's part of it

constexpr size_t kMaxErrorBytes = 3072;

grpc::ByteBuffer ToByteBuffer(Payload payload) {
  std::vector<grpc::Slice> slices;
  slices.reserve(payload.pieces().size());
  for (Payload::Piece& piece : payload.pieces()) {
    // The slice owns a piece: gRPC frees it when the bytes have left.
    auto* held = new Payload::Piece(std::move(piece));
    void* data = held->data == nullptr ? held->owned.data()
                                       : const_cast<void*>(static_cast<const void*>(held->data));
    slices.emplace_back(
        data, held->size, [](void* user) { delete static_cast<Payload::Piece*>(user); }, held);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Slices of a received message, and where they lie.
struct Received {
  std::vector<grpc::Slice> slices;
  std::vector<absl::string_view> chunks;

  Status Take(const grpc::ByteBuffer& buffer) {
    if (buffer.Valid() && !buffer.Dump(&slices).ok()) {
      return Internal("A received message could not be unpacked");
    }
    for (const grpc::Slice& slice : slices) {
      chunks.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return absl::OkStatus();
  }
};

grpc::Status ToGrpcStatus(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message());
  if (message.size() > kMaxErrorBytes) {
    message.resize(kMaxErrorBytes);
    message += " ... [truncated]";
  }
  tensorflow::distributed_runtime::GrpcPayloadContainer container;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    if (!absl::StartsWith(url, "type.googleapis.com/tensorflow.")) return;
    (*container.mutable_payloads())[std::string(url)] = std::string(payload);
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      container.payloads().empty() ? "" : container.SerializeAsString());
}

Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  auto code = static_cast<absl::StatusCode>(status.error_code());
  // A peer that dies in the middle of a call.
  if (code == absl::StatusCode::kUnknown && status.error_message() == "Stream removed") {
    code = absl::StatusCode::kUnavailable;
  }
  Status result(code, status.error_message());
  tensorflow::distributed_runtime::GrpcPayloadContainer container;
  if (!status.error_details().empty() && container.ParseFromString(status.error_details())) {
    for (const auto& [url, payload] : container.payloads()) {
      result.SetPayload(url, absl::Cord(payload));
    }
  }
  return result;
}

// gRPC's callbacks run on the threads of one queue, which whoever releases it last destroys. A call
// may outlive its channel and so release it on one of these threads, which would then go on in
// freed memory. So a channel that leads nowhere holds the queue until the process ends.
class CallbackQueue {
 public:
  static void Hold() {
    static const auto* const held = new CallbackQueue;
    static_cast<void>(held);
  }

 private:
  CallbackQueue() : stub_(grpc::CreateCustomChannel("", nullptr, grpc::ChannelArguments())) {
    // A channel takes hold at its first call.
    stub_.UnaryCall(&context_, "/", grpc::StubOptions(), &request_, &response_,
                    [](const grpc::Status&) {});
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_{nullptr, 0};  // without bytes, but a message
  grpc::ByteBuffer response_;
};

class Reactor;

// What the reactor and the handler's call share.
struct CallState {
  std::string method;
  std::string peer;
  Cancellation cancellation;
  Received received;
};

class CallHandle final : public ServerCall {
 public:
  CallHandle(std::shared_ptr<CallState> state, Reactor* reactor)
      : state_(std::move(state)), reactor_(reactor) {}
  ~CallHandle() override {
    if (reactor_ != nullptr) Reply(Internal("The call was dropped: ", state_->method), Payload());
  }
  const std::string& method() const override { return state_->method; }
  absl::Span<const absl::string_view> request() const override { return state_->received.chunks; }
  Cancellation& cancellation() override { return state_->cancellation; }
  std::string peer() const override { return state_->peer; }
  void Reply(const Status& status, Payload response) override;

 private:
  const std::shared_ptr<CallState> state_;
  Reactor* reactor_;  // null once replied: it deletes itself
};

// One call on the wire. gRPC's threads call it; it only hands over to the pool.
class Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  // `refusal` is not OK for a client that is not let in.
  Reactor(const grpc::GenericCallbackServerContext& context, const Method* method, ThreadPool* pool,
          IdleStreams* idle, const Status& refusal)
      : served_(method), pool_(pool), idle_(idle), state_(std::make_shared<CallState>()) {
    {
      absl::MutexLock lock(&mutex_);
      state_->method = context.method();
      state_->peer = context.peer();
    }
    if (!refusal.ok()) {
      Finish(ToGrpcStatus(refusal));
      return;
    }
    if (served_ == nullptr) {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                          absl::StrCat("No such method: ", context.method())));
      return;
    }
    Read();
  }

  void Answer(const Status& status, Payload response) {
    if (!status.ok()) {
      Finish(ToGrpcStatus(status));
      return;
    }
    response_ = ToByteBuffer(std::move(response));
    if (served_->streams) {
      StartWrite(&response_);
    } else {
      StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    }
  }

  void OnReadDone(bool ok) override {
    if (served_->streams && !idle_->Came(this)) return;
    if (!ok) {
      Finish(served_->streams
                 ? grpc::Status::OK  // the client has said all
                 : grpc::Status(grpc::StatusCode::INTERNAL, "The request did not arrive"));
      return;
    }
    const std::shared_ptr<CallState> state = NextState();
    auto call = std::make_unique<CallHandle>(state, this);
    const Status taken = state->received.Take(request_);
    request_.Clear();
    if (!taken.ok()) {
      call->Reply(taken, Payload());
      return;
    }
    pool_->Schedule(
        [served = served_, call = std::move(call)]() mutable { served->handle(std::move(call)); });
  }

  // Of a stream's answer.
  void OnWriteDone(bool ok) override {
    if (!served_->streams) return;
    if (ok) {
      Read();
    } else {
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "The client went away"));
    }
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    CancelLater(state_);
  }

  void OnDone() override { delete this; }

 private:
  void Read() {
    if (!served_->streams) return StartRead(&request_);
    idle_->Await(this, [this] { StartRead(&request_); });
  }

  void CancelLater(std::shared_ptr<CallState> state) {
    pool_->Schedule([state = std::move(state)] {
      state->cancellation.Cancel(Cancelled("The client went away, cancelled or ran out of time"));
    });
  }

  // Each message of a stream is a call of its own.
  std::shared_ptr<CallState> NextState() {
    absl::MutexLock lock(&mutex_);
    if (!served_->streams) return state_;
    auto next = std::make_shared<CallState>();
    next->method = state_->method;
    next->peer = state_->peer;
    state_ = next;
    if (is_cancelled_) CancelLater(next);
    return next;
  }

  const Method* const served_;
  ThreadPool* const pool_;
  IdleStreams* const idle_;
  absl::Mutex mutex_;
  // Shared with the handler's call, which may live longer.
  std::shared_ptr<CallState> state_ ABSL_GUARDED_BY(mutex_);
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

void CallHandle::Reply(const Status& status, Payload response) {
  Reactor* reactor = std::exchange(reactor_, nullptr);
  if (reactor != nullptr) reactor->Answer(status, std::move(response));
}

// "ipv4:127.0.0.1:41234", "ipv6:%5B::1%5D:41234", as gRPC writes where a client is.
bool IsLoopbackPeer(absl::string_view peer) {
  if (absl::ConsumePrefix(&peer, "ipv4:")) return absl::StartsWith(peer, "127.");
  if (!absl::ConsumePrefix(&peer, "ipv6:")) return false;
  if (!absl::ConsumePrefix(&peer, "%5B") && !absl::ConsumePrefix(&peer, "[")) return false;
  return absl::StartsWith(peer, "::1%5D:") || absl::StartsWith(peer, "::1]:") ||
         absl::StartsWith(peer, "::ffff:127.");
}

// Of a port of the job `name`: whether this client may call anything.
Status CheckClient(const grpc::GenericCallbackServerContext& context, const std::string& name) {
  const std::shared_ptr<const grpc::AuthContext> shown = context.auth_context();
  if (shown != nullptr && shown->IsPeerAuthenticated()) {
    for (const grpc::string_ref& held : shown->FindPropertyValues("peer_dns")) {
      if (absl::string_view(held.data(), held.size()) == name) return absl::OkStatus();
    }
    return Status(absl::StatusCode::kPermissionDenied,
                  "This task is of another job than the certificate that was shown");
  }
  if (IsLoopbackPeer(context.peer())) return absl::OkStatus();
  return Status(absl::StatusCode::kUnauthenticated,
                "This port wants TLS with the secret of its job. A client without it connects from "
                "the task's own host or pod, to grpc://127.0.0.1 and the task's port; or the task "
                "is started with --insecure, which lets anyone in");
}

// Of a port for clients of all kinds.
Status CheckToken(const grpc::GenericCallbackServerContext& context,
                  const std::vector<std::string>& tokens) {
  const auto given = context.client_metadata().find("authorization");
  if (given != context.client_metadata().end() &&
      HoldsToken(absl::string_view(given->second.data(), given->second.size()), tokens)) {
    return absl::OkStatus();
  }
  return Status(absl::StatusCode::kUnauthenticated,
                "This port wants the metadata 'authorization: Bearer TOKEN', with a token that it "
                "knows");
}

class Service final : public grpc::CallbackGenericService {
 public:
  Service(MethodTable methods, ThreadPool* pool, ThreadPool* blocking_pool, std::string job,
          std::vector<std::string> tokens)
      : methods_(std::move(methods)),
        pool_(pool),
        blocking_pool_(blocking_pool),
        job_(std::move(job)),
        tokens_(std::move(tokens)) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const auto found = methods_.find(context->method());
    const Method* method = found == methods_.end() ? nullptr : &found->second;
    return new Reactor(*context, method,
                       method != nullptr && method->may_block ? blocking_pool_ : pool_, &idle_,
                       Check(*context));
  }

  void EndIdleStreams() { idle_.End(); }

 private:
  Status Check(const grpc::GenericCallbackServerContext& context) const {
    if (!job_.empty()) return CheckClient(context, job_);
    return tokens_.empty() ? absl::OkStatus() : CheckToken(context, tokens_);
  }

  const MethodTable methods_;
  ThreadPool* const pool_;
  ThreadPool* const blocking_pool_;
  const std::string job_;                  // whose identity clients show; empty: anybody is served
  const std::vector<std::string> tokens_;  // of which they name one; none: the same
  IdleStreams idle_;
};

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const JobIdentity& identity) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = identity.authority_pem;
  options.pem_key_cert_pairs.push_back({identity.key_pem, identity.certificate_pem});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const PortSecurity& security) {
  if (security.certificate_pem.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      security.client_authority_pem.empty()
          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = security.client_authority_pem;
  options.pem_key_cert_pairs.push_back({security.key_pem, security.certificate_pem});
  return grpc::SslServerCredentials(options);
}

class Server final : public GrpcServer {
 public:
  Server(MethodTable methods, ThreadPool* pool, ThreadPool* blocking_pool,
         const JobIdentity* identity, const PortSecurity& security)
      : service_(std::move(methods), pool, blocking_pool, identity == nullptr ? "" : identity->name,
                 security.tokens),
        security_(security) {}
  ~Server() override { Shutdown(absl::ZeroDuration()); }

  Status Listen(const std::string& address, const JobIdentity* identity) {
    if (identity == nullptr && !absl::StartsWith(address, "unix:"))
      WEFT_RETURN_IF_ERROR(CheckListenAddress(address));
    CallbackQueue::Hold();
    grpc::ServerBuilder builder;
    Configure(&builder);
    if (identity != nullptr) return ListenMixed(address, *identity, &builder);
    builder.AddListeningPort(address, CredentialsOf(security_), &port_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ <= 0) {
      return Unavailable("Cannot listen at ", address, ": is the port taken",
                         security_.key_pem.empty() ? "?" : ", or no key of its certificate?");
    }
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  void Shutdown(absl::Duration grace) override {
    if (server_ == nullptr || shut_down_.exchange(true)) return;
    if (listener_ != nullptr) listener_->Stop();
    service_.EndIdleStreams();
    server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
    server_->Wait();
  }

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  void Configure(grpc::ServerBuilder* builder) {
    builder->RegisterCallbackGenericService(&service_);
    builder->SetMaxReceiveMessageSize(-1);
    builder->SetMaxSendMessageSize(-1);
    // Two servers on one port would share its clients without a word.
    builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // A feed arrives without waiting for leave every 64 KB, nor for estimates of the link.
    builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
    // A client's machine may vanish without closing its connection.
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  }

  // gRPC gets each connection from us, as one that has to bring TLS or as one in the clear.
  Status ListenMixed(const std::string& address, const JobIdentity& identity,
                     grpc::ServerBuilder* builder) {
    WEFT_ASSIGN_OR_RETURN(listener_, MixedListener::Listen(address, {}));
    port_ = listener_->port();
    builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    using Kind = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    auto external = builder->experimental();
    tls_ = external.AddExternalConnectionAcceptor(Kind::FROM_FD, CredentialsOf(identity));
    plain_ =
        external.AddExternalConnectionAcceptor(Kind::FROM_FD, grpc::InsecureServerCredentials());
    server_ = builder->BuildAndStart();
    if (server_ == nullptr) return Internal("gRPC does not take connections of ", address);
    listener_->Start([this](OwnedFd connection, bool is_tls) {
      Acceptor::NewConnectionParameters parameters;
      parameters.listener_fd = -1;
      parameters.fd = connection.Release();
      (is_tls ? tls_ : plain_)->HandleNewConnection(&parameters);
    });
    return absl::OkStatus();
  }

  Service service_;
  const PortSecurity security_;
  std::unique_ptr<Acceptor> tls_, plain_;  // with an identity
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<MixedListener> listener_;  // the same
  int port_ = 0;
  std::atomic<bool> shut_down_{false};
};

class Reply final : public ClientReply {
 public:
  absl::Span<const absl::string_view> response() const override { return received.chunks; }
  Received received;
};

// One call made; lives until gRPC has told its end.
struct Outgoing {
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
  Cancellation* cancellation = nullptr;
  Cancellation::Token token = 0;
  bool registered = false;
  GrpcChannel::Done done;

  void Finish(const grpc::Status& grpc_status) {
    if (registered) cancellation->Deregister(token);
    Status status = FromGrpcStatus(grpc_status);
    if (cancellation != nullptr && cancellation->IsCancelled() && !status.ok()) {
      status = cancellation->status();
    }
    auto reply = std::make_unique<Reply>();
    if (status.ok()) status = reply->received.Take(response);
    if (status.ok()) {
      done(std::move(reply));
    } else {
      done(status);
    }
  }
};

class Channel final : public GrpcChannel {
 public:
  Channel(const std::string& address, const JobIdentity* identity)
      : stub_(Make(address, identity)) {}

  void Call(ClientCall call, Done done) override {
    auto out = std::make_shared<Outgoing>();  // shared by gRPC's callback and the cancellation's
    if (call.deadline != absl::InfiniteFuture()) {
      out->context.set_deadline(absl::ToChronoTime(call.deadline));
    }
    out->context.set_wait_for_ready(call.wait_for_ready);
    out->request = ToByteBuffer(std::move(call.request));
    out->done = std::move(done);
    out->cancellation = call.cancellation;
    if (call.cancellation != nullptr) {
      std::weak_ptr<Outgoing> weak = out;
      out->registered = call.cancellation->Register(&out->token, [weak](const Status&) {
        if (const std::shared_ptr<Outgoing> alive = weak.lock()) alive->context.TryCancel();
      });
      if (!out->registered) {
        out->done(call.cancellation->status());
        return;
      }
    }
    Outgoing* raw = out.get();
    stub_.UnaryCall(&raw->context, call.method, grpc::StubOptions(), &raw->request, &raw->response,
                    [out = std::move(out)](grpc::Status status) { out->Finish(status); });
  }

 private:
  static bool IsPlain(const std::string& address) {
    const StatusOr<SocketAddress> parsed = ParseSocketAddress(address);
    return parsed.ok() && IsLoopbackHost(parsed->host);
  }

  static std::shared_ptr<grpc::Channel> Make(const std::string& address,
                                             const JobIdentity* identity) {
    CallbackQueue::Hold();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    const bool is_target = absl::StrContains(address, "://");
    const std::string target = is_target ? address : absl::StrCat("dns:///", address);
    if (identity == nullptr || IsPlain(address)) {
      return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
    }
    // Whom to expect is said by the job's identity, wherever the task is.
    arguments.SetSslTargetNameOverride(identity->name);
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = identity->authority_pem;
    options.pem_private_key = identity->key_pem;
    options.pem_cert_chain = identity->certificate_pem;
    return grpc::CreateCustomChannel(target, grpc::SslCredentials(options), arguments);
  }

  grpc::GenericStub stub_;
};

}  // namespace

StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const std::string& address,
                                                        MethodTable methods, ThreadPool* pool,
                                                        ThreadPool* blocking_pool,
                                                        const JobIdentity* identity) {
  auto server =
      std::make_unique<Server>(std::move(methods), pool, blocking_pool, identity, PortSecurity());
  WEFT_RETURN_IF_ERROR(server->Listen(address, identity));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::StartPublic(const std::string& address,
                                                              MethodTable methods, ThreadPool* pool,
                                                              ThreadPool* blocking_pool,
                                                              const PortSecurity& security) {
  auto server =
      std::make_unique<Server>(std::move(methods), pool, blocking_pool, nullptr, security);
  WEFT_RETURN_IF_ERROR(server->Listen(address, nullptr));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

bool HoldsToken(absl::string_view authorization, const std::vector<std::string>& tokens) {
  if (!absl::ConsumePrefix(&authorization, "Bearer ")) return false;
  bool holds = false;
  for (const std::string& token : tokens) {
    unsigned char differs = token.size() != authorization.size();
    for (size_t i = 0; i < token.size(); ++i)
      differs |= token[i] ^ (authorization.empty() ? 0 : authorization[i % authorization.size()]);
    holds |= differs == 0;
  }
  return holds;
}

std::shared_ptr<GrpcChannel> GrpcChannel::Connect(const std::string& address,
                                                  const JobIdentity* identity) {
  return std::make_shared<Channel>(address, identity);
}

StatusOr<std::shared_ptr<GrpcChannel>> GrpcChannel::ConnectFromEnvironment(
    const std::string& address) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<JobIdentity> identity, JobIdentityFromEnvironment());
  return Connect(address, identity.has_value() ? &*identity : nullptr);
}

StatusOr<std::unique_ptr<ClientReply>> GrpcChannel::CallAndWait(ClientCall call) {
  absl::Notification finished;
  StatusOr<std::unique_ptr<ClientReply>> result = Internal("The call did not end");
  Call(std::move(call), [&](StatusOr<std::unique_ptr<ClientReply>> reply) {
    result = std::move(reply);
    finished.Notify();
  });
  finished.WaitForNotification();
  return result;
}

}  // namespace weft::wire
