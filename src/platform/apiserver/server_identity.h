// SPDX-License-Identifier: Apache-2.0
// What a local control plane keeps in its state folder to be the same server after a restart.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "net/certificate.h"

namespace weft::platform {

struct ServerIdentity {
  std::string authority_pem;  // who signed it
  Identity identity;
  std::string token;
  int port = 0;  // that it had; 0: none yet
};

// Reads `folder`, or makes what is missing or ends within a month: an authority, a certificate for
// 127.0.0.1, ::1 and localhost, a token. The authority's key is not kept. The files are their
// owner's alone.
StatusOr<ServerIdentity> LoadServerIdentity(const std::string& folder, absl::Time now);
// So that the next start tries it first.
Status SaveServerPort(const std::string& folder, int port);

// A file that only its owner may read, replaced in one step.
Status WritePrivateFile(const std::string& path, const std::string& text);

}  // namespace weft::platform
