// SPDX-License-Identifier: Apache-2.0
// One program that a client runs in a pod, from its start to its last byte.
#pragma once

#include <memory>

#include "net/upgraded_connection.h"
#include "platform/apiserver/exec_channels.h"
#include "platform/apiserver/pod_access.h"

namespace weft::platform {

// Blocks until the program has ended and the client knows, or has gone, or `stop_fd` can be read.
// What the program left behind in its group ends with it.
void RunExec(UpgradedConnection* connection, ExecChannels* channels, PodAccess::Start start,
             int stop_fd);

}  // namespace weft::platform
