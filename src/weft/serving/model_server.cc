// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/model_server.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/time/clock.h"

#include "base/files.h"
#include "base/log.h"
#include "base/mapped_files.h"
#include "base/metrics.h"
#include "base/threads.h"
#include "base/timers.h"
#include "net/http_server.h"
#include "net/socket_address.h"
#include "weft/serving/grpc_methods.h"
#include "weft/serving/rest_values.h"
#include "weft/serving/settings_files.h"
#include "weft/storage/object_files.h"

namespace weft::serving {
namespace {

// Reloads wait for models to load; statuses come beside them.
constexpr int kSetupThreads = 4;
constexpr int kMostRestConnections = 4096;
constexpr char kMetricsPath[] = "/monitoring/prometheus/metrics";

int ThreadsOr(int asked) { return asked > 0 ? asked : 4 * UsableCores(); }

Status CheckWidePort(const ModelServerOptions& options) {
  if (IsLoopbackHost(options.bind)) return absl::OkStatus();
  const wire::PortSecurity& security = options.security;
  const bool knows_clients = !security.tokens.empty() || !security.client_authority_pem.empty();
  if (!security.certificate_pem.empty() && knows_clients) return absl::OkStatus();
  if (options.insecure) {
    WEFT_LOG(WARNING) << "Listening at " << options.bind
                      << " WITHOUT ENCRYPTION OR PASSWORD: whoever reaches the ports can ask the "
                         "models and change which are served. Keep them inside a private network.";
    return absl::OkStatus();
  }
  const char* missing = security.certificate_pem.empty()
                            ? knows_clients ? "--ssl_config_file or --tls_folder"
                                            : "--ssl_config_file or --tls_folder, and --token_file "
                                              "or client_verify in the former"
                            : "--token_file, or client_verify in --ssl_config_file";
  return FailedPrecondition("Others than this machine reach ", options.bind, ": give ", missing,
                            ", or say --insecure inside a private network");
}

std::unique_ptr<FileSystem> FilesFor(const ModelServerOptions& options) {
  if (options.maps_weights) return std::make_unique<MappingFileSystem>();
  return std::make_unique<RealFileSystem>();
}

class Server final : public ModelServer {
 public:
  explicit Server(ModelServerOptions options)
      : options_(std::move(options)),
        batch_pool_("weft-batch", options_.batches && options_.models.load.batching.threads > 0
                                      ? options_.models.load.batching.threads
                                      : UsableCores()),
        setup_("weft-setup", kSetupThreads),
        calls_("weft-calls", ThreadsOr(options_.grpc_threads)) {}
  ~Server() override { Shutdown(absl::ZeroDuration()); }

  Status Init() {
    WEFT_RETURN_IF_ERROR(CheckWidePort(options_));
    LoadSettings& load = options_.models.load;
    load.files = &files_;
    load.metrics = &metrics_;
    load.timers = &timers_;
    load.batch_pool = options_.batches ? &batch_pool_ : nullptr;
    models_.emplace(options_.models);
    const Status configured = models_->Configure(options_.config);
    if (configured.code() == absl::StatusCode::kUnknown) {
      WEFT_LOG(ERROR) << configured.message();
    } else {
      WEFT_RETURN_IF_ERROR(configured);
    }
    models_->Start();
    WEFT_RETURN_IF_ERROR(StartGrpc());
    WEFT_RETURN_IF_ERROR(StartRest());
    WEFT_RETURN_IF_ERROR(StartMetrics());
    if (!options_.config_file.empty() && options_.config_poll > absl::ZeroDuration())
      config_thread_ = std::make_unique<Thread>("weft-config", [this] { WatchConfig(); });
    return absl::OkStatus();
  }

  int port() const override { return grpc_ == nullptr ? -1 : grpc_->port(); }
  int rest_port() const override { return rest_ == nullptr ? -1 : rest_->port(); }
  int metrics_port() const override { return looks_ == nullptr ? -1 : looks_->port(); }
  void Drain() override { is_draining_.store(true); }

