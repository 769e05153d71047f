// SPDX-License-Identifier: Apache-2.0
// How to reach a cluster, as kubectl's configuration says it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/status.h"
#include "net/json.h"
#include "net/tls.h"

namespace weft::platform {

// A program that prints an ExecCredential.
struct ExecPlugin {
  std::string api_version;
  std::vector<std::string> argv;  // empty: none
  std::vector<std::pair<std::string, std::string>> environment;
};

struct ClusterAccess {
  std::string server;  // "https://host:port"
  TlsClientOptions tls;
  std::string namespace_name = "default";
  bool is_in_cluster = false;  // the pod's own account shows the way
  std::string token;
  std::string token_file;  // read again and again: it is rotated
  std::string basic;       // "user:password"
  ExecPlugin exec;
  std::string origin;  // "user 'me' of /home/me/.kube/config", for messages
  std::string check;   // the command that says whether it is accepted; may be empty
};

// The context named `context` (empty: the current one) of the file. Data in the file wins over
// files that it names; relative names start at its folder. InvalidArgument names what is missing or
// wrong and where.
StatusOr<ClusterAccess> ReadKubeconfig(const std::string& path, const std::string& context = "");
// Of several files, as kubectl merges them: of entries of one name the first counts, and so does
// the first current context. At least one.
StatusOr<ClusterAccess> ReadKubeconfigs(const std::vector<std::string>& paths,
                                        const std::string& context = "");
// `weft up` calls its context so, in a file that it writes here unless it is told.
inline constexpr char kLocalContext[] = "weft";
std::string LocalKubeconfig();
// `path` when it is not empty, else those files of $KUBECONFIG that are there, else the pod's own
// account inside a cluster, else ~/.kube/config, else that of `weft up` on this machine (before
// ~/.kube/config when `context` is kLocalContext). NotFound says where was looked.
StatusOr<ClusterAccess> FindClusterAccess(const std::string& path, const std::string& context = "");

// What goes into the Authorization header, fresh. Thread-safe; borrows the clock.
class Credentials {
 public:
  Credentials(ClusterAccess access, const Clock* clock)
      : access_(std::move(access)), clock_(clock) {}
  // Empty when a client certificate does it. Unauthenticated when the plug-in fails, with what it
  // said.
  StatusOr<std::string> AuthorizationHeader();
  // The server refused: what is kept is not used again.
  void Forget();
  // What to tell people then: whose credentials these are, whether they have ended, and what to
  // type next. Nothing of what is secret.
  std::string DescribeRefusal() const;

 private:
  StatusOr<std::string> Token() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::string> TokenOfPlugin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::string> TokenOfFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ClusterAccess access_;
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Time expires_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace weft::platform
