// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/local_processes.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"

namespace weft::platform {
namespace {

constexpr size_t kLastLines = 20;
constexpr absl::string_view kClearLine = "\r\x1b[K";
// Cyan, yellow, green, magenta, blue: red is for errors.
constexpr int kColors[] = {36, 33, 32, 35, 34};

sigset_t OurSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

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

LocalProcesses::LocalProcesses(const LocalJob* job, const OutputOptions& output,
                               ProcessGuard* guard)
    : job_(job), output_(output), guard_(guard), tasks_(job->tasks.size()) {}

StatusOr<std::unique_ptr<LocalProcesses>> LocalProcesses::Create(const LocalJob* job,
                                                                 const OutputOptions& output,
                                                                 ProcessGuard* guard) {
  std::unique_ptr<LocalProcesses> processes(new LocalProcesses(job, output, guard));
  if (!output.log_folder.empty()) {
    WEFT_RETURN_IF_ERROR(processes->files_.MakeDirectories(output.log_folder));
    for (size_t i = 0; i < job->tasks.size(); ++i) {
      const std::string path = JoinPath(output.log_folder, job->tasks[i].name + ".log");
      WEFT_ASSIGN_OR_RETURN(processes->tasks_[i].log,
                            processes->files_.OpenWrite(path, WriteMode::kTruncate));
    }
  }
  const sigset_t set = OurSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  processes->signals_.Reset(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!processes->signals_.is_open()) return ErrnoStatus(errno, "make", "a signal descriptor");
  return processes;
}

LocalProcesses::~LocalProcesses() {
  tasks_.clear();
  const sigset_t set = OurSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Status LocalProcesses::Start(size_t index) {
  const LocalTask& plan = job_->tasks[index];
  SpawnOptions options;
  options.argv = plan.argv;
  options.environment = plan.environment;
  options.working_directory = plan.working_directory;
  options.capture_output = true;
  options.guard = guard_;
  Task& task = tasks_[index];
  WEFT_ASSIGN_OR_RETURN(task.process, Subprocess::Spawn(options));
  const auto open = [&](OwnedFd& pipe, int target) {
    return Stream{std::move(pipe), target,
                  std::make_unique<LineFilter>(output_.progress_period,
                                               output_.is_live && target == STDOUT_FILENO)};
  };
  task.out = open(task.process->stdout_pipe(), STDOUT_FILENO);
  task.err = open(task.process->stderr_pipe(), STDERR_FILENO);
  return absl::OkStatus();
}

void LocalProcesses::Signal(size_t task, int signal) {
  if (tasks_[task].process != nullptr) tasks_[task].process->Signal(signal);
}

int LocalProcesses::PollTimeoutMs(absl::Duration timeout) const {
  const absl::Duration now = clock_.Monotonic();
  for (const Task& task : tasks_) {
    for (const Stream* stream : {&task.out, &task.err}) {
      if (stream->filter != nullptr) timeout = std::min(timeout, stream->filter->due() - now);
    }
  }
  timeout = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(timeout) +
                          (timeout > absl::ZeroDuration() ? 1 : 0));
}

std::vector<TaskEvent> LocalProcesses::Wait(absl::Duration timeout) {
  std::vector<pollfd> poll_fds = {{signals_.get(), POLLIN, 0}};
  for (const Task& task : tasks_) {
    // Descriptors below zero are skipped, which keeps three to a task.
    poll_fds.push_back({task.process == nullptr ? -1 : task.process->pidfd(), POLLIN, 0});
    poll_fds.push_back({task.out.pipe.get(), POLLIN, 0});
    poll_fds.push_back({task.err.pipe.get(), POLLIN, 0});
  }
  ::poll(poll_fds.data(), poll_fds.size(), PollTimeoutMs(timeout));
  std::vector<TaskEvent> events;
  if (poll_fds[0].revents != 0) ReadSignals(&events);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    if (poll_fds[3 * i + 2].revents != 0) ReadSome(i, &task.out);
    if (poll_fds[3 * i + 3].revents != 0) ReadSome(i, &task.err);
    for (Stream* stream : {&task.out, &task.err}) {
      if (stream->filter == nullptr) continue;
      std::vector<std::string> lines;
      stream->filter->Tick(clock_.Monotonic(), &lines);
      Print(i, stream->target, lines);
    }
    if (poll_fds[3 * i + 1].revents == 0) continue;
    const std::optional<ExitState> exit = task.process->TryWait();
    if (!exit.has_value()) continue;
    FinishOutput(i);
    task.process = nullptr;
    events.push_back({TaskEvent::Kind::kExited, i, *exit, 0});
  }
  ReapOrphans();
  return events;
}

void LocalProcesses::ReadSignals(std::vector<TaskEvent>* events) {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    events->push_back({TaskEvent::Kind::kInterrupt, 0, {}, static_cast<int>(info.ssi_signo)});
  }
}

