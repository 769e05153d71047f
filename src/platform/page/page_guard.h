// SPDX-License-Identifier: Apache-2.0
// What keeps other sites out of the page, and the page from doing what it should not.
#pragma once

#include <string>

#include "base/status.h"
#include "net/http_server.h"

namespace weft::platform {

// PermissionDenied when a page of another site made this request, as browsers tell it (Fetch
// Metadata, Origin), and for a write without the page's own header, which no form can send.
Status CheckSameSite(const HttpRequest& request);

// The key in "Authorization: Bearer KEY"; empty: none.
std::string KeyOf(const HttpRequest& request);

// No script, style or picture from elsewhere, none inside the text of the page, no frames around
// it, nothing kept in caches of others.
void AddPageHeaders(HttpResponse* response);

}  // namespace weft::platform
