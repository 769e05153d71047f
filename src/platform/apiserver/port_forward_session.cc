// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/port_forward_session.h"

#include <cerrno>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/apiserver/spdy_wire.h"

namespace weft::platform {
namespace {

constexpr size_t kMostForwardWaiting = 1 << 20;  // bytes, each way
constexpr size_t kForwardPiece = 32 << 10;
constexpr size_t kMostStreams = 512;

// A stream with its connection in the pod. Two streams make a forwarded connection: this one, and
// one for what goes wrong.
struct Forwarded {
  OwnedFd socket;
  std::string waiting;          // for the socket
  bool is_input_over = false;   // the client sends no more
  bool is_output_over = false;  // nor does the socket
};

class PortForward {
 public:
  PortForward(UpgradedConnection* connection, bool is_tunnel, PodAccess* pods, ObjectName pod,
              int stop_fd)
      : connection_(connection),
        wire_(connection, is_tunnel),
        pods_(pods),
        pod_(std::move(pod)),
        stop_fd_(stop_fd) {}

  void Run() {
    while (connection_->Advance(Reads())) {
      std::vector<SpdyFrame> frames;
      if (!wire_.Take(&frames).ok() || wire_.has_ended()) return;
      for (const SpdyFrame& frame : frames) {
        if (!Handle(frame)) return;
      }
      bool has_moved = false;
      for (auto entry = streams_.begin(); entry != streams_.end();) {
        has_moved = Move(entry->first, &entry->second) || has_moved;
        const bool is_over = entry->second.is_input_over && entry->second.is_output_over;
        entry = is_over ? streams_.erase(entry) : std::next(entry);
      }
      if (!has_moved && !Wait()) return;
    }
  }

 private:
  // One that does not read holds up the others: the wire knows no windows.
  bool Reads() const {
    for (const auto& [id, stream] : streams_)
      if (stream.waiting.size() >= kMostForwardWaiting) return false;
    return true;
  }

  static std::string SpdyHeader(const SpdyFrame& frame, const char* name) {
    const auto found = frame.headers.find(name);
    return found == frame.headers.end() ? "" : found->second;
  }

  // False: the client does not keep to the protocol.
  bool Handle(const SpdyFrame& frame) {
    if (frame.kind == SpdyFrame::Kind::kOpen) return Open(frame);
    const auto found = streams_.find(frame.stream);
    if (frame.kind == SpdyFrame::Kind::kReset) {
      if (found == streams_.end()) return true;
      EndErrors(frame.stream, "");
      streams_.erase(found);
      return true;
    }
    if (found == streams_.end()) return true;
    found->second.waiting += frame.data;
    found->second.is_input_over = found->second.is_input_over || frame.is_last;
    return true;
  }

  bool Open(const SpdyFrame& frame) {
    const StatusOr<std::string> reply = wire_.writer().Accept(frame.stream);
    int port = 0;
    if (!reply.ok() || streams_.size() >= kMostStreams || errors_.size() >= kMostStreams)
      return false;
    wire_.Send(*reply);
    const std::string request = SpdyHeader(frame, "requestid");
    if (SpdyHeader(frame, "streamtype") == "error") {
      errors_[request] = frame.stream;
      return true;
    }
    requests_[frame.stream] = request;
    if (!absl::SimpleAtoi(SpdyHeader(frame, "port"), &port) || port <= 0 || port > 65535) {
      Fail(frame.stream, "the port of the stream is none");
      return true;
    }
    StatusOr<OwnedFd> socket = pods_->Connect(pod_, port);
    if (!socket.ok()) {
      Fail(frame.stream, absl::StrCat("error forwarding port ", port, " to pod ", pod_.name, ": ",
                                      socket.status().message()));
      return true;
    }
    streams_[frame.stream].socket = *std::move(socket);
    streams_[frame.stream].is_input_over = frame.is_last;
    return true;
  }

  // Ends both streams of a forwarded connection; `why` may be empty.
  void Fail(uint32_t stream, const std::string& why) {
    wire_.Send(SpdyWriter::Data(stream, "", true));
    EndErrors(stream, why);
  }

  // A client waits for the end of what goes wrong.
  void EndErrors(uint32_t stream, const std::string& why) {
    const auto request = requests_.find(stream);
    if (request == requests_.end()) return;
    if (const auto error = errors_.find(request->second); error != errors_.end()) {
      wire_.Send(SpdyWriter::Data(error->second, why, true));
      errors_.erase(error);
    }
    requests_.erase(request);
  }

  // What can go now. True: there may be more.
  bool Move(uint32_t id, Forwarded* stream) {
    while (!stream->waiting.empty()) {
      const ssize_t count = ::send(stream->socket.get(), stream->waiting.data(),
                                   stream->waiting.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) {
        stream->waiting.clear();
        stream->is_input_over = true;
        break;
      }
      stream->waiting.erase(0, static_cast<size_t>(count));
    }
    if (stream->is_input_over && stream->waiting.empty()) ::shutdown(stream->socket.get(), SHUT_WR);
    if (stream->is_output_over || connection_->unsent_bytes() >= kMostForwardWaiting) return false;
    char buffer[kForwardPiece];
    const ssize_t count = ::recv(stream->socket.get(), buffer, sizeof(buffer), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) {
      stream->is_output_over = true;
      Fail(id, count < 0 ? absl::StrCat("the connection in the pod broke: ", errno) : "");
      return true;
    }
    wire_.Send(SpdyWriter::Data(id, absl::string_view(buffer, static_cast<size_t>(count)), false));
    return true;
  }

  bool Wait() {
    if (Reads() && connection_->has_more()) return true;
    std::vector<pollfd> fds = {{stop_fd_, POLLIN, 0},
                               {connection_->fd(), connection_->events(Reads()), 0}};
    const bool has_room = connection_->unsent_bytes() < kMostForwardWaiting;
    for (const auto& [id, stream] : streams_) {
      const int events = (stream.waiting.empty() ? 0 : POLLOUT) |
                         (has_room && !stream.is_output_over ? POLLIN : 0);
      if (events != 0) fds.push_back({stream.socket.get(), static_cast<short>(events), 0});
    }
    const int ready = ::poll(fds.data(), fds.size(), -1);
    return (ready > 0 || errno == EINTR) && fds[0].revents == 0;
  }

  UpgradedConnection* const connection_;
  SpdyWire wire_;
  PodAccess* const pods_;
  const ObjectName pod_;
  const int stop_fd_;
  std::map<uint32_t, Forwarded> streams_;
  std::map<std::string, uint32_t> errors_;    // by request
  std::map<uint32_t, std::string> requests_;  // by stream
};

}  // namespace

void RunPortForward(UpgradedConnection* connection, bool is_tunnel, PodAccess* pods,
                    const ObjectName& pod, int stop_fd) {
  PortForward(connection, is_tunnel, pods, pod, stop_fd).Run();
}

}  // namespace weft::platform
