// SPDX-License-Identifier: Apache-2.0
// The checks of jobs as a validating webhook: what a schema does not see is refused before it is
// kept, with the path of the field, what it holds and what is allowed.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/http_server.h"
#include "net/json.h"

namespace weft::platform {

// The AdmissionReview (admission.k8s.io/v1) with its response in place of the request. Refused is
// what ParseTfJob finds wrong with an object that is new or whose spec changes; what is no job, or
// on its way out, passes. InvalidArgument when it is no review.
StatusOr<Json> ReviewAdmission(const Json& review);

struct WebhookOptions {
  SocketAddress address = {"0.0.0.0", 9443};
  std::string folder;              // tls.crt and tls.key, made for `host` when they are not there
  std::string host = "127.0.0.1";  // the address or name by which the API server comes
  // "weft-system/weft-operator": the service whose name `host` is; empty: the API server goes to
  // the host itself.
  std::string service;
};

// Serves POST /validate over TLS, and /healthz. Writes <folder>/webhook.yaml, which tells a cluster
// of it when the certificate is self-made.
StatusOr<std::unique_ptr<HttpServer>> StartWebhook(const WebhookOptions& options,
                                                   const Clock& clock);

}  // namespace weft::platform
