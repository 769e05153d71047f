// SPDX-License-Identifier: Apache-2.0
// The children that a Subprocess holds, as far as others of this room need to know them.
#pragma once

#include <optional>

#include <sys/types.h>

#include "absl/strings/string_view.h"

namespace weft {

inline constexpr char kMarksVariable[] = "WEFT_WITHIN";

// Whether it was started with this mark, without a look at its environment; nothing of a process
// that no Subprocess holds. Thread-safe.
std::optional<bool> SubprocessHasMark(pid_t pid, absl::string_view mark);

}  // namespace weft
