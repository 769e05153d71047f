// SPDX-License-Identifier: Apache-2.0
// Keys and X.509 certificates of our own making, for ports that have no other authority.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/status.h"

namespace weft {

// Both in PEM form. The key is a secret.
struct Identity {
  std::string certificate_pem;
  std::string key_pem;
};

struct CertificateRequest {
  std::string common_name;
  std::vector<std::string> dns_names;
  std::vector<std::string> addresses;  // "127.0.0.1", "::1"
  absl::Duration validity = absl::Hours(24 * 365);
  bool for_clients_too = false;  // its owner may also show it to the servers that it calls
};

// A P-256 key with a certificate that signs itself and may sign others.
StatusOr<Identity> MakeAuthority(const std::string& common_name, absl::Time now,
                                 absl::Duration validity);
// A server's certificate, signed by `authority`.
StatusOr<Identity> IssueServerCertificate(const Identity& authority,
                                          const CertificateRequest& request, absl::Time now);
// When the first certificate of the text ends.
StatusOr<absl::Time> CertificateEnd(const std::string& certificate_pem);
// Random bytes in hex, for tokens.
std::string RandomHex(int bytes);
// Who knows `secret` can make this of `text`, and nobody else: HMAC-SHA256 in hex.
std::string SealOf(absl::string_view secret, absl::string_view text);
// In a time that does not tell where they differ.
bool SameSecret(absl::string_view a, absl::string_view b);

}  // namespace weft
