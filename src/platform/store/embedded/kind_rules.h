// SPDX-License-Identifier: Apache-2.0
// The rules of each kind: what rules.h does, once the kind is known and its fields can be read.
#pragma once

#include "base/status.h"
#include "platform/object/field_reader.h"
#include "platform/store/embedded/rules.h"

namespace weft::platform {

// ObjectInvalid with the problems, if there are any. Unless it is strict, fields that are not known
// are left to whoever knows them.
Status InvalidUnlessGood(const ResourceType& type, const Json& object, const Problems& problems,
                         bool is_strict = true);

Status PreparePod(const ResourceType& type, const ObjectFinder& find, Json* pod);
Status PreparePodUpdate(const ResourceType& type, const Json& old, Json* pod);
Status PrepareService(const ResourceType& type, Json* service);
// Config maps and secrets; `old` is null for a new one.
Status PrepareData(const ResourceType& type, const Json* old, Json* object);
// Deployments, replica sets, stateful sets and jobs; `old` is null for a new one.
Status PrepareWorkload(const ResourceType& type, const Json* old, Json* object);
Status PrepareClaim(const ResourceType& type, Json* claim);
Status PreparePriorityClass(const ResourceType& type, const Json* old, Json* object);

}  // namespace weft::platform
