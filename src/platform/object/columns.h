// SPDX-License-Identifier: Apache-2.0
// What stands in the tables of `kubectl get`.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/fields.h"
#include "platform/object/resource_type.h"

namespace weft::platform {

// All columns of the type, the name among them, and one cell for each.
std::vector<PrinterColumn> ColumnsOf(const ResourceType& type);
std::vector<Json> CellsOf(const ResourceType& type, const Json& object, absl::Time now);

// "45s", "3m10s", "7h", "12d": an age as kubectl words it.
std::string HumanDuration(absl::Duration duration);
// The value at ".a.b[0].c" or ".list[-1:].d", null when there is none.
const Json* FindByJsonPath(const Json& object, absl::string_view path);

// For the cells of kinds. The time since the one at `path`; "<unknown>" when there is none.
std::string AgeOf(const Json& object, FieldPath path, absl::Time now);
Json AgeCell(const Json& object, absl::Time now);
std::string OrNone(std::string text);  // "<none>" for nothing
// "a,b,c + 2 more...", "<none>" for nothing.
std::string FirstOf(const std::vector<std::string>& texts);
size_t CountOf(const Json& object, FieldPath path);
// "a=b,c=d", "<none>" when there are none.
std::string LabelsText(const Json* labels);
Json NoneCell(const Json& object, absl::Time now);

}  // namespace weft::platform
