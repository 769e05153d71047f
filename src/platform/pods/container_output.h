// SPDX-License-Identifier: Apache-2.0
// What a container prints: read in lines, told to a listener, kept in its log.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/files.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "platform/launch/line_filter.h"
#include "platform/pods/log_file.h"

namespace weft::platform {

// Gets what a container prints to a descriptor (1 or 2), in lines without their ends; 0 without
// lines: it has ended.
using OutputListener = std::function<void(const std::string& container, int descriptor,
                                          const std::vector<std::string>& lines)>;

struct ContainerOutput {
  std::string log_folder;  // <folder>/<container>/<restart>.log; empty: no logs are kept
  absl::Duration progress_period = absl::Seconds(1);  // between lines of a progress bar
  // The listener gets lines that are to be overwritten with their carriage return; logs do without
  // them.
  bool keeps_returns = false;
  OutputListener listener;  // may be null
};

// Of one container, run after run. Not thread-safe.
class OutputReader {
 public:
  OutputReader(std::string container, ContainerOutput output)
      : container_(std::move(container)), output_(std::move(output)) {}

  // From now until the run ends, what it prints goes there too, byte by byte; a reader who falls
  // behind by more than a socket holds is let go. Both are sockets.
  void AddListener(OwnedFd out, OwnedFd err);

  // The log of a run, before it begins.
  void OpenLog(int64_t restart);
  // A run has begun, with these pipes. `keeps_tail`: the end of what it prints is wanted.
  void Begin(OwnedFd out, OwnedFd err, bool keeps_tail);
  // A line of ours for the log.
  void Say(const std::string& line, absl::Time now) { Log({line}, now); }
  // Takes what is there.
  void Read(absl::Duration monotonic_now, absl::Time now);
  // The run has ended: takes the rest, and closes all.
  void Finish(absl::Duration monotonic_now, absl::Time now);
  void CloseLog() { log_ = nullptr; }

  int stdout_fd() const { return out_.pipe.get(); }
  int stderr_fd() const { return err_.pipe.get(); }
  // When a line that is held back is due.
  absl::Duration due() const;
  const std::string& tail() const { return tail_; }

 private:
  struct Stream {
    OwnedFd pipe;
    std::unique_ptr<LineFilter> filter;
    int descriptor = 1;
    std::vector<OwnedFd> listeners;
  };
  static void Tell(Stream* stream, absl::string_view bytes);
  // False: it has ended or has nothing more for now.
  bool ReadSome(Stream* stream, absl::Duration monotonic_now, absl::Time now);
  void Hear(const Stream& stream, const std::vector<std::string>& lines, absl::Time now);
  void Log(const std::vector<std::string>& lines, absl::Time now);

  const std::string container_;
  const ContainerOutput output_;
  Stream out_;
  Stream err_;
  std::unique_ptr<LogFile> log_;
  bool keeps_tail_ = false;
  std::string tail_;
};

// Where its name becomes that of a file: objects may come from whoever writes to the store.
Status CheckContainerName(const std::string& name);
// <folder>/<container>/<restart>.log; InvalidArgument for a name that would lead elsewhere.
StatusOr<std::string> ContainerLogPath(const std::string& pod_folder, const std::string& container,
                                       int64_t restart);

}  // namespace weft::platform
