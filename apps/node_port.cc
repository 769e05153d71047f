// SPDX-License-Identifier: Apache-2.0
#include "apps/node_port.h"

#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "base/log.h"
#include "base/posix_file.h"
#include "net/certificate.h"
#include "net/http_client.h"
#include "platform/apiserver/log_stream.h"
#include "platform/object/fields.h"
#include "platform/pods/pod_executor.h"

namespace weft::apps {
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

StatusOr<std::shared_ptr<TlsConfig>> MakeTls(const NodePortFlags& flags, const std::string& address,
                                             absl::Time now) {
  RealFileSystem files;
  TlsPeerRule clients;
  WEFT_ASSIGN_OR_RETURN(clients.authority_pem,
                        ReadFile(files, flags.client_authority_file, kMostFileBytes));
  clients.common_name = flags.client_name;
  if (flags.certificate.empty() != flags.key.empty()) {
    return InvalidArgument("--tls-cert-file and --tls-private-key-file go together");
  }
  if (!flags.certificate.empty()) {
    WEFT_ASSIGN_OR_RETURN(const std::string certificate,
                          ReadFile(files, flags.certificate, kMostFileBytes));
    WEFT_ASSIGN_OR_RETURN(const std::string key, ReadFile(files, flags.key, kMostFileBytes));
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

// What the log's query needs of "/containerLogs/default/digits-worker-0/tensorflow"; the API server
// has checked who asks and for what.
StatusOr<platform::ApiRequest> LogRequest(const HttpRequest& http) {
  const std::vector<std::string> parts = absl::StrSplit(http.path, '/');
  if (http.method != "GET" || parts.size() != 5 || parts[1] != "containerLogs") {
    return NotFound("GET /containerLogs/NAMESPACE/POD/CONTAINER and /healthz are served here");
  }
  platform::ApiRequest request;
  request.http = http;
  request.query = ParseHttpQuery(http.query);
  request.query["container"] = DecodePercent(parts[4]);
  request.path.type = &platform::Pods();
  request.path.version = "v1";
  request.path.namespace_name = DecodePercent(parts[2]);
  request.path.name = DecodePercent(parts[3]);
  request.path.subresource = "log";
  return request;
}

// What a kubelet's port has beside logs; the API server passes the answer on.
bool ReachesIntoPods(absl::string_view path) {
  for (const char* const what : {"/exec/", "/attach/", "/portForward/", "/run/", "/cri/"})
    if (absl::StartsWith(path, what)) return true;
  return false;
}

constexpr char kNoReach[] =
    "exec, attach and port-forward are not served by `weft node`, only logs: its pods are "
    "processes "
    "of that machine; run `weft up` for exec and attach, or go to the machine";

HttpResponse Answer(int status, absl::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body = std::string(text);
  return response;
}

}  // namespace

StatusOr<std::unique_ptr<NodePort>> NodePort::Start(
    const NodePortFlags& flags, const std::string& server, const std::string& log_folder,
    platform::ObjectStore* store, platform::PodLookup find_pod, const Clock* clock) {
  if (flags.client_authority_file.empty()) {
    return InvalidArgument(
        "--kubelet_port needs --kubelet_client_ca: the file with the authority of the API server's "
        "client certificate, such as /etc/kubernetes/pki/ca.crt");
  }
  std::string address = flags.address;
  if (address.empty()) {
    WEFT_ASSIGN_OR_RETURN(address, OwnAddress(server));
  }
  std::unique_ptr<NodePort> port(new NodePort(store, address));
  HttpServer::Options http;
  http.address = {address, flags.port};
  http.allowed_hosts = {address};
  http.max_connections = 256;
  WEFT_ASSIGN_OR_RETURN(http.tls, MakeTls(flags, address, clock->Now()));
  const platform::LogPath log_path = [log_folder](const Json& pod, const std::string& container,
                                                  bool is_previous) {
    return platform::PodExecutor::LogPath(log_folder, pod, container, is_previous);
  };
  NodePort* const raw = port.get();
  const auto handle = [raw, clock, log_path, find_pod = std::move(find_pod)](
                          HttpRequest request, std::shared_ptr<HttpReply> reply) {
    if (request.path == "/healthz") return reply->Send(Answer(200, "ok"));
    if (ReachesIntoPods(request.path)) return reply->Send(Answer(501, kNoReach));
    StatusOr<platform::ApiRequest> log = LogRequest(request);
    if (!log.ok()) return reply->Send(Answer(404, log.status().message()));
    raw->pool_.Schedule(
        [raw, clock, log_path, find_pod, log = *std::move(log), reply = std::move(reply)] {
          platform::StreamLog(find_pod, clock, &raw->timers_, log_path, log, reply);
        });
  };
  WEFT_ASSIGN_OR_RETURN(port->server_, HttpServer::StartWithHandler(std::move(http), handle));
  WEFT_LOG(INFO) << "Serves logs to the API server at https://" << address << ":"
                 << port->server_->port();
  return port;
}

Status NodePort::Tell(const std::string& node) const {
  Json address;
  address.Set("type", "InternalIP");
  address.Set("address", address_);
  Json status;
  platform::SetField(&status, {"status", "addresses"}, Json(Json::Array{std::move(address)}));
  platform::SetField(&status, {"status", "daemonEndpoints", "kubeletEndpoint", "Port"},
                     server_->port());
  platform::WriteOptions options;
  options.subresource = "status";
  return store_->Patch(platform::Nodes(), {"", node}, platform::PatchKind::kMerge, status, options)
      .status();
}

}  // namespace weft::apps
