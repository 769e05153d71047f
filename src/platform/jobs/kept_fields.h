// SPDX-License-Identifier: Apache-2.0
// What a controller of jobs keeps of the objects that it watches: a cluster has many.
#pragma once

#include "net/json.h"

namespace weft::platform {

// What the plan and the controller read of a pod, and no more. Whoever reads another field of
// JobObservation::pods adds it here.
Json KeptOfPod(const Json& pod);
// The same of a service.
Json KeptOfService(const Json& service);

}  // namespace weft::platform
