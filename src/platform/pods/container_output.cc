// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_output.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "platform/object/names.h"

namespace weft::platform {
namespace {

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

void OutputReader::OpenLog(int64_t restart) {
  if (output_.log_folder.empty()) return;
  const StatusOr<std::string> path = ContainerLogPath(output_.log_folder, container_, restart);
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

void OutputReader::Begin(OwnedFd out, OwnedFd err, bool keeps_tail) {
  const auto filter = [&](bool keeps_returns) {
    return std::make_unique<LineFilter>(output_.progress_period, keeps_returns);
  };
  out_ = {std::move(out), filter(output_.keeps_returns), STDOUT_FILENO, {}};
  err_ = {std::move(err), filter(false), STDERR_FILENO, {}};
  keeps_tail_ = keeps_tail;
  tail_.clear();
}

void OutputReader::Hear(const Stream& stream, const std::vector<std::string>& lines,
                        absl::Time now) {
  if (lines.empty()) return;
  if (keeps_tail_) {
    for (const std::string& line : lines) absl::StrAppend(&tail_, line, "\n");
    if (tail_.size() > kMostTail) tail_.erase(0, tail_.size() - kMostTail);
  }
  Log(lines, now);
  if (output_.listener) output_.listener(container_, stream.descriptor, lines);
}

void OutputReader::Log(const std::vector<std::string>& lines, absl::Time now) {
  if (lines.empty() || log_ == nullptr) return;
  const Status status = log_->Append(lines, now);
  if (status.ok()) return;
  WEFT_LOG(WARNING) << "The log of container " << container_ << " ends here: " << status.message();
  log_ = nullptr;
}

void OutputReader::AddListener(OwnedFd out, OwnedFd err) {
  if (out_.pipe.is_open()) out_.listeners.push_back(std::move(out));
  if (err_.pipe.is_open()) err_.listeners.push_back(std::move(err));
}

void OutputReader::Tell(Stream* stream, absl::string_view bytes) {
  std::erase_if(stream->listeners, [&](const OwnedFd& listener) {
    ssize_t count = -1;
    do {
      count = ::send(listener.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    return count != static_cast<ssize_t>(bytes.size());
  });
}

bool OutputReader::ReadSome(Stream* stream, absl::Duration monotonic_now, absl::Time now) {
  char buffer[16 << 10];
  const ssize_t count = ::read(stream->pipe.get(), buffer, sizeof(buffer));
  if (count < 0 && errno == EINTR) return true;
  // A terminal that nobody has open any more says EIO.
  if (count == 0 || (count < 0 && errno == EIO)) {
    stream->pipe.Reset();
    stream->listeners.clear();
  }
  if (count <= 0) return false;
  Tell(stream, absl::string_view(buffer, static_cast<size_t>(count)));
  std::vector<std::string> lines;
  stream->filter->Feed(absl::string_view(buffer, static_cast<size_t>(count)), monotonic_now,
                       &lines);
  Hear(*stream, lines, now);
  return true;
}

void OutputReader::Read(absl::Duration monotonic_now, absl::Time now) {
  for (Stream* stream : {&out_, &err_}) {
    while (stream->pipe.is_open() && ReadSome(stream, monotonic_now, now)) {
    }
    std::vector<std::string> lines;
    stream->filter->Tick(monotonic_now, &lines);
    Hear(*stream, lines, now);
  }
}

void OutputReader::Finish(absl::Duration monotonic_now, absl::Time now) {
  for (Stream* stream : {&out_, &err_}) {
    while (stream->pipe.is_open() && ReadSome(stream, monotonic_now, now)) {
    }
    std::vector<std::string> lines;
    stream->filter->Finish(&lines);
    Hear(*stream, lines, now);
    *stream = Stream();
  }
  if (output_.listener) output_.listener(container_, 0, {});
  log_ = nullptr;
}

absl::Duration OutputReader::due() const {
  absl::Duration due = absl::InfiniteDuration();
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->filter != nullptr) due = std::min(due, stream->filter->due());
  }
  return due;
}

}  // namespace weft::platform