  void Shutdown(absl::Duration grace) override {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      stopping_ = true;
    }
    config_thread_.reset();
    if (grpc_ != nullptr) grpc_->Shutdown(grace);
    if (socket_ != nullptr) socket_->Shutdown(grace);
    const absl::Time end = absl::Now() + grace;
    {
      absl::MutexLock lock(&mutex_);
      const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return asked_ == 0; };
      mutex_.AwaitWithDeadline(absl::Condition(&is_idle), end);
    }
    rest_.reset();
    looks_.reset();
    // What is under way still needs models.
    absl::MutexLock lock(&mutex_);
    const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return asked_ == 0; };
    mutex_.Await(absl::Condition(&is_idle));
  }

 private:
  bool IsReady() const { return !is_draining_.load() && models_->IsReady(); }

  Status StartGrpc() {
    wire::MethodTable methods;
    AddServingMethods(&*models_, &metrics_,
                      options_.with_health ? [this] { return IsReady(); } : std::function<bool()>(),
                      &methods);
    if (options_.port >= 0) {
      const std::string where = SocketAddress{options_.bind, options_.port}.ToString();
      WEFT_ASSIGN_OR_RETURN(grpc_, wire::GrpcServer::StartPublic(where, methods, &calls_, &setup_,
                                                                 options_.security));
      WEFT_LOG(INFO) << "Running gRPC ModelServer at "
                     << SocketAddress{options_.bind, grpc_->port()}.ToString();
    }
    if (options_.socket_path.empty()) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(
        socket_, wire::GrpcServer::StartPublic("unix:" + options_.socket_path, std::move(methods),
                                               &calls_, &setup_, {}));
    return absl::OkStatus();
  }

  Status StartRest() {
    if (options_.rest_port < 0) return absl::OkStatus();
    options_.rest.tokens = options_.security.tokens;
    options_.rest.is_ready = [this] { return IsReady(); };
    api_.emplace(options_.rest, &*models_, &metrics_);
    rest_pool_.emplace("weft-rest", ThreadsOr(options_.rest_threads));
    HttpServer::Options http;
    http.address = {options_.bind, static_cast<uint16_t>(options_.rest_port)};
    AllowHosts(&http);
    http.max_body_bytes = options_.max_rest_body;
    http.max_connections = kMostRestConnections;
    http.request_timeout = options_.rest.timeout;
    http.refusal = [](int status, absl::string_view text) {
      return HttpResponse{.status = status,
                          .content_type = "application/json",
                          .body = WriteRestError(InvalidArgument(text))};
    };
    if (!options_.security.certificate_pem.empty()) {
      WEFT_ASSIGN_OR_RETURN(
          http.tls, TlsConfig::Server(options_.security.certificate_pem, options_.security.key_pem,
                                      {.authority_pem = options_.security.client_authority_pem}));
    }
    WEFT_ASSIGN_OR_RETURN(
        rest_, HttpServer::StartWithHandler(
                   std::move(http), [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
                     AskRest(std::move(request), std::move(reply));
                   }));
    WEFT_LOG(INFO) << "Exporting HTTP/REST API at "
                   << SocketAddress{options_.bind, rest_->port()}.ToString();
    return absl::OkStatus();
  }

  void AllowHosts(HttpServer::Options* http) const {
    if (IsLoopbackHost(options_.bind)) {
      http->allowed_hosts.push_back(options_.bind);
    } else {
      http->allowed_hosts = {"*"};
    }
  }

  Status StartMetrics() {
    if (options_.metrics_port < 0) return absl::OkStatus();
    HttpServer::Options http;
    http.address = {options_.bind, static_cast<uint16_t>(options_.metrics_port)};
    AllowHosts(&http);
    const auto health = [this](const HttpRequest&) {
      const bool ready = IsReady();
      return HttpResponse{.status = ready ? 200 : 503, .body = ready ? "ok\n" : "not ready\n"};
    };
    const auto page = [this](const HttpRequest&) {
      return HttpResponse{.content_type = "text/plain; version=0.0.4", .body = metrics_.PageText()};
    };
    const auto life = [](const HttpRequest&) { return HttpResponse{.body = "ok\n"}; };
    WEFT_ASSIGN_OR_RETURN(looks_, HttpServer::Start(std::move(http), {{"/healthz", health},
                                                                      {"/livez", life},
                                                                      {"/metrics", page},
                                                                      {kMetricsPath, page}}));
    WEFT_LOG(INFO) << "Health and metrics at "
                   << SocketAddress{options_.bind, looks_->port()}.ToString();
    return absl::OkStatus();
  }

  void AskRest(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      ++asked_;
    }
    const bool counts = request.method == "POST";
    if (counts) metrics_.Begin();
    rest_pool_->Schedule([this, counts, request = std::move(request), reply = std::move(reply)] {
      api_->Handle(request, [this, counts, reply](HttpResponse response) {
        reply->Send(std::move(response));
        if (counts) metrics_.End();
        absl::MutexLock lock(&mutex_);
        --asked_;
      });
    });
  }

  void WatchConfig() {
    std::string followed = options_.config.SerializeAsString();
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.config_poll);
        if (stopping_) return;
      }
      tensorflow::serving::ModelServerConfig config;
      Status status = ReadTextMessage(files_, options_.config_file, &config);
      if (status.ok() && config.SerializeAsString() == followed) continue;
      if (status.ok()) status = models_->Configure(config);
      if (!status.ok()) {
        WEFT_LOG(ERROR) << "The models stay as they are, or as far as could be followed: "
                        << status.message();
      }
      followed = config.SerializeAsString();
    }
  }

  ModelServerOptions options_;
  storage::ObjectFileSystem files_{FilesFor(options_)};
  MetricRegistry registry_;
  ServingMetrics metrics_{&registry_};
  TimerQueue timers_;
  ThreadPool batch_pool_;
  // Ends before the pool of the batches that it waits for.
  std::optional<ModelSet> models_;
  std::optional<RestApi> api_;
  ThreadPool setup_;
  ThreadPool calls_;
  std::optional<ThreadPool> rest_pool_;
  std::unique_ptr<wire::GrpcServer> grpc_, socket_;
  std::unique_ptr<HttpServer> rest_, looks_;
  std::atomic<bool> is_draining_{false};
  absl::Mutex mutex_;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;  // requests of REST that are under way
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> config_thread_;
};

}  // namespace

StatusOr<std::unique_ptr<ModelServer>> ModelServer::Start(ModelServerOptions options) {
  auto server = std::make_unique<Server>(std::move(options));
  WEFT_RETURN_IF_ERROR(server->Init());
  return std::unique_ptr<ModelServer>(std::move(server));
}

}  // namespace weft::serving
