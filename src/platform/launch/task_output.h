// SPDX-License-Identifier: Apache-2.0
// What the tasks of a job print, on our stdout and stderr, each line with its task's name.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "base/status.h"

namespace weft::platform {

// Thread-safe. Lines go out as "[worker-0] text".
class TaskOutput {
 public:
  struct Options {
    std::vector<std::string> tasks;  // in the order of their colours
    bool has_names = true;           // before each line
    std::string log_folder;  // also write each task's lines to <folder>/<task>.log; empty: do not
    bool use_color = false;
  };
  // Makes the log files.
  static StatusOr<std::unique_ptr<TaskOutput>> Create(Options options);

  // To `descriptor`, 1 or 2. A line with a carriage return at its end stays at the foot of the
  // terminal until what comes after it takes its place.
  void Print(const std::string& task, int descriptor, const std::vector<std::string>& lines);
  // No more will come: the line at the foot stays if it is this task's.
  void Finish(const std::string& task);
  // The last lines that the task printed, oldest first: more than fit on a screen.
  std::vector<std::string> LastLines(const std::string& task) const;
  // A line of our own, to stderr.
  void Say(const std::string& line);

 private:
  struct Task {
    size_t color = 0;
    std::deque<std::string> last_lines;
    bool last_is_progress = false;
    std::unique_ptr<WritableFile> log;
  };
  explicit TaskOutput(Options options) : options_(std::move(options)) {}
  // Above the live line, if there is one.
  void Write(int descriptor, const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Keep(Task* task, const std::string& line, bool is_progress);
  std::string LiveLine(const std::string& name, size_t color, absl::string_view line) const;
  std::string Prefix(const std::string& name, size_t color, int descriptor) const;

  const Options options_;
  RealFileSystem files_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::string live_
      ABSL_GUARDED_BY(mutex_);  // at the foot of the terminal, without a line end; may be empty
  std::string live_task_ ABSL_GUARDED_BY(mutex_);  // whose it is
};

}  // namespace weft::platform
