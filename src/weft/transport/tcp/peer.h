// SPDX-License-Identifier: Apache-2.0
// One TCP connection. Any thread sends: it writes to the socket itself when nothing waits, else the
// IO thread does when the socket has room. The IO thread alone reads, greets, watches and ends it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/transport/carrier.h"
#include "weft/transport/endpoint.h"
#include "weft/transport/send_queue.h"
#include "weft/transport/shm/loan.h"
#include "weft/transport/tcp/channel.h"
#include "weft/transport/tcp/frame_reader.h"
#include "weft/transport/tcp/frame_writer.h"

namespace weft::transport::tcp {

class TcpPeer;

// What a peer needs of its endpoint. Calls come on the IO thread.
class PeerHost {
 public:
  virtual ~PeerHost() = default;
  virtual void PeerIsUp(TcpPeer* peer) = 0;
  // Turned away with a reason; the connection ends by itself.
  virtual void PeerRefused(TcpPeer* peer, const Status& why) = 0;
  // Has to go down, when the calls at hand are done with.
  virtual void PeerFailed(TcpPeer* peer, const Status& why) = 0;
};

class TcpPeer final : public Peer,
                      public std::enable_shared_from_this<TcpPeer>,
                      private PassageUser {
 public:
  struct Setting {
    const EndpointOptions* options;  // these five outlive the connection, not the peer
    FrameHandler* handler;
    PeerHost* host;
    const std::string* hello;  // encoded
    Carrier* carrier;          // of the caller's frames; null: the socket
    int epoll_fd;
  };

  // `deadline_ns` is for the greeting to be over. An outgoing one may still be connecting.
  TcpPeer(const Setting& setting, Fd fd, std::string address, bool outgoing, int64_t deadline_ns);

  void Send(FrameHeader header, absl::string_view meta, std::span<Region> body,
            SendDone done) override;
  void ReturnCredit(uint64_t bytes) override;
  void Close(absl::string_view reason, absl::StatusCode code) override;
  PeerStats stats() const override;

  // The rest is the IO thread's. An error means that the connection has to go down with it.
  Status Register();
  Status OnEvents(uint32_t events, int64_t now_ns);
  Status OnTick(int64_t now_ns);
  // Fails what waits, tells the handler, closes the socket.
  void GoDown(const Status& why);
  // True until let in (or turned away for good).
  bool greeting() const;
  bool refused() const { return state_.load() == State::kRefused; }
  bool outgoing() const { return outgoing_; }

 private:
  enum class State : uint8_t { kConnecting, kGreeting, kUp, kClosing, kRefused, kDown };

  StatusOr<Region> FrameBegins(const FrameHeader& header, absl::string_view meta) override;
  Status FrameEnds(const FrameHeader& header, absl::string_view meta, Region body) override;
  void PassageOpened() override;
  void PassageMoved() override;
  void PassageFailed(const Status& why) override;

  Status FinishConnect();
  Status OnReadable(int64_t now_ns);
  StatusOr<FrameReader::Outcome> ReadFrames();
  Status EndOrRefuse(const Status& why);
  Status DrainRefused();
  Status Greet(const FrameHeader& header, absl::string_view meta);
  Status TakeHello(const FrameHeader& header, absl::string_view meta);
  Status TakeWay(const FrameHeader& header, absl::string_view meta);
  void QueueHello() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status ComeUp(const Hello& hello);
  Status TakeGoodbye(const FrameHeader& header, absl::string_view meta);
  void Refuse(const Status& why);
  Status OwnFrame(const FrameHeader& header, absl::string_view meta);
  // Offers the memory that this side may lend, if the other side is on this host.
  void OfferMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status AcceptOffer(absl::string_view offer);
  Status TakeLent(const FrameHeader& header, absl::string_view meta);
  Status CheckAlive(int64_t now_ns);
  void SendOwn(OutFrame frame);

  // Writes what may leave, `max_writes` system calls at most, then has the IO thread go on if need
  // be. Gives up the lock while it writes and runs completions. No-op when another thread is
  // writing.
  void Pump(int max_writes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillWriter() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Arm(bool want) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All that was queued has left, but for the Goodbye.
  bool IsGoodbyeDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether room in the socket would let something leave.
  bool WantsRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Setting setting_;
  const bool outgoing_;
  const int64_t deadline_ns_;
  Channel channel_;  // closed by GoDown, or by the writer that GoDown finds at work

  mutable absl::Mutex mutex_;
  std::atomic<State> state_;  // changed with the lock held
  SendQueue queue_ ABSL_GUARDED_BY(mutex_);
  CreditReturn credit_return_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) =
      false;                                    // someone has the writer role, and writer_ with it
  bool armed_ ABSL_GUARDED_BY(mutex_) = false;  // the IO thread is told when the socket has room
  bool goodbye_queued_ ABSL_GUARDED_BY(mutex_) = false;
  Status end_ ABSL_GUARDED_BY(mutex_);  // why it is closing or down
  PeerStats sent_stats_ ABSL_GUARDED_BY(mutex_);
  FrameWriter writer_;                   // the writer role's
  std::unique_ptr<shm::Lender> lender_;  // set before it is up, or never
  std::unique_ptr<Passage> passage_;     // the same
  std::atomic<bool> sent_something_{false};
  std::atomic<bool> broken_{false};  // a write failed
  std::atomic<uint64_t> frames_received_{0}, bytes_received_{0};
  std::atomic<int64_t> round_trip_ns_{0};

  // The IO thread's.
  FrameReader reader_;
  std::unique_ptr<shm::Borrower> borrower_;
  std::optional<Hello> hello_;          // said, where a Way has to come as well
  bool is_way_known_ = false;           // that it has
  std::optional<std::string> goodbye_;  // said, while frames before it are under way
  uint64_t goodbye_after_ = 0;          // that many frames
  bool heard_ = false;                  // through the passage, since the last tick
  bool announced_ = false;
  int64_t last_received_ns_ = 0, last_sent_ns_ = 0, last_ping_ns_ = 0;
  int64_t linger_end_ns_ = 0;
  int64_t drip_mark_ns_ = 0;
  uint64_t drip_mark_bytes_ = 0, drip_mark_frames_ = 0;
};

// CLOCK_MONOTONIC.
int64_t MonotonicNanos();

}  // namespace weft::transport::tcp
