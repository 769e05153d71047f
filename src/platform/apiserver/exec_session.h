// SPDX-License-Identifier: Apache-2.0
// One client and the program of a pod that it runs, or attaches to, until the last byte.
#pragma once

#include <memory>

#include "net/upgraded_connection.h"
#include "platform/apiserver/exec_channels.h"
#include "platform/apiserver/pod_access.h"

namespace weft::platform {

// Blocks until the program has ended and the client knows, or has gone, or `stop_fd` can be read.
// What a program that was started here left behind in its group ends with it.
void RunExec(UpgradedConnection* connection, ExecChannels* channels, PodAccess::Start start,
             int stop_fd);

}  // namespace weft::platform
