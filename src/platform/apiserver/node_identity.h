// SPDX-License-Identifier: Apache-2.0
// Who joins as a node is that node and nothing else, as a cluster holds kubelets to their own.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "platform/apiserver/api_request.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// What the node of this name shows; made of the server's own token, it needs no list.
std::string NodeToken(const std::string& node, const std::string& server_token);
// Whose token this is; nothing when it is no node's of this server.
std::optional<std::string> NodeOfToken(absl::string_view token, const std::string& server_token);

// A node reads what is not secret, and the secrets that its pods name; it writes itself, its pods'
// status, metadata and end, and events. Else it is forbidden, with the reason.
Status CheckNodeRequest(const std::string& node, const ApiRequest& request, ObjectStore* store);

}  // namespace weft::platform
