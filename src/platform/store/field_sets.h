// SPDX-License-Identifier: Apache-2.0
// Which fields of an object who has set: sets in the form of metadata.managedFields (FieldsV1),
// where a member "f:name" is a field, `k:{"name":"x"}` an item of a list by its key, `v:"x"` an
// item of a list of words, and an empty mapping the end of a path.
#pragma once

#include <string>
#include <vector>

#include "net/json.h"

namespace weft::platform {

// Every field that the object holds, but for what the server itself keeps (name, uid,
// resourceVersion, ...).
Json FieldsOf(const Json& object);
// Those of `now` that `before` does not hold, or holds otherwise.
Json ChangedFields(const Json& before, const Json& now);

Json UnionOfFields(const Json& a, const Json& b);
Json CommonFields(const Json& a, const Json& b);
Json FieldsWithout(const Json& a, const Json& b);
// ".spec.replicas", `.spec.containers[name="x"].image`, in order.
std::vector<std::string> FieldPaths(const Json& fields);

// The fields of `applied` set in `live`: mappings and lists with a key item by item, other lists as
// a whole.
Json MergeApplied(Json live, const Json& applied);
// `object` without `fields`; what they leave empty stays.
Json RemoveFields(Json object, const Json& fields);

}  // namespace weft::platform
