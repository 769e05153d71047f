// SPDX-License-Identifier: Apache-2.0
// What a server fills in where the writer of a pod or of a template says nothing, as Kubernetes
// does.
#pragma once

#include "net/json.h"
#include "platform/object/fields.h"

namespace weft::platform {

// Of a pod or of a template.
void DefaultPodSpec(Json* object, FieldPath spec_path);
// A new pod: its spec, what admission adds to it, and its first status.
void DefaultPod(Json* pod);
// Without its status, which an update leaves as it is.
void DefaultPodOfUpdate(Json* pod);

}  // namespace weft::platform
