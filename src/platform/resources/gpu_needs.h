// SPDX-License-Identifier: Apache-2.0
// What a pod asks of GPUs, under all the names that people have for it.
#pragma once

#include "base/status.h"
#include "net/json.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {

// InvalidArgument for a count with a fraction, a share of two sizes, an index that stands twice.
StatusOr<GpuNeeds> ReadGpuNeeds(const Json& pod);

// How many GPUs one container of the pod asks for.
int64_t GpuCountOf(const Json& container);

}  // namespace weft::platform