// What tasks left behind comes to us (AdoptOrphans); a zombie at a time is looked at and left if it
// is a task.
void LocalProcesses::ReapOrphans() {
  while (true) {
    siginfo_t info = {};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const bool is_ours = std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& task) {
      return task.process != nullptr && task.process->pid() == info.si_pid;
    });
    if (is_ours || info.si_pid == guard_->pid()) return;
    ::waitpid(info.si_pid, nullptr, 0);
  }
}

bool LocalProcesses::ReadSome(size_t task, Stream* stream) {
  char buffer[16 << 10];
  const ssize_t count = ::read(stream->pipe.get(), buffer, sizeof(buffer));
  if (count < 0 && errno == EINTR) return true;
  if (count == 0) stream->pipe.Reset();
  if (count <= 0) return false;
  std::vector<std::string> lines;
  stream->filter->Feed(absl::string_view(buffer, static_cast<size_t>(count)), clock_.Monotonic(),
                       &lines);
  Print(task, stream->target, lines);
  return true;
}

void LocalProcesses::FinishOutput(size_t task) {
  for (Stream* stream : {&tasks_[task].out, &tasks_[task].err}) {
    while (stream->pipe.is_open() && ReadSome(task, stream)) {
    }
    std::vector<std::string> lines;
    stream->filter->Finish(&lines);
    Print(task, stream->target, lines);
    stream->pipe.Reset();
    stream->filter = nullptr;
  }
  tasks_[task].last_is_progress = false;
  if (live_.empty() || live_task_ != task) return;
  live_.clear();
  WriteAll(STDOUT_FILENO, "\n");
}

std::string LocalProcesses::Prefix(const std::string& name, size_t color, int target) const {
  if (!output_.use_color || ::isatty(target) != 1) return absl::StrCat("[", name, "] ");
  return absl::StrCat("\x1b[", kColors[color % std::size(kColors)], "m[", name, "]\x1b[0m ");
}

void LocalProcesses::Write(int target, const std::string& text) {
  if (text.empty()) return;
  if (!live_.empty()) WriteAll(STDOUT_FILENO, kClearLine);
  WriteAll(target, text);
  WriteAll(STDOUT_FILENO, live_);
}

// A line that wraps could not be overwritten.
std::string LocalProcesses::LiveLine(size_t task, absl::string_view line) const {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80;
  const std::string& name = job_->tasks[task].name;
  const size_t taken = name.size() + 4;
  size_t room = size.ws_col > taken ? size.ws_col - taken : 0;
  while (room < line.size() && room > 0 && (static_cast<uint8_t>(line[room]) & 0xC0) == 0x80)
    --room;
  return absl::StrCat(Prefix(name, task, STDOUT_FILENO), line.substr(0, room));
}

void LocalProcesses::Keep(Task* task, const std::string& line, bool is_progress) {
  if (task->last_is_progress) task->last_lines.pop_back();
  task->last_is_progress = is_progress;
  task->last_lines.push_back(line);
  if (task->last_lines.size() > kLastLines) task->last_lines.pop_front();
}

void LocalProcesses::Print(size_t index, int target, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  Task& task = tasks_[index];
  const std::string prefix = Prefix(job_->tasks[index].name, index, target);
  std::string text;
  std::string log;
  std::string live = live_;
  for (const std::string& line : lines) {
    if (absl::EndsWith(line, "\r")) {
      const std::string progress = line.substr(0, line.size() - 1);
      Keep(&task, progress, true);
      live = LiveLine(index, progress);
      live_task_ = index;
      continue;
    }
    // What comes after a progress line takes its place.
    if (live_task_ == index && target == STDOUT_FILENO) live.clear();
    absl::StrAppend(&text, prefix, line, "\n");
    if (task.log != nullptr) absl::StrAppend(&log, line, "\n");
    Keep(&task, line, false);
  }
  if (!live_.empty()) WriteAll(STDOUT_FILENO, kClearLine);
  WriteAll(target, text);
  live_ = std::move(live);
  WriteAll(STDOUT_FILENO, live_);
  if (task.log == nullptr) return;
  const Status status = task.log->Append(log);
  if (!status.ok()) {
    task.log = nullptr;
    Say(absl::StrCat("the log of ", job_->tasks[index].name, " ends here: ", status.message()));
  }
}

std::vector<std::string> LocalProcesses::LastLines(size_t task) const {
  const std::deque<std::string>& lines = tasks_[task].last_lines;
  return {lines.begin(), lines.end()};
}

void LocalProcesses::Say(const std::string& line) {
  Write(STDERR_FILENO, absl::StrCat("[weft] ", line, "\n"));
}

}  // namespace weft::platform
