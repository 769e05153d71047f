// SPDX-License-Identifier: Apache-2.0
// One connection between two endpoints of a process: a pair of these, each at home in the mailbox
// of its endpoint's IO thread. Regions are handed over as they are.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/transport/endpoint.h"
#include "weft/transport/send_queue.h"

namespace weft::transport::inproc {

class InprocPeer;

// What an endpoint's IO thread has to do, in order. Thread-safe. Shared by the endpoint and the
// peers that write to it, which may outlive it.
class Mailbox {
 public:
  struct Letter {
    std::shared_ptr<InprocPeer> peer;  // a frame for this peer, or
    OutFrame frame;
    absl::AnyInvocable<void()> work;  // something else to do
  };

  explicit Mailbox(int spin_us) : spin_us_(spin_us) {}

  // False if the endpoint is gone; `letter` is left as it was then.
  bool Post(Letter& letter);
  // The next letter, or nothing at the deadline or when woken.
  std::optional<Letter> Take(absl::Time deadline);
  void Wake();
  // Refuses letters from now on and returns what was left.
  std::deque<Letter> Close();

  // The IO thread's: whether a peer has ended since it last asked.
  void NoteEnded() { ended_ = true; }
  bool TakeEnded() { return std::exchange(ended_, false); }

 private:
  bool ended_ = false;
  const int spin_us_;
  absl::Mutex mutex_;
  absl::CondVar filled_;
  std::atomic<int> count_{0};
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Letter> letters_ ABSL_GUARDED_BY(mutex_);
};

class InprocPeer final : public Peer, public std::enable_shared_from_this<InprocPeer> {
 public:
  InprocPeer(const EndpointOptions& options, FrameHandler* handler, std::shared_ptr<Mailbox> home);

  // Makes them each other's other side. Before either is used.
  static void Link(const std::shared_ptr<InprocPeer>& a, const std::string& a_address,
                   const std::shared_ptr<InprocPeer>& b, const std::string& b_address);

  void Send(FrameHeader header, absl::string_view meta, std::span<Region> body,
            SendDone done) override;
  void ReturnCredit(uint64_t bytes) override;
  void Close(absl::string_view reason, absl::StatusCode code) override;
  PeerStats stats() const override;

  // The home IO thread's.
  void ComeUp();
  void Deliver(OutFrame frame);
  void GoDown(const Status& why);
  // Ends it before it came up: the other side is told, our handler never is.
  void Abandon(absl::string_view reason);
  bool is_down() const;

 private:
  // Posts what may leave to the other side; what cannot be posted goes to `lost`.
  void Flush(bool ignore_credit, std::vector<OutFrame>* lost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddCredit(uint64_t bytes);
  void Delivered(uint64_t bytes);
  Region BodyOf(OutFrame& frame);

  // The endpoint of this side; valid until it is down.
  FrameHandler* const handler_;
  const std::shared_ptr<Mailbox> home_;
  const bool auto_credit_;
  const uint64_t max_pending_bytes_;
  const size_t max_pending_frames_;
  const uint64_t my_window_;
  const std::string my_task_;
  const uint64_t my_incarnation_;
  bool announced_ = false;  // the IO thread's

  mutable absl::Mutex mutex_;
  enum class State { kFresh, kUp, kClosing, kDown };
  State state_ ABSL_GUARDED_BY(mutex_) = State::kFresh;
  std::shared_ptr<InprocPeer> other_ ABSL_GUARDED_BY(mutex_);  // let go when down
  SendQueue queue_ ABSL_GUARDED_BY(mutex_);
  CreditReturn credit_return_ ABSL_GUARDED_BY(mutex_);
  uint64_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // sent, not yet delivered
  size_t pending_frames_ ABSL_GUARDED_BY(mutex_) = 0;
  Status end_ ABSL_GUARDED_BY(mutex_);
  PeerStats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::transport::inproc
