// SPDX-License-Identifier: Apache-2.0
// What Katib's controller asks of a suggestion service, and its programs of the database: one
// function a call, from the bytes of a request to those of a reply.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "platform/store/object_store.h"

namespace weft::platform {

using KatibCall = std::function<StatusOr<std::string>(absl::string_view request)>;

// By path: "/api.v1.beta1.Suggestion/GetSuggestions", and of a health check. Suggestions follow
// from the request alone: the trials in it and how many were asked for until now, so that any
// process may answer. With a store also those of DBManager: what is reported of a trial is kept in
// the status of the Trial of that name, in whatever namespace it is. The store is borrowed; it may
// be null.
std::map<std::string, KatibCall> KatibCalls(ObjectStore* store);

}  // namespace weft::platform
