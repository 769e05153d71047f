// SPDX-License-Identifier: Apache-2.0
// How a part of a step ended, as bytes.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/worker/worker.h"

namespace weft::worker {

// Everything of a report but its results.
std::string EncodeStepEnd(const step::PartReport& report);
StatusOr<step::PartReport> ParseStepEnd(absl::string_view bytes);

}  // namespace weft::worker
