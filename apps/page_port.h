// SPDX-License-Identifier: Apache-2.0
// The page of a control plane that is reached with one set of credentials.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "platform/page/page_server.h"
#include "platform/store/kubernetes/kubeconfig.h"

namespace weft::apps {

// What `weft up` and `weft ui` try first, so that links stay right.
inline constexpr int kPagePort = 8087;

// Whoever knows `key` looks with these credentials. Without a port the usual one, or any.
StatusOr<std::unique_ptr<platform::PageServer>> StartPage(const platform::ClusterAccess& access,
                                                          const std::string& key,
                                                          const Clock* clock,
                                                          platform::PageServer::Options options);

}  // namespace weft::apps
