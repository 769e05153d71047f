// SPDX-License-Identifier: Apache-2.0
// Copies between the host's memory and a device's own.
#pragma once

#include "base/status.h"
#include "weft/compile/plan.h"

namespace weft::compile {

// For a graph on a device with a memory of its own: puts a copy on each edge whose value lies in
// one memory and is read in the other. Values lie on the device, but for strings and handles, for
// what ops declare to stay on the host (OpSpec::HostInput), and for the arguments and results of
// the step. Nothing happens for devices that work in the host's memory.
Status PutInCopies(const PlanOptions& options, Graph* graph);

}  // namespace weft::compile
