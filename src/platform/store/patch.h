// SPDX-License-Identifier: Apache-2.0
// The patches that clients send.
#pragma once

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

enum class PatchKind { kMerge, kJson, kStrategic };

// RFC 7396: members replace, null removes.
Json MergePatch(Json target, const Json& patch);
// RFC 6902: a list of add, remove, replace, move, copy, test. An error names the operation that
// fails.
StatusOr<Json> JsonPatch(Json target, const Json& patch);
// Kubernetes' own: as a merge patch, but lists of objects with a known key (containers by name,
// ports by containerPort, conditions by type, ...) are merged by item, with $patch, $retainKeys,
// $setElementOrder/ and $deleteFromPrimitiveList/.
StatusOr<Json> StrategicMergePatch(Json target, const Json& patch);

StatusOr<Json> ApplyPatch(PatchKind kind, Json target, const Json& patch);

}  // namespace weft::platform
