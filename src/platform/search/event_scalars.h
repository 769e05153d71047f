// SPDX-License-Identifier: Apache-2.0
// Scalars in TensorFlow's event files: records of length, checksum, Event, checksum.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::platform {

struct EventScalar {
  std::string tag;
  int64_t step = 0;
  double value = 0;
};

// In their order; what is torn or damaged ends the reading. Checksums are not looked at.
std::vector<EventScalar> ReadEventScalars(absl::string_view file);

}  // namespace weft::platform
