// SPDX-License-Identifier: Apache-2.0
#include "platform/operator/operator_ports.h"

#include <cstdlib>
#include <map>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

#include "base/files.h"
#include "base/log.h"
#include "base/process_stats.h"
#include "net/certificate.h"

namespace weft::platform {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

StatusOr<SocketAddress> AddressOf(const std::string& text) {
  if (!absl::StartsWith(text, ":")) return ParseSocketAddress(text);
  WEFT_ASSIGN_OR_RETURN(SocketAddress address, ParseSocketAddress(absl::StrCat("localhost", text)));
  address.host.clear();
  return address;
}

StatusOr<std::shared_ptr<TlsConfig>> MakeTls(const PortOptions& port, const Clock& clock,
                                             const std::vector<std::string>& hosts) {
  if (port.certificate.empty() != port.key.empty()) {
    return InvalidArgument("--tls-cert-file and --tls-private-key-file go together");
  }
  if (!port.certificate.empty()) {
    RealFileSystem files;
    WEFT_ASSIGN_OR_RETURN(const std::string certificate,
                          ReadFile(files, port.certificate, kMostBytes));
    WEFT_ASSIGN_OR_RETURN(const std::string key, ReadFile(files, port.key, kMostBytes));
    return TlsConfig::Server(certificate, key);
  }
  WEFT_ASSIGN_OR_RETURN(const Identity authority,
                        MakeAuthority("weft operator", clock.Now(), absl::Hours(24 * 366)));
  CertificateRequest request;
  request.common_name = "weft operator";
  request.dns_names = hosts;
  WEFT_ASSIGN_OR_RETURN(const Identity identity,
                        IssueServerCertificate(authority, request, clock.Now()));
  return TlsConfig::Server(identity.certificate_pem, identity.key_pem);
}

StatusOr<HttpServer::Options> MakeOptions(const PortOptions& port, const Clock& clock) {
  HttpServer::Options options;
  WEFT_ASSIGN_OR_RETURN(options.address, AddressOf(port.address));
  if (IsLoopbackHost(options.address.host)) return options;
  std::vector<std::string> names = {"localhost", HostName()};
  for (const std::string& host : port.hosts) names.push_back(host);
  WEFT_ASSIGN_OR_RETURN(options.tls, MakeTls(port, clock, names));
  options.allowed_hosts.insert(options.allowed_hosts.end(), names.begin(), names.end());
  if (!options.address.host.empty()) options.allowed_hosts.push_back(options.address.host);
  if (const char* const address = std::getenv("POD_IP")) options.allowed_hosts.push_back(address);
  return options;
}

// As dashboards of any process expect them.
void UpdateProcessMetrics(const Clock& clock, MetricRegistry* metrics) {
  const ProcessStats stats = ReadProcessStats();
  metrics->GetGauge("process_start_time_seconds", "When it began, since 1970")
      .Set(absl::ToDoubleSeconds(clock.Now() - stats.uptime - absl::UnixEpoch()));
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    metrics->GetGauge("process_max_fds", "Files that may be open")
        .Set(static_cast<double>(files.rlim_cur));
  }
  metrics->GetGauge("process_resident_memory_bytes", "Memory in use")
      .Set(static_cast<double>(stats.resident_bytes));
  metrics->GetGauge("process_open_fds", "Open files").Set(static_cast<double>(stats.open_files));
  metrics->GetGauge("process_cpu_seconds_total", "Processor time")
      .Set(absl::ToDoubleSeconds(stats.cpu_time));
}

HttpResponse Say(int status, const char* text) {
  HttpResponse response;
  response.status = status;
  response.body = text;
  return response;
}

StatusOr<std::unique_ptr<HttpServer>> Serve(const PortOptions& port, HttpServer::Options options,
                                            std::map<std::string, HttpHandler> routes) {
  const std::string scheme = options.tls == nullptr ? "http" : "https";
  const std::string host = options.address.host.empty() ? "*" : options.address.host;
  const std::string path = routes.begin()->first;
  StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(std::move(options), std::move(routes));
  if (!server.ok()) return Annotate(server.status(), port.address);
  WEFT_LOG(INFO) << "Serves " << scheme << "://" << host << ":" << (*server)->port() << path;
  return server;
}

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> ServeMetrics(const PortOptions& port, const Clock& clock,
                                                   MetricRegistry* metrics) {
  if (port.address == "0") return nullptr;
  WEFT_ASSIGN_OR_RETURN(HttpServer::Options options, MakeOptions(port, clock));
  std::string token;
  if (!port.token_file.empty()) {
    RealFileSystem files;
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, port.token_file, kMostBytes));
    token = std::string(absl::StripAsciiWhitespace(text));
  }
  if (token.empty() && options.tls != nullptr) {
    return InvalidArgument("--metrics-bind-address is '", port.address,
                           "', which others can reach: give --metrics-token-file with a file that "
                           "holds a token, or an address of loopback");
  }
  const HttpHandler tell = [metrics, token, &clock](const HttpRequest& request) {
    const auto header = request.headers.find("authorization");
    const std::string given = header == request.headers.end() ? "" : header->second;
    if (!token.empty() && !SameSecret(given, absl::StrCat("Bearer ", token))) {
      return Say(401, "Unauthorized\n");
    }
    UpdateProcessMetrics(clock, metrics);
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics->PrometheusText();
    return response;
  };
  return Serve(port, std::move(options), {{"/metrics", tell}});
}

StatusOr<std::unique_ptr<HttpServer>> ServeHealth(const PortOptions& port, const Clock& clock,
                                                  std::function<bool()> is_ready) {
  if (port.address == "0") return nullptr;
  WEFT_ASSIGN_OR_RETURN(HttpServer::Options options, MakeOptions(port, clock));
  const HttpHandler live = [](const HttpRequest&) { return Say(200, "ok\n"); };
  const HttpHandler ready = [is_ready = std::move(is_ready)](const HttpRequest&) {
    return is_ready() ? Say(200, "ok\n") : Say(503, "not yet\n");
  };
  return Serve(port, std::move(options), {{"/healthz", live}, {"/readyz", ready}});
}

}  // namespace weft::platform
