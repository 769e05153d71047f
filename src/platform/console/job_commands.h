// SPDX-License-Identifier: Apache-2.0
// What `weft scale, suspend, resume, top` do, on any store.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "platform/console/commands.h"

namespace weft::platform {

// Sets how many replicas an object shall have: a job's workers, or those of another type
// (`replica_type`, "PS"); a Deployment's and its kin's pods.
Status ScaleObjects(const Console& console, const Selection& selection, int64_t replicas,
                    const std::string& replica_type);

// A suspended job has no pods; what it saved stays, and resumed it goes on from there.
Status SuspendJobs(const Console& console, const Selection& selection, bool is_suspended);

// What nodes, or pods, use of processors and memory: what `words` name ("nodes", "pods", "pods a",
// "tfjob/digits"), or all pods of the namespace. FailedPrecondition where nobody measures it.
Status ShowTop(const Console& console, const Selection& selection);

}  // namespace weft::platform
