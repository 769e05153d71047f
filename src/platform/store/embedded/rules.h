// SPDX-License-Identifier: Apache-2.0
// What an API server does to each kind of object before it keeps it: defaults and checks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/object/selector.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Other objects that a rule asks for.
struct ObjectFinder {
  // Null when there is none.
  std::function<ObjectPtr(const ResourceType&, const ObjectName&)> get;
  std::function<std::vector<ObjectPtr>(const ResourceType&)> list;
};

// Fills in defaults and drops what a client may not set. ObjectInvalid names the fields that are
// wrong. `version` is the one that the client used.
Status PrepareCreate(const ResourceType& type, const std::string& version,
                     const WriteOptions& options, const ObjectFinder& find, Json* object);
// `object` is what the old one becomes; its metadata is settled already.
Status PrepareUpdate(const ResourceType& type, const WriteOptions& options, const Json& old,
                     Json* object);

// ObjectInvalid unless it may be an object's name of that type.
Status CheckObjectName(const ResourceType& type, absl::string_view name);

// BadRequest for a field that lists of this type cannot be asked by, as on a cluster: a selector
// that works here works there.
Status CheckSelectableFields(const ResourceType& type, const Selector& fields);

}  // namespace weft::platform
