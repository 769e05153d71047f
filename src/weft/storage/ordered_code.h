// SPDX-License-Identifier: Apache-2.0
// Keys of tensor slices in a checkpoint's index: names and numbers whose bytes sort as they do.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace weft::storage {

void AppendOrderedNumber(uint64_t value, std::string* out);
void AppendOrderedSigned(int64_t value, std::string* out);
void AppendOrderedString(absl::string_view text, std::string* out);

}  // namespace weft::storage
