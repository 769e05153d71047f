// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_run.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <signal.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "net/utf8.h"
#include "platform/object/fields.h"
#include "platform/object/names.h"
#include "platform/store/object_time.h"

namespace weft::platform {
namespace {

// A shell's codes for a program that is not there, or that may not run.
constexpr int kCannotStart = 127;
constexpr int kMayNotRun = 126;
// As a kubelet takes it.
constexpr uint64_t kMostMessage = 4096;
constexpr size_t kMostTail = 2048;

}  // namespace

Status CheckContainerName(const std::string& name) {
  const NameProblems problems = LabelNameProblems(name);
  if (problems.empty()) return absl::OkStatus();
  return InvalidArgument("A container may not be called '", name,
                         "', which would name a file: ", problems[0]);
}

StatusOr<std::string> ContainerLogPath(const std::string& pod_folder, const std::string& container,
                                       int64_t restart) {
  WEFT_RETURN_IF_ERROR(CheckContainerName(container));
  return absl::StrCat(pod_folder, "/", container, "/", restart, ".log");
}

void ContainerRun::OpenLog() {
  if (output_.log_folder.empty()) return;
  const StatusOr<std::string> path = ContainerLogPath(output_.log_folder, name_, restart_count_);
  if (!path.ok()) {
    WEFT_LOG(WARNING) << "A container runs without a log: " << path.status().message();
    return;
  }
  StatusOr<std::unique_ptr<LogFile>> log = LogFile::Open(*path);
  if (log.ok()) {
    log_ = *std::move(log);
  } else {
    WEFT_LOG(WARNING) << "A container runs without a log: " << log.status().message();
  }
}

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
  OpenLog();
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
  tail_.clear();
  options.capture_output = true;
  options.guard = guard;
  if (confinement != nullptr) {
    options.processors = confinement->processors();
    options.control_group = confinement->control_group();
  }
  StatusOr<std::unique_ptr<Subprocess>> process = Subprocess::Spawn(options);
  started_ = now;
  if (!process.ok()) {
    Log({std::string(process.status().message())}, now);
    log_ = nullptr;
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
  const auto filter = [&](bool keeps_returns) {
    return std::make_unique<LineFilter>(output_.progress_period, keeps_returns);
  };
  out_ = {std::move(process_->stdout_pipe()), filter(output_.keeps_returns), STDOUT_FILENO};
  err_ = {std::move(process_->stderr_pipe()), filter(false), STDERR_FILENO};
  state_ = State::kRunning;
  reason_.clear();
  message_.clear();
}

void ContainerRun::Recover(const Json& status, absl::Time now) {
  restart_count_ = IntField(status, {"restartCount"});
  ends_in_a_row_ = restart_count_;
  has_run_ = true;
  has_been_up_ = is_sidecar();
  started_ = now;
  const bool waits = FindField(status, {"state", "waiting"}) != nullptr;
  if (const Json* const ended = FindField(status, {waits ? "lastState" : "state", "terminated"})) {
    started_ = ParseObjectTime(StringField(*ended, {"startedAt"}));
    return Terminate(static_cast<int>(IntField(*ended, {"exitCode"})),
                     static_cast<int>(IntField(*ended, {"signal"})),
                     StringField(*ended, {"reason"}), StringField(*ended, {"message"}),
                     ParseObjectTime(StringField(*ended, {"finishedAt"})));
  }
  Terminate(128 + SIGKILL, SIGKILL, "ContainerStatusUnknown",
            "it ended with the control plane that ran it", now);
}

void ContainerRun::FailToStart(const std::string& reason, const std::string& message,
                               absl::Time now) {
  CountStart();
  started_ = now;
  OpenLog();
  Log({message}, now);
  log_ = nullptr;
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
  if (finished_ - started_ >= pacing_.steady_after) ends_in_a_row_ = 0;
  ++ends_in_a_row_;
}

absl::Time ContainerRun::restart_time() const {
  if (pacing_.limit.has_value() && ends_in_a_row_ > *pacing_.limit) return absl::InfiniteFuture();
  if (ends_in_a_row_ <= 1) return finished_ + pacing_.first;
  absl::Duration pause = pacing_.second;
  for (int64_t i = 2; i < ends_in_a_row_ && pause < pacing_.longest; ++i) pause *= 2;
  return finished_ + std::min(pause, pacing_.longest);
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
  if (message.empty() && has_failed && has_message_in_log_) message = tail_;
  return EscapeBadUtf8(message);
}

void ContainerRun::Hear(const Stream& stream, const std::vector<std::string>& lines,
                        absl::Time now) {
  if (lines.empty()) return;
  if (has_message_in_log_) {
    for (const std::string& line : lines) absl::StrAppend(&tail_, line, "\n");
    if (tail_.size() > kMostTail) tail_.erase(0, tail_.size() - kMostTail);
  }
  Log(lines, now);
  if (output_.listener) output_.listener(name_, stream.descriptor, lines);
}

void ContainerRun::Signal(int signal) {
  if (process_ != nullptr) process_->Signal(signal);
}

void ContainerRun::SetHealth(bool has_started, bool is_ready) {
  has_started_ = has_started;
  has_been_up_ = has_been_up_ || (has_started && state_ == State::kRunning);
  is_ready_ = is_ready;
}

bool ContainerRun::ReadSome(Stream* stream, absl::Duration monotonic_now, absl::Time now) {
  char buffer[16 << 10];
  const ssize_t count = ::read(stream->pipe.get(), buffer, sizeof(buffer));
  if (count < 0 && errno == EINTR) return true;
  if (count == 0) stream->pipe.Reset();
  if (count <= 0) return false;
  std::vector<std::string> lines;
  stream->filter->Feed(absl::string_view(buffer, static_cast<size_t>(count)), monotonic_now,
                       &lines);
  Hear(*stream, lines, now);
  return true;
}

void ContainerRun::Log(const std::vector<std::string>& lines, absl::Time now) {
  if (lines.empty() || log_ == nullptr) return;
  const Status status = log_->Append(lines, now);
  if (status.ok()) return;
  WEFT_LOG(WARNING) << "The log of container " << name_ << " ends here: " << status.message();
  log_ = nullptr;
}

absl::Duration ContainerRun::output_due() const {
  absl::Duration due = absl::InfiniteDuration();
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->filter != nullptr) due = std::min(due, stream->filter->due());
  }
  return due;
}

bool ContainerRun::Advance(absl::Duration monotonic_now, absl::Time now) {
  if (process_ == nullptr) return false;
  for (Stream* stream : {&out_, &err_}) {
    while (stream->pipe.is_open() && ReadSome(stream, monotonic_now, now)) {
    }
    std::vector<std::string> lines;
    stream->filter->Tick(monotonic_now, &lines);
    Hear(*stream, lines, now);
  }
  const std::optional<ExitState> exit = process_->TryWait();
  if (!exit.has_value()) return false;
  for (Stream* stream : {&out_, &err_}) {
    while (stream->pipe.is_open() && ReadSome(stream, monotonic_now, now)) {
    }
    std::vector<std::string> lines;
    stream->filter->Finish(&lines);
    Hear(*stream, lines, now);
    *stream = Stream();
  }
  if (output_.listener) output_.listener(name_, 0, {});
  log_ = nullptr;
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
