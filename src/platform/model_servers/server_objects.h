// SPDX-License-Identifier: Apache-2.0
// The plain objects that a ModelServer becomes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/object/model_server.h"

namespace weft::platform {

inline constexpr char kModelServerLabel[] = "weft.dev/model-server";
inline constexpr char kRevisionLabel[] = "weft.dev/revision";
inline constexpr int kServerGrpcPort = 8500;
inline constexpr int kServerRestPort = 8501;
inline constexpr int kServerMetricsPort = 8502;
inline constexpr char kServerMetricsPath[] = "/metrics";

// What of the spec makes pods, in ten letters and digits: changes of it are rolled out, those of
// numbers of servers and of how to roll out are not.
std::string ServerRevisionOf(const Json& object);

// Of the object; the owner's reference is in them.
Json MakeServerDeployment(const Json& object, const ModelServerSpec& server,
                          const std::string& revision, int64_t replicas);
Json MakeServerService(const Json& object);

// Both, for clusters without the controller: no owner, so nothing deletes them with it.
// InvalidArgument lists the problems of the document.
StatusOr<std::vector<Json>> RenderModelServer(const Json& document, const std::string& file,
                                              const std::string& namespace_name);

}  // namespace weft::platform
