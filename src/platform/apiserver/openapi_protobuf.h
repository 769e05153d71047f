// SPDX-License-Identifier: Apache-2.0
// OpenAPI 2.0 as kubectl asks for it before it applies a `kind: List`: in protobuf.
#pragma once

#include <string>

namespace weft::platform {

inline constexpr char kOpenApiV2Protobuf[] =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

// The names of all kinds, each of which may hold anything: the server itself checks what comes.
std::string OpenApiV2InProtobuf();

}  // namespace weft::platform
