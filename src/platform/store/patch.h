// SPDX-License-Identifier: Apache-2.0
// The patches that clients send.
#pragma once

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// kApply is server-side apply (server_side_apply.h), which wants more than the two objects.
enum class PatchKind { kMerge, kJson, kStrategic, kApply };

// RFC 7396: members replace, null removes.
Json MergePatch(Json target, const Json& patch);
// RFC 6902: a list of add, remove, replace, move, copy, test. An error names the operation that
// fails.
StatusOr<Json> JsonPatch(Json target, const Json& patch);
// Kubernetes' own: as a merge patch, but lists of objects with a known key (containers by name,
// ports by containerPort, conditions by type, ...) are merged by item, with $patch, $retainKeys,
// $setElementOrder/ and $deleteFromPrimitiveList/.
StatusOr<Json> StrategicMergePatch(Json target, const Json& patch);
// The field by which items of a list are told apart, as core/v1 and apps/v1 have it. Empty: the
// list is replaced.
absl::string_view StrategicMergeKey(absl::string_view list, const Json& items);

StatusOr<Json> ApplyPatch(PatchKind kind, Json target, const Json& patch);

}  // namespace weft::platform
