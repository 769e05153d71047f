// SPDX-License-Identifier: Apache-2.0
// The connections that a client has forwarded to ports of a pod.
#pragma once

#include "net/upgraded_connection.h"
#include "platform/apiserver/pod_access.h"

namespace weft::platform {

// Blocks until the client has gone or `stop_fd` can be read.
void RunPortForward(UpgradedConnection* connection, bool is_tunnel, PodAccess* pods,
                    const ObjectName& pod, int stop_fd);

}  // namespace weft::platform
