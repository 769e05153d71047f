// SPDX-License-Identifier: Apache-2.0
// Queries over JSON as Katib's conditions use them: the part of GJSON's language with names,
// numbers, `#`, `#(...)`, `#(...)#` and pipes.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// `status.conditions.#(type=="Complete")#|#(status=="True")#`: what it finds, none where there is
// nothing. A mapping in the place of a list counts as a list of it alone. InvalidArgument where the
// query makes no sense.
StatusOr<std::optional<Json>> QueryJson(const Json& value, absl::string_view query);

// As Katib takes an answer for a yes: a mapping, or a list with something in it. The first item is
// what its reason and message are read from.
std::optional<Json> FirstFound(const std::optional<Json>& found);

}  // namespace weft::platform
