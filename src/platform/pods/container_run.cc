// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_run.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"

#include "net/utf8.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

// A shell's codes for a program that is not there, or that may not run.
constexpr int kCannotStart = 127;
constexpr int kMayNotRun = 126;
// As a kubelet takes it.
constexpr uint64_t kMostMessage = 4096;
constexpr int kAttachedBytes = 1 << 20;  // that somebody may fall behind

}  // namespace

void ContainerRun::EndProcesses() {
  if (process_ == nullptr) return;
  process_ = nullptr;
  KillMarked(mark_, /*only_children=*/true);
  command_ = ContainerCommand();  // nothing holds its mounts any more
}

void ContainerRun::CountStart() {
  if (state_ == State::kTerminated) last_ = DescribeTermination();
  if (has_run_) ++restart_count_;
  has_run_ = true;
}

void ContainerRun::Start(const ContainerCommand& command, ProcessGuard* guard, absl::Time now,
                         std::unique_ptr<Confinement> confinement) {
  CountStart();
  output_.OpenLog(restart_count_);
  SpawnOptions options;
  options.argv = command.argv;
  options.environment = command.environment;
  mark_ = MakeMark();
  AddMark(&options.environment, mark_);
  options.working_directory = command.working_directory;
  options.mounts = command.mounts.get();
  options.owner = command.owner;
  message_file_ = command.message_file;
  has_message_in_log_ = command.has_message_in_log;
  options.capture_output = true;
  options.takes_input = command.takes_input;
  options.has_terminal = command.has_terminal;
  options.guard = guard;
  if (confinement != nullptr) {
    options.processors = confinement->processors();
    options.control_group = confinement->control_group();
  }
  StatusOr<std::unique_ptr<Subprocess>> process = Subprocess::Spawn(options);
  started_ = now;
  if (!process.ok()) {
    output_.Say(std::string(process.status().message()), now);
    output_.CloseLog();
    const int code =
        process.status().code() == absl::StatusCode::kNotFound ? kCannotStart : kMayNotRun;
    Terminate(code, 0, kUnableToRun, std::string(process.status().message()), now);
    return;
  }
  process_ = *std::move(process);
  command_ = command;
  command_.environment = options.environment;
  confinement_ = std::move(confinement);
  if (confinement_ != nullptr) confinement_->HasBegun(process_->pid());
  output_.Begin(std::move(process_->stdout_pipe()), std::move(process_->stderr_pipe()),
                has_message_in_log_);
  state_ = State::kRunning;
  reason_.clear();
  message_.clear();
}

void ContainerRun::Recover(const ContainerStatusView& status, absl::Time now) {
  restart_count_ = status.restarts();
  row_.Resume(restart_count_);
  has_run_ = true;
  has_been_up_ = is_sidecar();
  started_ = now;
  if (const auto ended = status.is_waiting() ? status.ended_before() : status.ended()) {
    started_ = ended->started();
    return Terminate(ended->exit_code(), ended->signal(), ended->reason(), ended->message(),
                     ended->finished());
  }
  Terminate(128 + SIGKILL, SIGKILL, "ContainerStatusUnknown",
            "it ended with the control plane that ran it", now);
}

void ContainerRun::FailToStart(const std::string& reason, const std::string& message,
                               absl::Time now) {
  CountStart();
  started_ = now;
  output_.OpenLog(restart_count_);
  output_.Say(message, now);
  output_.CloseLog();
  Terminate(kCannotStart, 0, reason, message, now);
}

void ContainerRun::SetWaiting(const std::string& reason, const std::string& message) {
  if (state_ == State::kTerminated) last_ = DescribeTermination();
  state_ = State::kWaiting;
  reason_ = reason;
  message_ = message;
}

void ContainerRun::Terminate(int exit_code, int signal, const std::string& reason,
                             const std::string& message, absl::Time now) {
  state_ = State::kTerminated;
  exit_code_ = exit_code;
  signal_ = signal;
  reason_ = reason;
  message_ = message;
  finished_ = now;
  row_.CountEnd(started_, finished_);
}

