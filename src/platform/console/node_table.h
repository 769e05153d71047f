// SPDX-License-Identifier: Apache-2.0
// `weft nodes`: what each node of a cluster has, and what of it is taken.
#pragma once

#include <string>

#include "base/status.h"
#include "platform/console/commands.h"

namespace weft::platform {

// A line a node: whether pods may come, processors, memory, pods and GPUs in use and in all, what
// GPUs, sockets and adapters they are. With `lists_gpus` a line a GPU below it: who has it.
Status ShowNodes(const Console& console, bool lists_gpus);

}  // namespace weft::platform
