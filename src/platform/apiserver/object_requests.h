// SPDX-License-Identifier: Apache-2.0
// The requests that an ObjectStore answers at once.
#pragma once

#include "base/clock.h"
#include "net/http_server.h"
#include "platform/apiserver/api_request.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Get, list, create, update, patch, delete, scale and binding; 405 for other methods. May block on
// the store.
StatusOr<HttpResponse> AnswerObjectRequest(ObjectStore* store, const Clock& clock,
                                           const ApiRequest& request);

HttpResponse JsonResponse(int status, const Json& body);
HttpResponse ErrorResponse(const Status& error);

}  // namespace weft::platform
