// SPDX-License-Identifier: Apache-2.0
// What the tasks of one job show each other and demand of each other: one key with one certificate
// that they share, in a folder as a Kubernetes secret of type kubernetes.io/tls is mounted.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"

#include "base/files.h"
#include "base/status.h"
#include "net/tls.h"

namespace weft {

// The names of its files.
inline constexpr char kJobAuthorityFile[] = "ca.crt";
inline constexpr char kJobCertificateFile[] = "tls.crt";
inline constexpr char kJobKeyFile[] = "tls.key";

struct JobIdentity {
  std::string authority_pem;
  std::string certificate_pem;
  std::string key_pem;  // a secret
  std::string name;     // whose it is: the certificate's first DNS name
};

// A fresh authority signs one certificate for `name`, a DNS name, and its key is forgotten: nobody
// can make a second one.
StatusOr<JobIdentity> MakeJobIdentity(const std::string& name, absl::Time now,
                                      absl::Duration validity);
// InvalidArgument or NotFound names the file and what is wrong with it: that it is not there, no
// certificate, not signed by the authority, expired, without a name, another's key.
StatusOr<JobIdentity> ReadJobIdentity(FileSystem& files, const std::string& folder, absl::Time now);
// Of the folder that WEFT_TASK_TLS names; none where it is not set.
StatusOr<std::optional<JobIdentity>> JobIdentityFromEnvironment();
// Into a folder that is made for its owner alone. AlreadyExists if it holds one.
Status WriteJobIdentity(const JobIdentity& identity, const std::string& folder);

// Both sides of a connection between two tasks.
struct JobTls {
  std::shared_ptr<TlsConfig> server;  // lets in who has the same identity
  std::shared_ptr<TlsConfig> client;  // calls nobody else
};
StatusOr<JobTls> MakeJobTls(const JobIdentity& identity);

}  // namespace weft