std::string ContainerRun::TakeMessage(bool has_failed) {
  std::string message;
  if (!message_file_.empty()) {
    const StatusOr<std::unique_ptr<ReadableFile>> file = files_.OpenRead(message_file_);
    message.resize(kMostMessage);
    const size_t count =
        file.ok() ? (*file)->ReadAt(0, absl::MakeSpan(message.data(), message.size())).value_or(0)
                  : 0;
    message.resize(count);
  }
  if (message.empty() && has_failed && has_message_in_log_) message = output_.tail();
  return EscapeBadUtf8(message);
}

void ContainerRun::Signal(int signal) {
  if (process_ != nullptr) process_->Signal(signal);
}

void ContainerRun::SetHealth(bool has_started, bool is_ready) {
  has_started_ = has_started;
  has_been_up_ = has_been_up_ || (has_started && state_ == State::kRunning);
  is_ready_ = is_ready;
}

StatusOr<ContainerStreams> ContainerRun::Attach(bool takes_input) {
  if (process_ == nullptr) return FailedPrecondition("container ", name_, " does not run");
  ContainerStreams streams;
  if (takes_input) {
    if (!command_.takes_input)
      return FailedPrecondition("container ", name_,
                                " reads no input: its description has no stdin: true");
    OwnedFd& input = process_->stdin_pipe();
    if (!input.is_open())
      return FailedPrecondition("the input of container ", name_, " has ended (stdinOnce: true)");
    // Who has it alone ends it by going.
    streams.in =
        command_.ends_input ? std::move(input) : OwnedFd(::fcntl(input.get(), F_DUPFD_CLOEXEC, 0));
  }
  if (command_.has_terminal)
    streams.terminal = OwnedFd(::fcntl(output_.stdout_fd(), F_DUPFD_CLOEXEC, 0));
  OwnedFd to_out;
  OwnedFd to_err;
  for (const auto& [ours, theirs] :
       {std::pair{&to_out, &streams.out}, std::pair{&to_err, &streams.err}}) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      return ErrnoStatus(errno, "make", "a pair of sockets");
    ours->Reset(ends[0]);
    theirs->Reset(ends[1]);
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &kAttachedBytes, sizeof(kAttachedBytes));
  }
  output_.AddListener(std::move(to_out), std::move(to_err));
  return streams;
}

bool ContainerRun::Advance(absl::Duration monotonic_now, absl::Time now) {
  if (process_ == nullptr) return false;
  output_.Read(monotonic_now, now);
  const std::optional<ExitState> exit = process_->TryWait();
  if (!exit.has_value()) return false;
  output_.Finish(monotonic_now, now);
  EndProcesses();
  const std::string why =
      exit->signal == SIGKILL && confinement_ != nullptr ? confinement_->WhyKilled() : "";
  confinement_ = nullptr;
  std::string message = why.empty() ? TakeMessage(!exit->ok()) : why;
  if (message.empty() && exit->signal != 0) message = DescribeExit(*exit);
  Terminate(exit->ShellCode(), exit->signal,
            !why.empty() ? "OOMKilled"
            : exit->ok() ? "Completed"
                         : "Error",
            message, now);
  return true;
}

Json ContainerRun::DescribeTermination() const {
  Json terminated;
  terminated.Set("exitCode", exit_code_);
  if (signal_ != 0) terminated.Set("signal", signal_);
  terminated.Set("reason", reason_);
  if (!message_.empty()) terminated.Set("message", message_);
  terminated.Set("startedAt", FormatObjectTime(started_));
  terminated.Set("finishedAt", FormatObjectTime(finished_));
  return terminated;
}

Json ContainerRun::Describe(const std::string& image) const {
  Json status;
  status.Set("name", name_);
  status.Set("image", image);
  status.Set("imageID", "");
  status.Set("restartCount", restart_count_);
  status.Set("started", state_ == State::kRunning && has_started_);
  status.Set("ready", kind_ == Kind::kInit ? has_succeeded() : is_ready());
  switch (state_) {
    case State::kWaiting:
      SetField(&status, {"state", "waiting", "reason"}, reason_);
      if (!message_.empty()) SetField(&status, {"state", "waiting", "message"}, message_);
      break;
    case State::kRunning:
      SetField(&status, {"state", "running", "startedAt"}, FormatObjectTime(started_));
      break;
    case State::kTerminated:
      SetField(&status, {"state", "terminated"}, DescribeTermination());
      break;
  }
  status.Set("lastState", Json::MakeObject());
  if (last_.is_object()) SetField(&status, {"lastState", "terminated"}, last_);
  return status;
}

}  // namespace weft::platform
