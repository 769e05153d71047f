// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/admission.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "net/certificate.h"
#include "net/yaml.h"
#include "platform/apiserver/server_identity.h"
#include "platform/object/fields.h"
#include "platform/object/tfjob.h"
#include "platform/store/resource.h"

namespace weft::platform {
namespace {

constexpr size_t kMostBytes = 8 << 20;  // two objects of an API server's size
constexpr absl::Duration kValidity = absl::Hours(24 * 3650);

Status CheckAdmission(const Json& request) {
  const Json* const object = FindField(request, {"object"});
  if (object == nullptr || !IsJobKind(Json(StringField(*object, {"kind"})))) {
    return absl::OkStatus();
  }
  const Json* const old = FindField(request, {"oldObject"});
  const Json* const spec = FindField(*object, {"spec"});
  const Json* const old_spec = old == nullptr ? nullptr : FindField(*old, {"spec"});
  const bool is_same = spec != nullptr && old_spec != nullptr && SameJson(*spec, *old_spec);
  // Whoever takes a finalizer off must not be stopped by what was let in before.
  if (is_same || IsTerminating(*object)) return absl::OkStatus();
  Problems problems(absl::StrCat(StringField(*object, {"kind"}), " ", NameOf(*object)));
  // A name that the server makes from a prefix comes later.
  Json named = *object;
  if (NameOf(named).empty()) SetField(&named, {"metadata", "name"}, "generated");
  const TfJob job = ParseTfJob(named, &problems);
  CheckImages(job, named, &problems);
  if (old != nullptr) CheckJobUpdate(*old, named, &problems);
  return problems.ToStatus();
}

HttpResponse Answer(const HttpRequest& request) {
  HttpResponse response;
  if (request.path == "/healthz") {
    response.body = "ok";
    return response;
  }
  if (request.path != "/validate" || request.method != "POST") {
    response.status = 404;
    response.body = "POST /validate is served here";
    return response;
  }
  const StatusOr<Json> review = Json::Parse(request.body);
  const StatusOr<Json> answer = review.ok() ? ReviewAdmission(*review) : review.status();
  response.status = answer.ok() ? 200 : 400;
  response.content_type = answer.ok() ? "application/json" : response.content_type;
  response.body = answer.ok() ? answer->Dump() : std::string(answer.status().message());
  return response;
}

Json Configuration(const WebhookOptions& options, int port, const std::string& authority_pem) {
  Json client;
  client.Set("caBundle", absl::Base64Escape(authority_pem));
  const std::vector<std::string> parts = absl::StrSplit(options.service, '/');
  if (parts.size() == 2) {
    SetField(&client, {"service", "namespace"}, parts[0]);
    SetField(&client, {"service", "name"}, parts[1]);
    SetField(&client, {"service", "path"}, "/validate");
    SetField(&client, {"service", "port"}, port);
  } else {
    client.Set("url", absl::StrCat("https://", options.host, ":", port, "/validate"));
  }
  Json rules = Json::MakeArray();
  for (const ResourceType* const type : {&TfJobs(), &Tensorflows()}) {
    Json rule;
    rule.Set("apiGroups", Json(Json::Array{Json(type->group)}));
    rule.Set("apiVersions", Json(Json::Array{Json("*")}));
    rule.Set("operations", Json(Json::Array{Json("CREATE"), Json("UPDATE")}));
    rule.Set("resources", Json(Json::Array{Json(type->plural)}));
    rules.Append(std::move(rule));
  }
  Json webhook;
  webhook.Set("name", "jobs.weft.dev");
  webhook.Set("clientConfig", std::move(client));
  webhook.Set("rules", std::move(rules));
  // In the version that it was written in, as paths in messages shall be.
  webhook.Set("matchPolicy", "Exact");
  // The controller finds the same mistakes later: without the operator jobs are still taken.
  webhook.Set("failurePolicy", "Ignore");
  webhook.Set("sideEffects", "None");
  webhook.Set("admissionReviewVersions", Json(Json::Array{Json("v1")}));
  webhook.Set("timeoutSeconds", 5);
  Json configuration;
  configuration.Set("apiVersion", "admissionregistration.k8s.io/v1");
  configuration.Set("kind", "ValidatingWebhookConfiguration");
  SetField(&configuration, {"metadata", "name"}, "weft-jobs");
  configuration.Set("webhooks", Json(Json::Array{std::move(webhook)}));
  return configuration;
}

struct WebhookIdentity {
  Identity identity;
  std::string authority_pem;  // empty: somebody else made the certificate
};

StatusOr<WebhookIdentity> LoadIdentity(const WebhookOptions& options, absl::Time now) {
  RealFileSystem files;
  const auto path = [&](const char* name) { return JoinPath(options.folder, name); };
  WebhookIdentity made;
  StatusOr<std::string> certificate = ReadFile(files, path("tls.crt"), 1 << 20);
  if (certificate.ok()) {
    made.identity.certificate_pem = *std::move(certificate);
    WEFT_ASSIGN_OR_RETURN(made.identity.key_pem, ReadFile(files, path("tls.key"), 1 << 20));
    made.authority_pem = ReadFile(files, path("ca.crt"), 1 << 20).value_or("");
    return made;
  }
  if (!absl::IsNotFound(certificate.status())) return certificate.status();
  WEFT_ASSIGN_OR_RETURN(const Identity authority, MakeAuthority("weft-webhook", now, kValidity));
  CertificateRequest request;
  request.common_name = options.host;
  const bool is_address = options.host.find_first_not_of("0123456789.:") == std::string::npos;
  (is_address ? request.addresses : request.dns_names).push_back(options.host);
  request.validity = kValidity;
  WEFT_ASSIGN_OR_RETURN(made.identity, IssueServerCertificate(authority, request, now));
  made.authority_pem = authority.certificate_pem;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(options.folder));
  WEFT_RETURN_IF_ERROR(WritePrivateFile(path("tls.key"), made.identity.key_pem));
  WEFT_RETURN_IF_ERROR(WritePrivateFile(path("ca.crt"), made.authority_pem));
  WEFT_RETURN_IF_ERROR(WritePrivateFile(path("tls.crt"), made.identity.certificate_pem));
  return made;
}

}  // namespace

