// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/webhook.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "base/log.h"
#include "net/yaml.h"
#include "platform/apiserver/server_identity.h"
#include "platform/jobs/admission.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/resource.h"

namespace weft::platform {
namespace {

constexpr size_t kMostBytes = 8 << 20;  // two objects of an API server's size
constexpr size_t kMostFileBytes = 1 << 20;
constexpr size_t kMostAuthorities = 32;
constexpr absl::Duration kLongestPause = absl::Seconds(30);
constexpr absl::Duration kShortestPause = absl::Milliseconds(100);
constexpr int kTries = 5;
constexpr char kEndOfCertificate[] = "-----END CERTIFICATE-----\n";

const ResourceType& Configurations() {
  static const auto* const type = new ResourceType(
      MakeResourceType("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
                       "validatingwebhookconfiguration", "ValidatingWebhookConfiguration", false));
  return *type;
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

// Of what is done within the life of a certificate: often enough that none is missed.
absl::Duration PauseFor(absl::Duration validity) {
  return std::clamp(validity / 50, kShortestPause, kLongestPause);
}

}  // namespace

std::string JoinAuthorities(const std::string& bundle, const std::string& authority,
                            absl::Time now) {
  std::vector<std::string> kept;
  size_t begin = 0;
  for (size_t end = 0; (end = bundle.find(kEndOfCertificate, begin)) != std::string::npos;) {
    end += sizeof(kEndOfCertificate) - 1;
    const std::string one = bundle.substr(begin, end - begin);
    begin = end;
    const StatusOr<absl::Time> expiry = CertificateEnd(one);
    if (expiry.ok() && *expiry > now) kept.push_back(one);
  }
  // Told again, nothing changes.
  if (std::find(kept.begin(), kept.end(), authority) == kept.end()) kept.push_back(authority);
  if (kept.size() > kMostAuthorities) {
    kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(kMostAuthorities));
  }
  return absl::StrJoin(kept, "");
}

StatusOr<std::unique_ptr<Webhook>> Webhook::Start(WebhookOptions options, const Clock* clock) {
  std::unique_ptr<Webhook> webhook(new Webhook(std::move(options), clock));
  WEFT_RETURN_IF_ERROR(webhook->Load());
  const WebhookOptions& held = webhook->options_;
  HttpServer::Options http;
  http.address = held.address;
  // An API server that comes by the loopback interface is the only one.
  if (held.host == "127.0.0.1") http.address.host = held.host;
  http.allowed_hosts.push_back(held.host);
  http.max_body_bytes = kMostBytes;
  http.request_timeout = absl::Seconds(10);
  http.tls = webhook->tls_;
  WEFT_ASSIGN_OR_RETURN(
      webhook->server_,
      HttpServer::StartWithHandler(
          std::move(http), [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
            reply->Send(Answer(request));
          }));
  WEFT_RETURN_IF_ERROR(webhook->WriteConfiguration());
  webhook->thread_ = std::make_unique<Thread>("webhook", [raw = webhook.get()] { raw->Run(); });
  return webhook;
}

Webhook::Webhook(WebhookOptions options, const Clock* clock)
    : options_(std::move(options)), clock_(clock) {}

Webhook::~Webhook() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  thread_.reset();
}

bool Webhook::IsTold() const {
  if (options_.configuration.empty()) return true;
  absl::MutexLock lock(&mutex_);
  return is_told_;
}

StatusOr<Webhook::Held> Webhook::Read() const {
  RealFileSystem files;
  const auto read = [&](const char* name) {
    return ReadFile(files, JoinPath(options_.folder, name), kMostFileBytes);
  };
  Held held;
  WEFT_ASSIGN_OR_RETURN(held.identity.certificate_pem, read("tls.crt"));
  WEFT_ASSIGN_OR_RETURN(held.identity.key_pem, read("tls.key"));
  held.authority_pem = read("ca.crt").value_or("");
  WEFT_ASSIGN_OR_RETURN(held.end, CertificateEnd(held.identity.certificate_pem));
  return held;
}

StatusOr<Webhook::Held> Webhook::Make() const {
  const absl::Time now = clock_->Now();
  WEFT_ASSIGN_OR_RETURN(const Identity authority,
                        MakeAuthority("weft-webhook", now, options_.validity));
  CertificateRequest request;
  request.common_name = options_.host.substr(0, 64);
  const bool is_address = options_.host.find_first_not_of("0123456789.:") == std::string::npos;
  (is_address ? request.addresses : request.dns_names).push_back(options_.host);
  request.validity = options_.validity;
  Held held;
  WEFT_ASSIGN_OR_RETURN(held.identity, IssueServerCertificate(authority, request, now));
  held.authority_pem = authority.certificate_pem;
  held.end = now + options_.validity;
  return held;
}

