// SPDX-License-Identifier: Apache-2.0
// Whole texts through zlib.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::storage {

// With zlib's header and sum, or without, as archives have it.
enum class DeflateForm { kZlib, kRaw };

// What was compressed, which must be no more than `most` bytes. DataLoss for damaged bytes.
StatusOr<std::string> Inflate(absl::string_view compressed, size_t most, DeflateForm form);
// CRC-32 as archives have it.
uint32_t Crc32(absl::string_view bytes);

}  // namespace weft::storage
