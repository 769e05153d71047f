// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/inproc/peer.h"

#include <cstring>
#include <utility>

#include "absl/time/clock.h"

namespace weft::transport::inproc {

bool Mailbox::Post(Letter& letter) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return false;
  letters_.push_back(std::move(letter));
  count_.fetch_add(1, std::memory_order_release);
  filled_.Signal();
  return true;
}

std::optional<Mailbox::Letter> Mailbox::Take(absl::Time deadline) {
  if (spin_us_ > 0) {
    const absl::Time end = std::min(deadline, absl::Now() + absl::Microseconds(spin_us_));
    while (count_.load(std::memory_order_acquire) == 0 && absl::Now() < end) {
    }
  }
  absl::MutexLock lock(&mutex_);
  while (letters_.empty() && !woken_) {
    if (filled_.WaitWithDeadline(&mutex_, deadline)) break;
  }
  woken_ = false;
  if (letters_.empty()) return std::nullopt;
  Letter letter = std::move(letters_.front());
  letters_.pop_front();
  count_.fetch_sub(1, std::memory_order_relaxed);
  return letter;
}

void Mailbox::Wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
  filled_.Signal();
}

std::deque<Mailbox::Letter> Mailbox::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  count_.store(0, std::memory_order_relaxed);
  return std::exchange(letters_, {});
}

InprocPeer::InprocPeer(const EndpointOptions& options, FrameHandler* handler,
                       std::shared_ptr<Mailbox> home)
    : handler_(handler),
      home_(std::move(home)),
      auto_credit_(options.auto_credit),
      max_pending_bytes_(options.max_queued_bytes),
      max_pending_frames_(options.max_queued_frames),
      my_window_(options.credit_bytes),
      my_task_(options.task),
      my_incarnation_(options.incarnation),
      queue_(options.max_queued_bytes, options.max_queued_frames),
      credit_return_(options.credit_bytes) {}

void InprocPeer::Link(const std::shared_ptr<InprocPeer>& a, const std::string& a_address,
                      const std::shared_ptr<InprocPeer>& b, const std::string& b_address) {
  const auto point = [](InprocPeer& from, const std::shared_ptr<InprocPeer>& to,
                        const std::string& to_address) {
    from.task_ = to->my_task_;
    from.incarnation_ = to->my_incarnation_;
    from.address_ = to_address;
    absl::MutexLock lock(&from.mutex_);
    from.other_ = to;
    from.queue_.set_window(to->my_window_);
  };
  point(*a, b, b_address);
  point(*b, a, a_address);
}

void InprocPeer::Send(FrameHeader header, absl::string_view meta, std::span<Region> body,
                      SendDone done) {
  OutFrame frame;
  Status status = MakeFrame(header, meta, body, &frame);
  frame.done = std::move(done);
  std::vector<OutFrame> lost;
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    const uint64_t bytes = frame.wire_bytes();
    if (state_ != State::kUp) {
      status = end_;
    } else if (pending_frames_ >= max_pending_frames_ ||
               (pending_frames_ > 0 && pending_bytes_ + bytes > max_pending_bytes_)) {
      status = ResourceExhausted(name(), ": Too much waits to be taken: ", pending_frames_,
                                 " frames, ", pending_bytes_, " bytes");
    } else {
      pending_bytes_ += bytes;
      ++pending_frames_;
      status = queue_.Push(frame);
      Flush(false, &lost);
    }
  }
  if (!status.ok()) frame.Finish(status);
  FinishAll(std::move(lost), Unavailable("Connection to ", name(), " is lost: it is gone"));
}

void InprocPeer::Flush(bool ignore_credit, std::vector<OutFrame>* lost) {
  std::vector<OutFrame> ready;
  if (ignore_credit) {
    ready = queue_.TakeAll();
  } else {
    while (queue_.Ready()) ready.push_back(queue_.Pop());
  }
  for (OutFrame& frame : ready) {
    ++stats_.frames_sent;
    stats_.bytes_sent += frame.wire_bytes();
    Mailbox::Letter letter{other_, std::move(frame), nullptr};
    if (!other_->home_->Post(letter)) lost->push_back(std::move(letter.frame));
  }
}