StatusOr<Json> ReviewAdmission(const Json& review) {
  const Json* const request = FindField(review, {"request"});
  if (request == nullptr || StringField(review, {"kind"}) != "AdmissionReview") {
    return InvalidArgument("expected an AdmissionReview with a request, found ", review.Describe());
  }
  const Status status = CheckAdmission(*request);
  Json answer;
  answer.Set("apiVersion", StringField(review, {"apiVersion"}));
  answer.Set("kind", "AdmissionReview");
  SetField(&answer, {"response", "uid"}, StringField(*request, {"uid"}));
  SetField(&answer, {"response", "allowed"}, status.ok());
  if (!status.ok()) {
    SetField(&answer, {"response", "status", "code"}, 422);
    SetField(&answer, {"response", "status", "reason"}, "Invalid");
    SetField(&answer, {"response", "status", "message"}, status.message());
  }
  return answer;
}

StatusOr<std::unique_ptr<HttpServer>> StartWebhook(const WebhookOptions& options,
                                                   const Clock& clock) {
  WEFT_ASSIGN_OR_RETURN(const WebhookIdentity made, LoadIdentity(options, clock.Now()));
  HttpServer::Options http;
  http.address = options.address;
  // An API server that comes by the loopback interface is the only one.
  if (options.host == "127.0.0.1") http.address.host = options.host;
  http.allowed_hosts.push_back(options.host);
  http.max_body_bytes = kMostBytes;
  http.request_timeout = absl::Seconds(10);
  WEFT_ASSIGN_OR_RETURN(http.tls,
                        TlsConfig::Server(made.identity.certificate_pem, made.identity.key_pem));
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> server,
      HttpServer::StartWithHandler(
          std::move(http), [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
            reply->Send(Answer(request));
          }));
  if (!made.authority_pem.empty()) {
    WEFT_RETURN_IF_ERROR(
        WritePrivateFile(JoinPath(options.folder, "webhook.yaml"),
                         DumpYaml(Configuration(options, server->port(), made.authority_pem))));
  }
  return server;
}

}  // namespace weft::platform
