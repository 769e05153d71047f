// SPDX-License-Identifier: Apache-2.0
// A watch as the lines of an HTTP answer.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/timers.h"
#include "net/http_server.h"
#include "platform/apiserver/api_request.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Answers with events until the client goes or timeoutSeconds are over; errors before the first
// event are the whole answer. Borrows store, clock and timers, which must outlive the reply.
void StreamWatch(ObjectStore* store, const Clock* clock, TimerQueue* timers, ApiRequest request,
                 std::shared_ptr<HttpReply> reply);

}  // namespace weft::platform
