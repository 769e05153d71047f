// SPDX-License-Identifier: Apache-2.0
// Objects on a terminal.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "platform/store/object_store.h"

namespace weft::platform {

// Columns under each other, as `kubectl get` prints them.
std::string PrintTable(const ResourceType& type, const std::vector<ObjectPtr>& objects,
                       absl::Time now, bool is_wide, bool with_namespace, bool with_head = true);
// "name", "yaml", "json": one object as it is, several as a List. InvalidArgument for other forms.
StatusOr<std::string> PrintObjects(const std::string& form, const ResourceType& type,
                                   const std::vector<ObjectPtr>& objects, bool is_single);
// What it holds, indented under headings, then its events, oldest first.
std::string DescribeObject(const Json& object, const std::vector<ObjectPtr>& events,
                           absl::Time now);

}  // namespace weft::platform
