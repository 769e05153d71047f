// SPDX-License-Identifier: Apache-2.0
// The thread of an HttpServer and its connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/posix_file.h"
#include "base/threads.h"
#include "net/http_server.h"

namespace weft {

// How replies of other threads reach the server's own. Thread-safe; outlives the server as long as
// a reply does.
class HttpMailbox {
 public:
  struct Message {
    uint64_t connection = 0;
    std::string bytes;
    bool ends_reply = false;
    bool breaks_off = false;         // the connection cannot be used any more
    HttpReply::TakeConnection take;  // when not null, it leaves the server
  };

  explicit HttpMailbox(OwnedFd wake) : wake_(std::move(wake)) {}
  void Post(Message message);
  std::vector<Message> Take();
  int wake_fd() const { return wake_.get(); }
  void Wake();

 private:
  const OwnedFd wake_;
  absl::Mutex mutex_;
  std::vector<Message> messages_ ABSL_GUARDED_BY(mutex_);
};

class PendingReply;

// All state is the thread's own; the mailbox is how others reach it.
class HttpServerLoop {
 public:
  HttpServerLoop(HttpServer::Options options, HttpStreamHandler handler, OwnedFd listener,
                 std::shared_ptr<HttpMailbox> mailbox);
  ~HttpServerLoop();

 private:
  struct Connection {
    OwnedFd fd;
    std::unique_ptr<TlsSession> tls;
    std::string in;
    std::string out;
    size_t sent = 0;  // of out
    bool close_after_reply = false;
    bool read_wants_write = false;
    bool said_continue = false;
    bool discards =
        false;  // refused: what still comes is read, or the client would miss our answer
    std::shared_ptr<PendingReply> reply;  // null: waits for a request
    absl::Duration deadline;
    bool is_idle() const { return in.empty() && out.empty() && reply == nullptr; }
  };
  using Connections = std::map<uint64_t, Connection>;

  void Run();
  void Accept();
  void TakeMessages();
  // False: the connection is done.
  bool Advance(uint64_t id, Connection* connection, short events);
  bool Read(uint64_t id, Connection* connection);
  bool Write(uint64_t id, Connection* connection);
  // Begins to answer what has come in whole. False as above.
  bool HandleInput(uint64_t id, Connection* connection);
  bool Refuse(uint64_t id, Connection* connection, int status, absl::string_view text);
  void Dispatch(uint64_t id, Connection* connection, HttpRequest request);
  void Drop(Connections::iterator connection);
  void HandOver(Connections::iterator connection, HttpReply::TakeConnection take);
  bool IsAllowedHost(const HttpRequest& request) const;
  short EventsOf(const Connection& connection) const;
  int PollTimeoutMs() const;

  const HttpServer::Options options_;
  const HttpStreamHandler handler_;
  const OwnedFd listener_;
  const std::shared_ptr<HttpMailbox> mailbox_;
  const RealClock clock_;
  std::atomic<bool> stopping_{false};
  Connections connections_;
  uint64_t next_id_ = 1;
  Thread thread_;  // last: it uses all of the above
};

// The reply to one request of a connection.
class PendingReply : public HttpReply {
 public:
  PendingReply(std::shared_ptr<HttpMailbox> mailbox, uint64_t connection, bool with_body,
               bool keep_alive, size_t max_unsent)
      : mailbox_(std::move(mailbox)),
        connection_(connection),
        with_body_(with_body),
        keep_alive_(keep_alive),
        max_unsent_(max_unsent) {}
  ~PendingReply() override = default;

  void Send(HttpResponse response) override;
  void Start(int status, const std::string& content_type) override;
  bool Write(absl::string_view chunk) override;
  void Finish() override;
  bool IsOpen() const override;
  size_t unsent_bytes() const override;
  void OnClose(absl::AnyInvocable<void()> callback) override;
  void Upgrade(const std::vector<std::pair<std::string, std::string>>& headers,
               TakeConnection take) override;

  // Of the server: the client has gone; so many bytes have left.
  void Close();
  void Sent(size_t bytes);
  bool keep_alive() const { return keep_alive_; }
  // When the handler has let go of it.
  void Abandon();

 private:
  enum class State { kWaiting, kStreaming, kDone };
  void Post(std::string bytes, bool ends, bool breaks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<HttpMailbox> mailbox_;
  const uint64_t connection_;
  const bool with_body_;
  const bool keep_alive_;
  const size_t max_unsent_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaiting;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  size_t unsent_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::AnyInvocable<void()> on_close_ ABSL_GUARDED_BY(mutex_);
};

absl::string_view HttpReason(int status);

}  // namespace weft
