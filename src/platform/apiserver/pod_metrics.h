// SPDX-License-Identifier: Apache-2.0
// The kinds of metrics.k8s.io, which `kubectl top` reads: what pods and nodes use.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

#include "net/http_server.h"
#include "platform/apiserver/pod_access.h"
#include "platform/store/object_store.h"

namespace weft::platform {

inline constexpr char kMetricsGroup[] = "metrics.k8s.io";
inline constexpr char kMetricsVersion[] = "v1beta1";

// Nothing when the request is not for these kinds, or `pods` is null.
std::optional<HttpResponse> AnswerPodMetrics(PodAccess* pods, ObjectStore* store,
                                             const HttpRequest& http);
// "APIResourceList" of the group.
Json MetricsResources();

}  // namespace weft::platform
