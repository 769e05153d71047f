// SPDX-License-Identifier: Apache-2.0
// Hashes of bytes that programs keep in their models: each gives what it gave when the model was
// trained, here as in TensorFlow.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"

namespace weft::ops {

// FarmHash's 64-bit fingerprint.
uint64_t Fingerprint64(absl::string_view bytes);
// FarmHash's 128-bit fingerprint: the low half, and the high one.
std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view bytes);
// Of two fingerprints; the order counts.
uint64_t FingerprintCat64(uint64_t first, uint64_t second);
// MurmurHash64A with the seed that TensorFlow gives it.
uint64_t MurmurHash64(absl::string_view bytes);
// SipHash-2-4: without the key nobody can look for strings that collide.
uint64_t SipHash64(const std::array<uint64_t, 2>& key, absl::string_view bytes);

}  // namespace weft::ops
