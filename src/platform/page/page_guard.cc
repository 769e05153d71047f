// SPDX-License-Identifier: Apache-2.0
#include "platform/page/page_guard.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace weft::platform {
namespace {

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'; trusted-types 'none'";

std::string HeaderOf(const HttpRequest& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

}  // namespace

Status CheckSameSite(const HttpRequest& request) {
  const bool is_api = absl::StartsWith(request.path, "/api/");
  const std::string site = HeaderOf(request, "sec-fetch-site");
  // Links to the page may stand anywhere.
  const bool may_lead_here = !is_api && HeaderOf(request, "sec-fetch-mode") == "navigate";
  if (!site.empty() && site != "same-origin" && site != "none" && !may_lead_here)
    return PermissionDenied("A page of another site asked for ", request.path);
  const std::string origin = HeaderOf(request, "origin");
  const std::string host = HeaderOf(request, "host");
  if (!origin.empty() && origin != absl::StrCat("http://", host) &&
      origin != absl::StrCat("https://", host))
    return PermissionDenied("A page of ", origin, " asked for ", request.path);
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (!is_read && HeaderOf(request, "x-weft-page") != "1")
    return PermissionDenied("A write needs the header X-Weft-Page: 1");
  return absl::OkStatus();
}

std::string KeyOf(const HttpRequest& request) {
  const std::string header = HeaderOf(request, "authorization");
  absl::string_view key = header;
  return absl::ConsumePrefix(&key, "Bearer ") ? std::string(key) : "";
}

void AddPageHeaders(HttpResponse* response) {
  for (const auto& [name, value] :
       {std::pair{"Content-Security-Policy", kPolicy},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Permissions-Policy", "camera=(), microphone=(), geolocation=()"}})
    response->headers.emplace_back(name, value);
}

}  // namespace weft::platform
