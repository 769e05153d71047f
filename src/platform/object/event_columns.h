// SPDX-License-Identifier: Apache-2.0
// What `kubectl get events` shows, of events in either of their two forms.
#pragma once

#include "platform/object/kind_spec.h"

namespace weft::platform {

// Core events and those of events.k8s.io name the same fields otherwise.
KindSpec WithEventColumns(KindSpec spec);

}  // namespace weft::platform
