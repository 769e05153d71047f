// SPDX-License-Identifier: Apache-2.0
// What a server's admission adds to a new pod: it follows from other objects.
#pragma once

#include "base/status.h"
#include "net/json.h"
#include "platform/store/embedded/rules.h"

namespace weft::platform {

// Its priority, by the class that it names or that counts for all. Forbidden when there is none.
Status AdmitPod(const ObjectFinder& find, Json* pod);

}  // namespace weft::platform
