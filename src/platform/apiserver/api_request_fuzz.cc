// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "net/http_server.h"
#include "platform/apiserver/api_request.h"

// Any path, query, header and body is a request that can be read or an error with an HTTP code.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::platform::ApiRequest;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find('\n');
  for (const char* base : {"/api/v1/namespaces/default/pods/", "/apis/kubeflow.org/v1/", "/"}) {
    weft::HttpRequest http;
    http.method = "PATCH";
    http.path = base + text.substr(0, cut);
    http.query = cut == std::string::npos ? text : text.substr(cut + 1);
    http.headers = {{"accept", text},
                    {"content-type", size % 2 == 0 ? "application/yaml" : "application/json"}};
    http.body = text;
    const weft::StatusOr<ApiRequest> request = weft::platform::ReadApiRequest(http);
    weft::platform::ReadBody(http, true).status().IgnoreError();
    if (!request.ok()) continue;
    if (request->path.type == nullptr) abort();
    weft::platform::ReadWriteOptions(*request).status().IgnoreError();
    weft::platform::ReadDeleteOptions(*request).status().IgnoreError();
    weft::platform::ReadListOptions(*request).status().IgnoreError();
    weft::platform::ReadPatchKind(*request).status().IgnoreError();
  }
  return 0;
}
