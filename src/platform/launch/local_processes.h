// SPDX-License-Identifier: Apache-2.0
// The tasks of a job as real processes of this machine.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/posix_file.h"
#include "base/subprocess.h"
#include "platform/launch/line_filter.h"
#include "platform/launch/task_processes.h"

namespace weft::platform {

struct OutputOptions {
  std::string log_folder;  // also write each task's lines to <folder>/<task>.log; empty: do not
  bool use_color = false;
  absl::Duration progress_period = absl::Seconds(1);  // between lines of a progress bar
  // Our stdout is a terminal: the latest line of a progress bar stays at its foot and is
  // overwritten.
  bool is_live = false;
};

// While it lives SIGINT, SIGTERM and SIGHUP of the calling thread come out of Wait instead of
// ending us: make it before other threads. Lines go to our stdout and stderr as "[worker-0] text".
// The destructor kills what still runs. Not thread-safe; borrows the job and the guard.
class LocalProcesses : public TaskProcesses {
 public:
  static StatusOr<std::unique_ptr<LocalProcesses>> Create(const LocalJob* job,
                                                          const OutputOptions& output,
                                                          ProcessGuard* guard);
  ~LocalProcesses() override;

  Status Start(size_t task) override;
  void Signal(size_t task, int signal) override;
  std::vector<TaskEvent> Wait(absl::Duration timeout) override;
  std::vector<std::string> LastLines(size_t task) const override;

  // A line of the launcher itself, to stderr.
  void Say(const std::string& line);

 private:
  struct Stream {
    OwnedFd pipe;
    int target = 1;  // our descriptor that its lines go to
    std::unique_ptr<LineFilter> filter;
  };
  struct Task {
    std::unique_ptr<Subprocess> process;
    Stream out;
    Stream err;
    std::deque<std::string> last_lines;
    bool last_is_progress = false;
    std::unique_ptr<WritableFile> log;
  };

  LocalProcesses(const LocalJob* job, const OutputOptions& output, ProcessGuard* guard);
  // False: the stream has ended or has nothing more for now.
  bool ReadSome(size_t task, Stream* stream);
  void FinishOutput(size_t task);
  void Print(size_t task, int target, const std::vector<std::string>& lines);
  // Above the live line, if there is one.
  void Write(int target, const std::string& text);
  void Keep(Task* task, const std::string& line, bool is_progress);
  std::string LiveLine(size_t task, absl::string_view line) const;
  std::string Prefix(const std::string& name, size_t color, int target) const;
  void ReadSignals(std::vector<TaskEvent>* events);
  void ReapOrphans();
  int PollTimeoutMs(absl::Duration timeout) const;

  const LocalJob* const job_;
  const OutputOptions output_;
  ProcessGuard* const guard_;
  RealClock clock_;
  RealFileSystem files_;
  OwnedFd signals_;
  std::vector<Task> tasks_;
  std::string live_;      // at the foot of the terminal, without a line end; may be empty
  size_t live_task_ = 0;  // whose it is
};

}  // namespace weft::platform
