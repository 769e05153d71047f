// SPDX-License-Identifier: Apache-2.0
// A container's log as an HTTP answer, whole or as it grows.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/timers.h"
#include "net/http_server.h"
#include "platform/apiserver/api_request.h"
#include "platform/apiserver/api_server.h"
#include "platform/apiserver/pod_access.h"

namespace weft::platform {

// GET pods/x/log with container, follow, previous, sinceSeconds, sinceTime, timestamps, tailLines,
// limitBytes. May block on the disk; goes on by `timers` while it follows. Borrows all but request
// and reply.
void StreamLog(const PodLookup& find_pod, const Clock* clock, TimerQueue* timers,
               const LogPath& log_path, ApiRequest request, std::shared_ptr<HttpReply> reply);

}  // namespace weft::platform
