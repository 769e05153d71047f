// SPDX-License-Identifier: Apache-2.0
// What `weft exec` tells of its processes: in a file, on a page, and at the end in the container's
// termination message.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

// "step 120/1000  loss 0.25  567 examples/s": {"step": 120, "steps": 1000, "loss": 0.25}, as weft's
// training prints it and other programs may; the name of a process in brackets may stand before it.
// Nothing when the line is none.
std::optional<Json> ParseProgressLine(absl::string_view line);

// Thread-safe.
class ProcessReport {
 public:
  // `file` is replaced at each change; empty: none is written.
  explicit ProcessReport(std::string file) : file_(std::move(file)) {}

  // A line that a process printed.
  void Hear(const std::string& process, absl::string_view line);
  // {"state": "Running", "processes": [{"name": ..., "state": ..., ...}]}; what Hear has learnt is
  // added. Writes when the state has changed, else at most once a second. `now` is monotonic.
  void Show(Json state, absl::Duration now);

  std::string Text() const;
  bool IsHealthy() const;  // every process runs, or has come to a good end
  // At most 4096 bytes, what a kubelet takes: the state without what is long.
  std::string TerminationMessage() const;

 private:
  Json Whole() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string file_;
  mutable absl::Mutex mutex_;
  Json state_ ABSL_GUARDED_BY(mutex_);
  Json progress_ ABSL_GUARDED_BY(mutex_);   // by process
  Json last_line_ ABSL_GUARDED_BY(mutex_);  // by process
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration written_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool has_complained_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::platform