void InprocPeer::Close(absl::string_view reason, absl::StatusCode code) {
  std::vector<OutFrame> lost;
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kUp) return;
    state_ = State::kClosing;
    end_ = Status(code, absl::StrCat("Connection to ", name(), " was closed here: ", reason));
    // Nothing is copied, so what waited for credit may as well go.
    Flush(true, &lost);
    queue_.PushOwn(MakeControl(FrameKind::kGoodbye, 0, reason));
    Flush(true, &lost);
  }
  FinishAll(std::move(lost), Unavailable("Connection to ", name(), " is lost: it is gone"));
  Mailbox::Letter letter;
  letter.work = [self = shared_from_this()] { self->GoDown(absl::OkStatus()); };
  home_->Post(letter);
}

void InprocPeer::ComeUp() {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kFresh) return;
    state_ = State::kUp;
  }
  announced_ = true;
  handler_->PeerUp(shared_from_this());
}

Region InprocPeer::BodyOf(OutFrame& frame) {
  if (frame.body.empty()) return Region();
  // The sender's own memory, unless it is in pieces.
  if (frame.body.size() == 1) return frame.body.front();
  Region whole = handler_->ReceiveBuffer(shared_from_this(), frame.header, frame.meta);
  if (whole.size != frame.header.body_bytes) return Region();
  size_t at = 0;
  for (const Region& piece : frame.body) {
    std::memcpy(whole.data + at, piece.data, piece.size);
    at += piece.size;
  }
  return whole;
}

void InprocPeer::Deliver(OutFrame frame) {
  const FrameHeader header = frame.header;
  const bool bulk = IsBulk(header.kind);
  std::shared_ptr<InprocPeer> other;
  Status end;
  {
    absl::MutexLock lock(&mutex_);
    other = other_;
    end = state_ == State::kUp ? absl::OkStatus()
                               : Unavailable("Connection to ", my_task_, " is lost: it closed");
    if (bulk) credit_return_.Owe(header.body_bytes);
    ++stats_.frames_received;
    stats_.bytes_received += frame.wire_bytes();
  }
  if (!end.ok()) return frame.Finish(end);
  if (header.kind == FrameKind::kGoodbye) {
    return GoDown(Unavailable("Connection to ", name(), " is lost: it said goodbye: ", frame.meta));
  }
  other->Delivered(frame.wire_bytes());
  Region body = BodyOf(frame);
  const bool dropped = header.body_bytes > 0 && body.data == nullptr;
  if (!dropped) {
    handler_->FrameReceived(shared_from_this(), header, frame.meta, std::move(body));
  }
  if (bulk && (dropped || auto_credit_)) ReturnCredit(header.body_bytes);
  frame.Finish(absl::OkStatus());
}

void InprocPeer::ReturnCredit(uint64_t bytes) {
  std::shared_ptr<InprocPeer> other;
  uint64_t announce = 0;
  {
    absl::MutexLock lock(&mutex_);
    announce = credit_return_.Add(bytes);
    if (state_ != State::kUp) return;
    other = other_;
  }
  if (announce > 0) other->AddCredit(announce);
}

void InprocPeer::AddCredit(uint64_t bytes) {
  std::vector<OutFrame> lost;
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kUp || !queue_.AddCredit(bytes).ok()) return;
    Flush(false, &lost);
  }
  FinishAll(std::move(lost), Unavailable("Connection to ", name(), " is lost: it is gone"));
}

void InprocPeer::Delivered(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  pending_bytes_ -= bytes;
  --pending_frames_;
}

void InprocPeer::GoDown(const Status& why) {
  std::vector<OutFrame> lost;
  std::shared_ptr<InprocPeer> other;
  Status end;
  {
    absl::MutexLock lock(&mutex_);
    if (state_ == State::kDown) return;
    if (state_ != State::kClosing) end_ = why;
    end = end_;
    state_ = State::kDown;
    lost = queue_.TakeAll();
    other.swap(other_);
  }
  FinishAll(std::move(lost), end);
  if (!announced_) return;
  home_->NoteEnded();
  handler_->PeerDown(shared_from_this(), end);
}

void InprocPeer::Abandon(absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kFresh || other_ == nullptr) return;
    state_ = State::kUp;
  }
  Close(reason, absl::StatusCode::kCancelled);
  GoDown(absl::OkStatus());
}

bool InprocPeer::is_down() const {
  absl::MutexLock lock(&mutex_);
  return state_ == State::kDown;
}

PeerStats InprocPeer::stats() const {
  absl::MutexLock lock(&mutex_);
  PeerStats stats = stats_;
  stats.queued_bytes = pending_bytes_;
  return stats;
}

}  // namespace weft::transport::inproc
