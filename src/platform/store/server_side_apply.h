// SPDX-License-Identifier: Apache-2.0
// Server-side apply: each manager of an object says which fields it wants, and who takes another's
// is told.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

struct FieldManager {
  std::string name;         // "kubectl"
  std::string api_version;  // in which it speaks of the fields
  std::string subresource;
  absl::Time now;
};

// `live` (null: there is none yet) as `applied` wants it, with metadata.managedFields. What the
// manager applied before and now leaves out goes, unless another has it too. Conflict names the
// fields that others have set to another value; with `is_forced` they are taken from them. Fields
// of an object that nobody has applied yet are those of "before-first-apply".
StatusOr<Json> ApplyFields(const ResourceType& type, const Json* live, const Json& applied,
                           const FieldManager& manager, bool is_forced);

// metadata.managedFields after any other write: what it changed is now its manager's. Null when
// nobody applies to the object, which then keeps no account.
Json FieldsAfterUpdate(const Json& before, const Json& now, const FieldManager& manager);

}  // namespace weft::platform
