// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/node_port.h"

#include <map>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "base/log.h"
#include "base/posix_file.h"
#include "net/certificate.h"
#include "net/http_client.h"
#include "platform/apiserver/api_request.h"
#include "platform/apiserver/log_stream.h"
#include "platform/object/fields.h"
#include "platform/pods/pod_executor.h"

namespace weft::platform {
namespace {

constexpr size_t kMostFileBytes = 1 << 20;
constexpr absl::Duration kValidity = absl::Hours(24 * 3650);

// The address of this machine on its way to the API server. Nothing is sent.
StatusOr<std::string> OwnAddress(const std::string& server) {
  WEFT_ASSIGN_OR_RETURN(const HttpUrl url, ParseHttpUrl(server));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(url.host.c_str(), absl::StrCat(url.port).c_str(), &hints, &found);
  if (code != 0) return Unavailable("Cannot find '", url.host, "': ", ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const OwnedFd fd(::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    char host[NI_MAXHOST] = "";
    if (fd.is_open() && ::connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof(host), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      return std::string(host);
    }
  }
  return Unavailable(
      "Cannot tell by which address the API server reaches this machine: give "
      "--address");
}

StatusOr<std::shared_ptr<TlsConfig>> MakeTls(const NodePortOptions& options,
                                             const std::string& address, absl::Time now) {
  RealFileSystem files;
  TlsPeerRule clients;
  WEFT_ASSIGN_OR_RETURN(clients.authority_pem,
                        ReadFile(files, options.client_authority_file, kMostFileBytes));
  clients.common_name = options.client_name;
  if (options.certificate.empty() != options.key.empty()) {
    return InvalidArgument("--tls-cert-file and --tls-private-key-file go together");
  }
  if (!options.certificate.empty()) {
    WEFT_ASSIGN_OR_RETURN(const std::string certificate,
                          ReadFile(files, options.certificate, kMostFileBytes));
    WEFT_ASSIGN_OR_RETURN(const std::string key, ReadFile(files, options.key, kMostFileBytes));
    return TlsConfig::Server(certificate, key, clients);
  }
  WEFT_ASSIGN_OR_RETURN(const Identity authority, MakeAuthority("weft node", now, kValidity));
  CertificateRequest request;
  request.common_name = "weft node";
  request.addresses.push_back(address);
  request.validity = kValidity;
  WEFT_ASSIGN_OR_RETURN(const Identity made, IssueServerCertificate(authority, request, now));
  return TlsConfig::Server(made.certificate_pem, made.key_pem, clients);
}

// What a kubelet calls the streams of exec and attach.
constexpr std::pair<const char*, const char*> kStreamFlags[] = {
    {"input", "stdin"}, {"output", "stdout"}, {"error", "stderr"}};

// "/containerLogs/default/digits-worker-0/tensorflow" as the API server reads "pods/x/log", and so
// on; it has checked who asks and for what.
StatusOr<ApiRequest> ReadNodeRequest(HttpRequest http) {
  static const auto* const subresources =
      new std::map<std::string, std::string>{{"containerLogs", "log"},
                                             {"exec", "exec"},
                                             {"attach", "attach"},
                                             {"portForward", "portforward"}};
  const std::vector<std::string> parts = absl::StrSplit(http.path, '/');
  const auto found = parts.size() < 2 ? subresources->end() : subresources->find(parts[1]);
  const bool names_container = found != subresources->end() && found->second != "portforward";
  if (found == subresources->end() || parts.size() != (names_container ? 5 : 4)) {
    return NotFound(
        "/containerLogs, /exec and /attach with /NAMESPACE/POD/CONTAINER, "
        "/portForward/NAMESPACE/POD and /healthz are served here");
  }
  if (found->second == "log" && http.method != "GET") return NotFound("Logs are fetched by GET");
  ApiRequest request;
  request.query = ParseHttpQuery(http.query);
  for (const auto& [theirs, ours] : kStreamFlags) {
    if (const auto flag = request.query.find(theirs); flag != request.query.end())
      request.query[ours] = flag->second;
  }
  if (names_container) request.query["container"] = DecodePercent(parts[4]);
  request.path.type = &Pods();
  request.path.version = "v1";
  request.path.namespace_name = DecodePercent(parts[2]);
  request.path.name = DecodePercent(parts[3]);
  request.path.subresource = found->second;
  request.http = std::move(http);
  return request;
}

HttpResponse TextResponse(int status, absl::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body = std::string(text);
  return response;
}

}  // namespace

NodePort::NodePort(const NodePortOptions& options, ObjectStore* store, PodLookup find_pod,
                   PodAccess* pods, const Clock* clock)
    : log_folder_(options.log_folder),
      store_(store),
      find_pod_(find_pod),
      clock_(clock),
      address_(options.address),
      calls_(std::move(find_pod), pods),
      pool_("node port", 2) {}

StatusOr<std::unique_ptr<NodePort>> NodePort::Start(const NodePortOptions& options,
                                                    ObjectStore* store, PodLookup find_pod,
                                                    PodAccess* pods, const Clock* clock) {
  if (options.client_authority_file.empty()) {
    return InvalidArgument(
        "--kubelet_port needs --kubelet_client_ca: the file with the authority of the API server's "
        "client certificate, such as /etc/kubernetes/pki/ca.crt");
  }
  std::unique_ptr<NodePort> port(new NodePort(options, store, std::move(find_pod), pods, clock));
  if (port->address_.empty()) {
    WEFT_ASSIGN_OR_RETURN(port->address_, OwnAddress(options.server));
  }
  HttpServer::Options http;
  http.address = {port->address_, options.port};
  http.allowed_hosts = {port->address_};
  http.max_connections = 256;
  WEFT_ASSIGN_OR_RETURN(http.tls, MakeTls(options, port->address_, clock->Now()));
  const auto handle = [raw = port.get()](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    raw->Answer(std::move(request), std::move(reply));
  };
  WEFT_ASSIGN_OR_RETURN(port->server_, HttpServer::StartWithHandler(std::move(http), handle));
  WEFT_LOG(INFO) << "Lets the API server reach its pods at https://" << port->address_ << ":"
                 << port->server_->port();
  return port;
}

void NodePort::Answer(HttpRequest http, std::shared_ptr<HttpReply> reply) {
  if (http.path == "/healthz") return reply->Send(TextResponse(200, "ok"));
  StatusOr<ApiRequest> request = ReadNodeRequest(std::move(http));
  if (!request.ok()) return reply->Send(TextResponse(404, request.status().message()));
  pool_.Schedule([this, request = *std::move(request), reply = std::move(reply)] {
    if (request.path.subresource != "log") return calls_.Answer(request, reply);
    const LogPath log_path = [this](const Json& pod, const std::string& container,
                                    bool is_previous) {
      return PodExecutor::LogPath(log_folder_, pod, container, is_previous);
    };
    StreamLog(find_pod_, clock_, &timers_, log_path, request, reply);
  });
}

Status NodePort::Tell(const std::string& node) const {
  Json address;
  address.Set("type", "InternalIP");
  address.Set("address", address_);
  Json status;
  SetField(&status, {"status", "addresses"}, Json(Json::Array{std::move(address)}));
  SetField(&status, {"status", "daemonEndpoints", "kubeletEndpoint", "Port"}, server_->port());
  WriteOptions options;
  options.subresource = "status";
  return store_->Patch(Nodes(), {"", node}, PatchKind::kMerge, status, options).status();
}

}  // namespace weft::platform
