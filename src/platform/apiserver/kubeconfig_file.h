// SPDX-License-Identifier: Apache-2.0
// The file that tells kubectl where we are.
#pragma once

#include <string>

#include "base/status.h"

namespace weft::platform {

// Writes or replaces `path`, readable for its owner alone: server, authority and token of one
// context named `name`.
Status WriteKubeconfig(const std::string& path, const std::string& name,
                       const std::string& server_url, const std::string& authority_pem,
                       const std::string& token);

}  // namespace weft::platform