Status Webhook::Keep(const Held& held) const {
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(options_.folder));
  const auto path = [&](const char* name) { return JoinPath(options_.folder, name); };
  WEFT_RETURN_IF_ERROR(WritePrivateFile(path("tls.key"), held.identity.key_pem));
  WEFT_RETURN_IF_ERROR(WritePrivateFile(path("ca.crt"), held.authority_pem));
  return WritePrivateFile(path("tls.crt"), held.identity.certificate_pem);
}

Status Webhook::Load() {
  StatusOr<Held> held = Read();
  const bool is_missing = absl::IsNotFound(held.status());
  if (!is_missing && !held.ok()) return held.status();
  // One of ours that ended while nobody was here.
  const bool has_ended = held.ok() && !held->authority_pem.empty() && held->end <= clock_->Now();
  if (is_missing || has_ended) {
    WEFT_ASSIGN_OR_RETURN(held, Make());
    WEFT_RETURN_IF_ERROR(Keep(*held));
  }
  held_ = *std::move(held);
  WEFT_ASSIGN_OR_RETURN(tls_,
                        TlsConfig::Server(held_.identity.certificate_pem, held_.identity.key_pem));
  return absl::OkStatus();
}

Status Webhook::Maintain() {
  if (held_.authority_pem.empty()) return Follow();
  if (!options_.configuration.empty()) {
    const Status told = Tell(held_.authority_pem);
    absl::MutexLock lock(&mutex_);
    is_told_ = told.ok();
    if (!told.ok()) return told;
  }
  return Renew();
}

Status Webhook::Follow() {
  WEFT_ASSIGN_OR_RETURN(Held now, Read());
  if (now.identity.certificate_pem == held_.identity.certificate_pem) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(tls_->Renew(now.identity.certificate_pem, now.identity.key_pem));
  held_ = std::move(now);
  WEFT_LOG(INFO) << "The webhook shows the new certificate of " << options_.folder;
  return absl::OkStatus();
}

Status Webhook::Renew() {
  const absl::Time now = clock_->Now();
  if (held_.end - now > options_.validity / 3) return absl::OkStatus();
  if (next_.authority_pem.empty()) {
    WEFT_ASSIGN_OR_RETURN(next_, Make());
    told_at_ = absl::InfiniteFuture();
  }
  if (told_at_ == absl::InfiniteFuture()) {
    if (!options_.configuration.empty()) WEFT_RETURN_IF_ERROR(Tell(next_.authority_pem));
    told_at_ = now;
  }
  // API servers trust it before they see it.
  if (now < told_at_ + std::min(options_.validity / 20, absl::Seconds(10))) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(Keep(next_));
  WEFT_RETURN_IF_ERROR(tls_->Renew(next_.identity.certificate_pem, next_.identity.key_pem));
  held_ = std::exchange(next_, {});
  WEFT_LOG(INFO) << "The webhook has a new certificate, until " << held_.end;
  return WriteConfiguration();
}

Status Webhook::Tell(const std::string& authority_pem) {
  Status last;
  for (int i = 0; i < kTries; ++i) {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr found,
                          options_.store->Get(Configurations(), {"", options_.configuration}));
    Json next = *found;
    Json* const webhooks = next.FindMutable("webhooks");
    if (webhooks == nullptr || webhooks->size() == 0) {
      return NotFound("The ValidatingWebhookConfiguration '", options_.configuration,
                      "' has no webhooks; kubectl apply -k deploy/webhook_cluster");
    }
    for (Json& webhook : *webhooks->mutable_items()) {
      std::string bundle;
      absl::Base64Unescape(StringField(webhook, {"clientConfig", "caBundle"}), &bundle);
      SetField(&webhook, {"clientConfig", "caBundle"},
               absl::Base64Escape(JoinAuthorities(bundle, authority_pem, clock_->Now())));
    }
    if (SameJson(next, *found)) return absl::OkStatus();
    WriteOptions options;
    options.is_strict = false;
    last = options_.store->Update(Configurations(), std::move(next), options).status();
    if (!IsConflict(last)) return last;
  }
  return last;
}

Status Webhook::WriteConfiguration() const {
  if (held_.authority_pem.empty() || !options_.configuration.empty()) return absl::OkStatus();
  return WritePrivateFile(JoinPath(options_.folder, "webhook.yaml"),
                          DumpYaml(Configuration(options_, server_->port(), held_.authority_pem)));
}

void Webhook::Run() {
  for (;;) {
    const Status status = Maintain();
    if (!status.ok()) {
      WEFT_LOG_EVERY(WARNING, absl::Seconds(30)) << "The webhook: " << status.message();
    }
    absl::MutexLock lock(&mutex_);
    const auto is_over = [this] {
      mutex_.AssertReaderHeld();
      return is_stopping_;
    };
    if (mutex_.AwaitWithTimeout(absl::Condition(&is_over),
                                status.ok() ? PauseFor(options_.validity) : absl::Seconds(2))) {
      return;
    }
  }
}

}  // namespace weft::platform
