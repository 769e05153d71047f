// SPDX-License-Identifier: Apache-2.0
// What an API server says about itself: groups, versions, resources, schemas.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "net/json.h"

namespace weft::platform {

// The page at `path` ("/api", "/apis/kubeflow.org/v1", "/openapi/v3/api/v1", "/version", ...), if
// it is one of these. `address` is host:port as clients reach the server.
std::optional<Json> DiscoveryPage(absl::string_view path, const std::string& address);

// OpenAPI 3.0 of one group and version, and 2.0 of all.
Json OpenApiV3(const std::string& group, const std::string& version);
Json OpenApiV2();

}  // namespace weft::platform
