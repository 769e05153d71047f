// SPDX-License-Identifier: Apache-2.0
// The probes of a container: whether it has started, lives, and is ready.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/status.h"
#include "base/subprocess.h"
#include "base/threads.h"
#include "net/json.h"
#include "platform/pods/container_environment.h"

namespace weft::platform {

// Where a probe goes that names no host.
inline constexpr char kLoopbackHost[] = "127.0.0.1";

struct ProbeSpec {
  std::vector<std::string> argv;  // of an exec probe, else empty
  std::string host = kLoopbackHost;
  int port = 0;
  std::string path;  // of an httpGet probe; empty: a connection is enough
  bool is_tls = false;
  std::vector<std::pair<std::string, std::string>> headers;
  bool is_grpc = false;
  std::string service;  // of a gRPC probe; empty: the whole server
  absl::Duration initial_delay;
  absl::Duration period = absl::Seconds(10);
  absl::Duration timeout = absl::Seconds(1);
  int64_t success_threshold = 1;
  int64_t failure_threshold = 3;
  std::shared_ptr<std::atomic<bool>> is_unwanted;  // ends a program early; may be null
};

// `name` is "startupProbe", "livenessProbe" or "readinessProbe". Nothing when the container has
// none, or one of a kind that is not known here.
std::optional<ProbeSpec> ReadProbe(const Json& container, const char* name);

// Of a probe, or of a hook: what `action` says is done.
std::optional<ProbeSpec> ReadAction(const Json& container, const Json& action);

// One try, which blocks at most its timeout: an exit code of 0, an answer from 200 to 399, a
// connection, a gRPC server that says that it serves.
Status TryProbe(const ProbeSpec& spec, const ContainerCommand& command, ProcessGuard* guard);

// The tries of one probe: counts them against its thresholds. Not thread-safe; tries run on the
// pool, which it borrows.
class Probe {
 public:
  Probe(ProbeSpec spec, absl::Time started, bool is_good_at_first);

  // Takes what has come, begins the next try when it is due.
  void Step(const ContainerCommand& command, ProcessGuard* guard, ThreadPool* pool, absl::Time now);
  bool is_good() const { return is_good_; }
  // The last failureThreshold tries have failed, and why.
  bool has_failed() const { return failures_ >= spec_.failure_threshold; }
  const std::string& why() const { return why_; }
  absl::Time due() const { return due_; }

 private:
  struct Result {
    absl::Mutex mutex;
    std::optional<Status> status ABSL_GUARDED_BY(mutex);
  };
  const ProbeSpec spec_;
  absl::Time due_;
  std::shared_ptr<Result> running_;
  int64_t successes_ = 0;
  int64_t failures_ = 0;
  bool is_good_;
  std::string why_;
};

}  // namespace weft::platform
