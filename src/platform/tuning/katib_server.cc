// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/katib_server.h"

#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "base/threads.h"

namespace weft::platform {
namespace {

constexpr int kMostMessageBytes = 64 << 20;
constexpr int kCallThreads = 4;

StatusOr<std::string> BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return Internal("a request could not be unpacked");
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// One call: reads its message, answers it on the pool, deletes itself.
class KatibReactor final : public grpc::ServerGenericBidiReactor {
 public:
  KatibReactor(std::string method, const KatibCall* call, ThreadPool* pool)
      : method_(std::move(method)), call_(call), pool_(pool) {
    if (call_ == nullptr) {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, absl::StrCat("no method ", method_)));
      return;
    }
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status(grpc::StatusCode::INTERNAL, "the request did not arrive"));
      return;
    }
    pool_->Schedule([this] { Answer(); });
  }

  void OnDone() override { delete this; }

 private:
  void Answer() {
    StatusOr<std::string> bytes = BytesOf(request_);
    if (bytes.ok()) bytes = (*call_)(*bytes);
    if (!bytes.ok()) {
      Finish(grpc::Status(static_cast<grpc::StatusCode>(bytes.status().code()),
                          std::string(bytes.status().message())));
      return;
    }
    const grpc::Slice slice(*bytes);
    response_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  const std::string method_;
  const KatibCall* const call_;
  ThreadPool* const pool_;
  grpc::ByteBuffer request_, response_;
};

class KatibService final : public grpc::CallbackGenericService {
 public:
  explicit KatibService(std::map<std::string, KatibCall> calls)
      : calls_(std::move(calls)), pool_("katib", kCallThreads) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const auto found = calls_.find(context->method());
    return new KatibReactor(context->method(), found == calls_.end() ? nullptr : &found->second,
                            &pool_);
  }

  const std::map<std::string, KatibCall> calls_;
  ThreadPool pool_;
};

}  // namespace

class KatibServer::Impl {
 public:
  explicit Impl(std::map<std::string, KatibCall> calls)
      : service_(std::make_unique<KatibService>(std::move(calls))) {}

  Status Start(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    // Two servers must not share a port without knowing.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(kMostMessageBytes);
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      return Unavailable("cannot listen at ", address,
                         ": it is taken, or no address of this machine");
    return absl::OkStatus();
  }
  ~Impl() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
    server_->Wait();
  }
  int port() const { return port_; }

 private:
  const std::unique_ptr<grpc::CallbackGenericService> service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

KatibServer::KatibServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KatibServer::~KatibServer() = default;
int KatibServer::port() const { return impl_->port(); }

StatusOr<std::unique_ptr<KatibServer>> KatibServer::Start(const std::string& address,
                                                          std::map<std::string, KatibCall> calls) {
  auto impl = std::make_unique<Impl>(std::move(calls));
  WEFT_RETURN_IF_ERROR(impl->Start(address));
  return std::unique_ptr<KatibServer>(new KatibServer(std::move(impl)));
}

StatusOr<std::unique_ptr<KatibServer>> AnswerKatib(const std::string& address, ObjectStore* store) {
  if (address.empty()) return nullptr;
  WEFT_ASSIGN_OR_RETURN(auto server, KatibServer::Start(address, KatibCalls(store)));
  WEFT_LOG(INFO) << "Katib's calls at port " << server->port();
  return server;
}

}  // namespace weft::platform
