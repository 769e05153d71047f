// SPDX-License-Identifier: Apache-2.0
// Digests and signatures that requests to other services carry.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft {

// 32 bytes.
std::string Sha256(absl::string_view data);
std::string HmacSha256(absl::string_view key, absl::string_view data);
// RSASSA-PKCS1-v1_5 over SHA-256. InvalidArgument where `key_pem` is no RSA key.
StatusOr<std::string> SignRs256(const std::string& key_pem, absl::string_view data);

}  // namespace weft
