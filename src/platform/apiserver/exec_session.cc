// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/exec_session.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "net/json.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostWaiting = 256 << 10;  // bytes, each way
constexpr size_t kExecPiece = 32 << 10;
constexpr int kLingerMs = 2000;  // for the client to hang up, at the end
constexpr int kOpenMs = 30000;   // for it to open its channels
constexpr int kDrainMs = 100;    // for what was printed right before the end

// As a kubelet words it, so that kubectl ends with the program's own code.
std::string StatusOfExit(const ExitState& exit) {
  Json status;
  status.Set("metadata", Json::MakeObject());
  status.Set("status", exit.ok() ? "Success" : "Failure");
  if (exit.ok()) return status.Dump();
  status.Set("reason", "NonZeroExitCode");
  status.Set("message",
             absl::StrCat("command terminated with non-zero exit code: ", DescribeExit(exit)));
  Json cause;
  cause.Set("reason", "ExitCode");
  cause.Set("message", absl::StrCat(exit.ShellCode()));
  SetField(&status, {"details", "causes"}, Json(Json::Array{std::move(cause)}));
  return status.Dump();
}

class ExecSession {
 public:
  ExecSession(UpgradedConnection* connection, ExecChannels* channels, int stop_fd)
      : connection_(connection), channels_(channels), stop_fd_(stop_fd) {}

  void Run(PodAccess::Start start) {
    while (!channels_->IsReady()) {
      if (!Exchange() || (!channels_->IsReady() && !Wait({}, kOpenMs))) return;
    }
    StatusOr<PodStreams> streams = std::move(start)();
    if (!streams.ok()) {
      channels_->Send(
          kExecStatus,
          StatusObject(ApiError(500, "InternalError", streams.status().message())).Dump());
      return End();
    }
    streams_ = *std::move(streams);
    std::optional<ExitState> exit;
    while (!exit.has_value()) {
      if (!Exchange()) return;
      PassInput();
      const bool has_moved = PassOutput();
      exit = LookForEnd();
      has_exited_ = exit.has_value();
      if (exit.has_value() || has_moved) continue;
      if (!Wait(Wanted(), -1)) return;
    }
    // What others of its group printed has been written by now, too: they were killed.
    while (IsOpen()) {
      if (!Exchange()) return;
      const int patience = connection_->unsent_bytes() > 0 ? kOpenMs : kDrainMs;
      if (!PassOutput() && !Wait(Wanted(), patience)) break;
    }
    channels_->Send(kExecStatus, StatusOfExit(*exit));
    End();
  }

 private:
  bool IsOpen() const { return streams_.out.is_open() || streams_.err.is_open(); }

  // How a container ended that was there before, its pod says.
  std::optional<ExitState> LookForEnd() {
    if (streams_.process != nullptr) return streams_.process->TryWait();
    return IsOpen() ? std::nullopt : std::optional<ExitState>(ExitState());
  }

  // False: the client has gone.
  bool Exchange() {
    const bool reads = input_.size() < kMostWaiting;
    if (!connection_->Advance(reads)) return false;
    std::vector<ExecInput> inputs;
    if (!channels_->Take(&inputs).ok()) return false;
    for (ExecInput& input : inputs) {
      if (input.channel == kExecInput) {
        input_ += input.bytes;
        is_input_over_ = is_input_over_ || input.is_last;
      } else if (input.channel == kExecResize && streams_.terminal.is_open()) {
        Resize(input.bytes);
      }
    }
    return !channels_->has_ended();
  }

  void Resize(const std::string& text) {
    const StatusOr<Json> size = Json::Parse(text);
    if (!size.ok()) return;
    const auto side = [&](const char* name) {
      return static_cast<unsigned short>(std::clamp<int64_t>(IntField(*size, {name}), 0, 65535));
    };
    const winsize window = {side("Height"), side("Width"), 0, 0};
    ::ioctl(streams_.terminal.get(), TIOCSWINSZ, &window);
  }

  void PassInput() {
    OwnedFd& pipe = streams_.in;
    while (pipe.is_open() && !input_.empty()) {
      const ssize_t count = ::write(pipe.get(), input_.data(), input_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) {
        // It reads no more.
        pipe.Reset();
        break;
      }
      input_.erase(0, static_cast<size_t>(count));
    }
    if (!pipe.is_open()) input_.clear();
    if (is_input_over_ && input_.empty()) pipe.Reset();
  }

  // True: there may be more.
  bool PassOutput() {
    bool has_moved = false;
    for (const auto& [pipe, channel] :
         {std::pair{&streams_.out, kExecOutput}, std::pair{&streams_.err, kExecError}}) {
      if (!pipe->is_open() || connection_->unsent_bytes() >= kMostWaiting) continue;
      char buffer[kExecPiece];
      const ssize_t count = ::read(pipe->get(), buffer, sizeof(buffer));
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) {
        pipe->Reset();  // a terminal says EIO
        continue;
      }
      channels_->Send(channel, absl::string_view(buffer, static_cast<size_t>(count)));
      has_moved = true;
    }
    return has_moved;
  }

  std::vector<pollfd> Wanted() const {
    std::vector<pollfd> fds;
    if (!has_exited_ && streams_.process != nullptr)
      fds.push_back({streams_.process->pidfd(), POLLIN, 0});
    if (!input_.empty() && streams_.in.is_open()) fds.push_back({streams_.in.get(), POLLOUT, 0});
    if (connection_->unsent_bytes() >= kMostWaiting) return fds;
    for (const OwnedFd* const pipe : {&streams_.out, &streams_.err})
      if (pipe->is_open()) fds.push_back({pipe->get(), POLLIN, 0});
    return fds;
  }

  // False: the time is over, or the server ends.
  bool Wait(std::vector<pollfd> fds, int timeout_ms) {
    const bool reads = input_.size() < kMostWaiting;
    if (reads && connection_->has_more()) return true;
    fds.push_back({connection_->fd(), connection_->events(reads), 0});
    fds.push_back({stop_fd_, POLLIN, 0});
    const int ready = ::poll(fds.data(), fds.size(), timeout_ms);
    return fds.back().revents == 0 && (ready > 0 || (ready < 0 && errno == EINTR));
  }

  // Says good-bye and waits until the client has read all.
  void End() {
    channels_->Finish();
    input_.clear();
    while (Exchange() && Wait({}, kLingerMs)) input_.clear();
  }

  UpgradedConnection* const connection_;
  ExecChannels* const channels_;
  const int stop_fd_;
  PodStreams streams_;
  std::string input_;  // that the program has not read yet
  bool is_input_over_ = false;
  bool has_exited_ = false;
};

}  // namespace

void RunExec(UpgradedConnection* connection, ExecChannels* channels, PodAccess::Start start,
             int stop_fd) {
  ExecSession(connection, channels, stop_fd).Run(std::move(start));
}

}  // namespace weft::platform
