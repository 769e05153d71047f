// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/task_output.h"

#include <cerrno>
#include <iterator>
#include <utility>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "net/utf8.h"

namespace weft::platform {
namespace {

constexpr size_t kLastLines = 200;
constexpr absl::string_view kClearLine = "\r\x1b[K";
// Cyan, yellow, green, magenta, blue: red is for errors.
constexpr int kColors[] = {36, 33, 32, 35, 34};

void WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      // Whoever gave us the terminal may have left it non-blocking.
      pollfd poll_fd = {fd, POLLOUT, 0};
      ::poll(&poll_fd, 1, 1000);
      continue;
    }
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

StatusOr<std::unique_ptr<TaskOutput>> TaskOutput::Create(Options options) {
  std::unique_ptr<TaskOutput> output(new TaskOutput(std::move(options)));
  const Options& kept = output->options_;
  absl::MutexLock lock(&output->mutex_);
  if (!kept.log_folder.empty())
    WEFT_RETURN_IF_ERROR(output->files_.MakeDirectories(kept.log_folder));
  for (const std::string& name : kept.tasks) {
    Task& task = output->tasks_[name];
    task.color = output->tasks_.size() - 1;
    if (kept.log_folder.empty()) continue;
    const std::string path = JoinPath(kept.log_folder, name + ".log");
    WEFT_ASSIGN_OR_RETURN(task.log, output->files_.OpenWrite(path, WriteMode::kTruncate));
  }
  return output;
}

std::string TaskOutput::Prefix(const std::string& name, size_t color, int descriptor) const {
  if (!options_.has_names) return "";
  if (!options_.use_color || ::isatty(descriptor) != 1) return absl::StrCat("[", name, "] ");
  return absl::StrCat("\x1b[", kColors[color % std::size(kColors)], "m[", name, "]\x1b[0m ");
}

void TaskOutput::Write(int descriptor, const std::string& text) {
  if (text.empty()) return;
  if (!live_.empty()) WriteAll(STDOUT_FILENO, kClearLine);
  WriteAll(descriptor, text);
  WriteAll(STDOUT_FILENO, live_);
}

// A line that wraps could not be overwritten.
std::string TaskOutput::LiveLine(const std::string& name, size_t color,
                                 absl::string_view line) const {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80;
  const size_t taken = name.size() + 4;
  const size_t room = size.ws_col > taken ? size.ws_col - taken : 0;
  return absl::StrCat(Prefix(name, color, STDOUT_FILENO), CutUtf8(line, room));
}

void TaskOutput::Keep(Task* task, const std::string& line, bool is_progress) {
  if (task->last_is_progress) task->last_lines.pop_back();
  task->last_is_progress = is_progress;
  task->last_lines.push_back(line);
  if (task->last_lines.size() > kLastLines) task->last_lines.pop_front();
}

void TaskOutput::Print(const std::string& name, int descriptor,
                       const std::vector<std::string>& lines) {
  absl::MutexLock lock(&mutex_);
  const auto found = tasks_.find(name);
  if (lines.empty() || found == tasks_.end()) return;
  Task& task = found->second;
  const std::string prefix = Prefix(name, task.color, descriptor);
  std::string text;
  std::string log;
  std::string live = live_;
  for (const std::string& line : lines) {
    if (absl::EndsWith(line, "\r")) {
      const std::string progress = line.substr(0, line.size() - 1);
      Keep(&task, progress, true);
      live = LiveLine(name, task.color, progress);
      live_task_ = name;
      continue;
    }
    // What comes after a progress line takes its place.
    if (live_task_ == name && descriptor == STDOUT_FILENO) live.clear();
    absl::StrAppend(&text, prefix, line, "\n");
    if (task.log != nullptr) absl::StrAppend(&log, line, "\n");
    Keep(&task, line, false);
  }
  if (!live_.empty()) WriteAll(STDOUT_FILENO, kClearLine);
  WriteAll(descriptor, text);
  live_ = std::move(live);
  WriteAll(STDOUT_FILENO, live_);
  if (task.log == nullptr) return;
  const Status status = task.log->Append(log);
  if (status.ok()) return;
  task.log = nullptr;
  Write(STDERR_FILENO,
        absl::StrCat("[weft] the log of ", name, " ends here: ", status.message(), "\n"));
}

void TaskOutput::Finish(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = tasks_.find(name);
  if (found == tasks_.end()) return;
  found->second.last_is_progress = false;
  if (live_.empty() || live_task_ != name) return;
  live_.clear();
  WriteAll(STDOUT_FILENO, "\n");
}

std::vector<std::string> TaskOutput::LastLines(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = tasks_.find(name);
  if (found == tasks_.end()) return {};
  return {found->second.last_lines.begin(), found->second.last_lines.end()};
}

void TaskOutput::Say(const std::string& line) {
  absl::MutexLock lock(&mutex_);
  Write(STDERR_FILENO, absl::StrCat("[weft] ", line, "\n"));
}

}  // namespace weft::platform
