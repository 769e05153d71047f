// SPDX-License-Identifier: Apache-2.0
// What the page gets to see of objects: small rows, without what pods' environments hold.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

// One kind of row: where its objects are, and what is taken of one. A row has `key`, and times in
// seconds since 1970.
struct RowKind {
  const char* name;  // "jobs"
  std::vector<const ResourceType*> types;
  Json (*row)(const Json& object);
};

// jobs, pods, nodes, experiments, trials, events; null for any other name.
const RowKind* FindRowKind(absl::string_view name);

// "TFJob/namespace/name", one for each object.
std::string RowKey(const Json& object);

}  // namespace weft::platform
