// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/tcp/peer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::transport::tcp {
namespace {

constexpr uint64_t kReadBudget = 16 << 20;  // bytes of one peer before the others have their turn
constexpr int kFlushWrites = 4;             // system calls of one peer before the others
constexpr uint64_t kGatherBytes = 1 << 20;  // frames are gathered into one call up to this
constexpr size_t kGatherFrames = 32;
constexpr uint64_t kDripBytes = 64 * 1024;  // a begun frame makes this progress in `dead_after`

absl::string_view CarrierName(uint32_t number) {
  return number == 0 ? "TCP" : number == 1 ? "UCX" : "something else";
}

}  // namespace

int64_t MonotonicNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TcpPeer::TcpPeer(const Setting& setting, Fd fd, std::string address, bool outgoing,
                 int64_t deadline_ns)
    : setting_(setting),
      outgoing_(outgoing),
      deadline_ns_(deadline_ns),
      channel_(std::move(fd)),
      state_(outgoing ? State::kConnecting : State::kGreeting),
      queue_(setting.options->max_queued_bytes, setting.options->max_queued_frames),
      credit_return_(setting.options->credit_bytes),
      reader_(setting.options->max_body_bytes) {
  address_ = std::move(address);
  if (setting_.carrier != nullptr)
    passage_ = setting_.carrier->NewPassage(this, setting_.options->max_body_bytes);
}

bool TcpPeer::greeting() const {
  const State state = state_.load();
  return state == State::kConnecting || state == State::kGreeting || state == State::kRefused;
}

Status TcpPeer::Register() {
  absl::MutexLock lock(&mutex_);
  TuneConnection(channel_.fd(), setting_.options->dead_after);
  armed_ = outgoing_;
  epoll_event event = {};
  event.events = EPOLLIN | (outgoing_ ? static_cast<uint32_t>(EPOLLOUT) : 0u);
  event.data.ptr = this;
  if (setting_.options->tls.has_value()) {
    WEFT_RETURN_IF_ERROR(channel_.StartTls(*setting_.options->tls, outgoing_));
  }
  if (epoll_ctl(setting_.epoll_fd, EPOLL_CTL_ADD, channel_.fd(), &event) != 0) {
    return ResourceExhausted("Cannot watch a socket: ", ErrorText(errno));
  }
  last_received_ns_ = last_sent_ns_ = MonotonicNanos();
  return absl::OkStatus();
}

// ---- Sending, on any thread.

void TcpPeer::Send(FrameHeader header, absl::string_view meta, std::span<Region> body,
                   SendDone done) {
  OutFrame frame;
  Status status = MakeFrame(header, meta, body, &frame);
  frame.done = std::move(done);
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    if (state_.load() != State::kUp) {
      status = end_;
    } else if (passage_ != nullptr &&
               passage_->under_way() >= setting_.options->max_queued_frames) {
      status = ResourceExhausted("Too many frames are under way: at most ",
                                 setting_.options->max_queued_frames);
    } else {
      status = queue_.Push(frame);
      if (status.ok() && !armed_) Pump(1);
    }
    if (status.ok()) return;
  }
  if (status.code() == absl::StatusCode::kResourceExhausted) status = Annotate(status, name());
  frame.Finish(status);
}

void TcpPeer::SendOwn(OutFrame frame) {
  absl::MutexLock lock(&mutex_);
  if (state_.load() == State::kDown) return;
  queue_.PushOwn(std::move(frame));
  if (!armed_) Pump(1);
}

void TcpPeer::ReturnCredit(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const uint64_t announce = credit_return_.Add(bytes);
  if (announce == 0 || state_.load() != State::kUp) return;
  queue_.PushOwn(MakeControl(FrameKind::kCredit, announce));
  if (!armed_) Pump(1);
}

void TcpPeer::Close(absl::string_view reason, absl::StatusCode code) {
  absl::MutexLock lock(&mutex_);
  if (state_.load() != State::kUp) return;
  state_ = State::kClosing;
  end_ = Status(code, absl::StrCat("Connection to ", name(), " was closed here: ", reason));
  // The IO thread writes the Goodbye after what is queued, and keeps the time.
  Arm(true);
}

void TcpPeer::FillWriter() {
  while (writer_.frames() < kGatherFrames && writer_.bytes() < kGatherBytes && queue_.Ready()) {
    OutFrame frame = queue_.Pop();
    const bool is_bulk = IsBulk(frame.header.kind);
    if (lender_ != nullptr) lender_->Lend(frame);
    const bool is_callers = IsCallerKind(frame.header.kind) || is_bulk;
    if (passage_ != nullptr && is_callers) {
      passage_->Send(std::move(frame), is_bulk);
    } else {
      writer_.Add(std::move(frame));
    }
  }
  if (!IsGoodbyeDue() || !writer_.empty()) return;
  goodbye_queued_ = true;
  const uint64_t frames = passage_ == nullptr ? 0 : passage_->given();
  writer_.Add(MakeControl(FrameKind::kGoodbye, frames, end_.message()));
}

bool TcpPeer::IsGoodbyeDue() const {
  return state_.load() == State::kClosing && !goodbye_queued_ && queue_.empty() &&
         (passage_ == nullptr || passage_->under_way() == 0);
}

void TcpPeer::Arm(bool want) {
  if (armed_ == want) return;
  armed_ = want;
  epoll_event event = {};
  event.events = EPOLLIN | (want ? static_cast<uint32_t>(EPOLLOUT) : 0u);
  event.data.ptr = this;
  // Fails only for a socket that is gone, which the IO thread then knows.
  epoll_ctl(setting_.epoll_fd, EPOLL_CTL_MOD, channel_.fd(), &event);
}

bool TcpPeer::WantsRoom() const {
  if (broken_.load()) return false;
  if (channel_.has_output()) return true;
  // Else what the peer says next lets it go on, and OnReadable sees to that.
  if (!channel_.is_ready()) return false;
  return !writer_.empty() || queue_.Ready() || IsGoodbyeDue();
}

void TcpPeer::Pump(int max_writes) {
  if (writing_ || broken_.load()) return;
  writing_ = true;
  std::vector<OutFrame> finished;
  bool blocked = false;
  for (int i = 0; i < max_writes && !blocked && state_.load() != State::kDown; ++i) {
    FillWriter();
    if (writer_.empty() && !channel_.has_output()) break;
    mutex_.Unlock();
    const StatusOr<FrameWriter::Outcome> outcome = writer_.Write(&channel_, &finished);
    mutex_.Lock();
    blocked = !outcome.ok() || *outcome == FrameWriter::Outcome::kBlocked;
    if (!outcome.ok()) {
      // The IO thread reads what is left, perhaps a reason, and ends it.
      broken_ = true;
      shutdown(channel_.fd(), SHUT_RDWR);
    }
  }
  sent_something_.store(true, std::memory_order_relaxed);
  for (const OutFrame& frame : finished) {
    ++sent_stats_.frames_sent;
    sent_stats_.bytes_sent += frame.wire_bytes();
  }
  writing_ = false;
  std::vector<OutFrame> lost;
  Status end = end_;
  if (state_.load() == State::kDown) {
    lost = writer_.TakeAll();
    channel_.Close();
  } else {
    // Where frames go another way, the other side closes when it has got them.
    if (goodbye_queued_ && writer_.empty() && !channel_.has_output() && !broken_.load() &&
        passage_ == nullptr) {
      shutdown(channel_.fd(), SHUT_WR);
    }
    Arm(WantsRoom());
  }
  if (finished.empty() && lost.empty()) return;
  mutex_.Unlock();
  FinishAll(std::move(finished), absl::OkStatus());
  FinishAll(std::move(lost), end);
  mutex_.Lock();
}

PeerStats TcpPeer::stats() const {
  absl::MutexLock lock(&mutex_);
  PeerStats stats = sent_stats_;
  stats.frames_received = frames_received_.load(std::memory_order_relaxed);
  stats.bytes_received = bytes_received_.load(std::memory_order_relaxed);
  stats.queued_bytes = queue_.queued_bytes();
  if (lender_ != nullptr) stats.frames_lent = lender_->frames_lent();
  if (passage_ != nullptr) {
    const PassageStats passed = passage_->stats();
    stats.frames_sent += passed.frames_sent;
    stats.bytes_sent += passed.bytes_sent;
    stats.bytes_received += passed.bytes_received;
  }
  stats.round_trip = absl::Nanoseconds(round_trip_ns_.load(std::memory_order_relaxed));
  return stats;
}

// ---- The IO thread.

Status TcpPeer::OnEvents(uint32_t events, int64_t now_ns) {
  if (state_.load() == State::kConnecting) return FinishConnect();
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) WEFT_RETURN_IF_ERROR(OnReadable(now_ns));
  if ((events & EPOLLOUT) != 0) {
    absl::MutexLock lock(&mutex_);
    // Whoever is writing arms again when it stops, if there is more.
    if (writing_) {
      Arm(false);
    } else {
      Pump(kFlushWrites);
    }
  }
  return absl::OkStatus();
}

Status TcpPeer::FinishConnect() {
  WEFT_RETURN_IF_ERROR(ConnectError(channel_.fd()));
  absl::MutexLock lock(&mutex_);
  state_ = State::kGreeting;
  QueueHello();
  Pump(1);
  return absl::OkStatus();
}

void TcpPeer::QueueHello() {
  OutFrame hello = MakeControl(FrameKind::kHello, 0, *setting_.hello);
  if (passage_ == nullptr) {
    queue_.PushOwn(std::move(hello));
    return;
  }
  hello.header.key = setting_.carrier->number();
  queue_.PushOwn(std::move(hello));
  queue_.PushOwn(MakeControl(FrameKind::kWay, 0, passage_->Offer()));
}

Status TcpPeer::OnReadable(int64_t now_ns) {
  if (state_.load() == State::kRefused) return DrainRefused();
  const uint64_t before = reader_.bytes();
  const bool was_ready = channel_.is_ready();
  const StatusOr<FrameReader::Outcome> outcome = ReadFrames();
  if (reader_.bytes() != before) {
    last_received_ns_ = now_ns;
    bytes_received_.store(reader_.bytes(), std::memory_order_relaxed);
  }
  if (channel_.has_output() || was_ready != channel_.is_ready()) {
    absl::MutexLock lock(&mutex_);
    Pump(kFlushWrites);
  }
  const bool is_over =
      outcome.ok() ? *outcome == FrameReader::Outcome::kEnd : absl::IsUnavailable(outcome.status());
  if (is_over && !channel_.is_ready()) {
    return Unavailable("it went away in the TLS handshake: has it no secret of the job?");
  }
  if (!outcome.ok()) return EndOrRefuse(outcome.status());
  if (!is_over) return absl::OkStatus();
  if (goodbye_.has_value()) return Unavailable("it said goodbye: ", *goodbye_);
  return Unavailable(reader_.mid_frame() ? "it went away in the middle of a frame"
                                         : "it went away without a goodbye");
}

StatusOr<FrameReader::Outcome> TcpPeer::ReadFrames() {
  StatusOr<FrameReader::Outcome> outcome = reader_.Read(&channel_, kReadBudget, this);
  // Beyond the budget the socket wakes us again, but not for what it has given already.
  channel_.set_buffered_only(true);
  while (outcome.ok() && (channel_.has_failed() ||
                          (*outcome == FrameReader::Outcome::kMore && channel_.has_input()))) {
    outcome = reader_.Read(&channel_, kReadBudget, this);
  }
  channel_.set_buffered_only(false);
  return outcome;
}

Status TcpPeer::EndOrRefuse(const Status& why) {
  const bool refuse = !outgoing_ && state_.load() == State::kGreeting &&
                      (absl::IsPermissionDenied(why) || absl::IsFailedPrecondition(why));
  if (absl::IsUnavailable(why) && reader_.mid_frame()) {
    return Unavailable(why.message(), ", in the middle of a frame");
  }
  if (!refuse) return why;
  Refuse(why);
  return absl::OkStatus();
}

Status TcpPeer::DrainRefused() {
  // Read until the other side closes: closing first would take back the reason we sent.
  char waste[4096];
  const ssize_t got = recv(channel_.fd(), waste, sizeof(waste), 0);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return absl::OkStatus();
  return Unavailable("it was refused");
}

void TcpPeer::Refuse(const Status& why) {
  setting_.host->PeerRefused(this, why);
  {
    absl::MutexLock lock(&mutex_);
    state_ = State::kRefused;
    OutFrame frame = MakeControl(FrameKind::kGoodbye, 0, why.message());
    frame.header.key = static_cast<uint32_t>(why.code());
    queue_.PushOwn(std::move(frame));
    Pump(1);
  }
  shutdown(channel_.fd(), SHUT_WR);
}

StatusOr<Region> TcpPeer::FrameBegins(const FrameHeader& header, absl::string_view meta) {
  const State state = state_.load();
  if (state == State::kGreeting) return InvalidArgument("Frame with a body before Hello");
  const bool bulk = IsBulk(header.kind);
  if (bulk) {
    absl::MutexLock lock(&mutex_);
    credit_return_.Owe(header.body_bytes);
  }
  if (state != State::kUp) return Region();
  Region region = setting_.handler->ReceiveBuffer(shared_from_this(), header, meta);
  if (region.data == nullptr && bulk) ReturnCredit(header.body_bytes);
  return region;
}

Status TcpPeer::FrameEnds(const FrameHeader& header, absl::string_view meta, Region body) {
  const State state = state_.load();
  if (state == State::kGreeting) return Greet(header, meta);
  frames_received_.fetch_add(1, std::memory_order_relaxed);
  // What this frame is the answer to may have been read from memory lent: have it back first.
  if (lender_ != nullptr) lender_->Sweep();
  if (!IsCallerKind(header.kind)) return OwnFrame(header, meta);
  if (state != State::kUp) return absl::OkStatus();
  setting_.handler->FrameReceived(shared_from_this(), header, meta, std::move(body));
  if (setting_.options->auto_credit && IsBulk(header.kind)) ReturnCredit(header.body_bytes);
  return absl::OkStatus();
}

Status TcpPeer::OwnFrame(const FrameHeader& header, absl::string_view meta) {
  switch (header.kind) {
    case FrameKind::kPing:
      SendOwn(MakeControl(FrameKind::kPong, header.step));
      return absl::OkStatus();
    case FrameKind::kPong:
      if (header.step == static_cast<uint64_t>(last_ping_ns_) && last_ping_ns_ != 0) {
        round_trip_ns_ = MonotonicNanos() - last_ping_ns_;
      }
      return absl::OkStatus();
    case FrameKind::kCredit: {
      absl::MutexLock lock(&mutex_);
      WEFT_RETURN_IF_ERROR(queue_.AddCredit(header.step));
      if (!armed_) Pump(1);
      return absl::OkStatus();
    }
    case FrameKind::kGoodbye:
      return TakeGoodbye(header, meta);
    case FrameKind::kShare:
      return AcceptOffer(meta);
    case FrameKind::kShareReply:
      if (lender_ == nullptr) return InvalidArgument("Answer to an offer that was not made");
      if (header.step != 0) lender_->Accept(static_cast<pid_t>(header.step));
      return absl::OkStatus();
    case FrameKind::kLent:
      return TakeLent(header, meta);
    default:
      return InvalidArgument("Frame out of place: kind ", FrameKindName(header.kind));
  }
}

Status TcpPeer::Greet(const FrameHeader& header, absl::string_view meta) {
  if (outgoing_ && header.kind == FrameKind::kGoodbye) {
    const auto code = static_cast<absl::StatusCode>(header.key);
    const bool known = code == absl::StatusCode::kPermissionDenied ||
                       code == absl::StatusCode::kFailedPrecondition;
    return Status(known ? code : absl::StatusCode::kUnavailable,
                  absl::StrCat("it refused us: ", meta));
  }
  if (is_way_known_) return OwnFrame(header, meta);
  if (hello_.has_value()) return TakeWay(header, meta);
  if (header.kind != FrameKind::kHello) {
    return InvalidArgument("Expected a Hello first, got kind ", FrameKindName(header.kind));
  }
  return TakeHello(header, meta);
}

Status TcpPeer::TakeHello(const FrameHeader& header, absl::string_view meta) {
  WEFT_ASSIGN_OR_RETURN(const Hello hello, ParseHello(meta));
  if (!SameToken(setting_.options->token, hello.token)) {
    return PermissionDenied("Token of the cluster does not match, task ", hello.task,
                            ": were both started with the same cluster?");
  }
  const uint32_t ours = passage_ == nullptr ? 0 : setting_.carrier->number();
  if (header.key != ours) {
    return FailedPrecondition("Task ", hello.task, " sends its tensors by ",
                              CarrierName(header.key), ", task ", setting_.options->task, " by ",
                              CarrierName(ours), ": give all tasks the same --transport");
  }
  if (passage_ == nullptr) return ComeUp(hello);
  hello_ = hello;
  return absl::OkStatus();
}

Status TcpPeer::TakeWay(const FrameHeader& header, absl::string_view meta) {
  if (header.kind != FrameKind::kWay) {
    return InvalidArgument("Expected a Way after Hello, got kind ", FrameKindName(header.kind));
  }
  is_way_known_ = true;
  if (!outgoing_) {
    absl::MutexLock lock(&mutex_);
    QueueHello();
    Pump(1);
  }
  return passage_->Open(meta);
}

void TcpPeer::PassageOpened() {
  if (state_.load() != State::kGreeting) return;
  const Status up = ComeUp(*hello_);
  if (!up.ok()) setting_.host->PeerFailed(this, up);
}

Status TcpPeer::ComeUp(const Hello& hello) {
  task_ = hello.task;
  incarnation_ = hello.incarnation;
  reader_.GrowStaging();
  {
    absl::MutexLock lock(&mutex_);
    queue_.set_window(hello.credit_bytes);
    state_ = State::kUp;
    if (!outgoing_ && passage_ == nullptr) QueueHello();
    OfferMemory();
    if (!queue_.empty()) Pump(1);
  }
  announced_ = true;
  setting_.handler->PeerUp(shared_from_this());
  setting_.host->PeerIsUp(this);
  if (passage_ != nullptr) passage_->Start();
  return absl::OkStatus();
}

Status TcpPeer::TakeGoodbye(const FrameHeader& header, absl::string_view meta) {
  goodbye_ = std::string(meta);
  goodbye_after_ = header.step;
  if (passage_ != nullptr && passage_->delivered() < goodbye_after_) return absl::OkStatus();
  return Unavailable("it said goodbye: ", meta);
}

void TcpPeer::PassageMoved() {
  heard_ = true;
  if (goodbye_.has_value() && passage_->delivered() >= goodbye_after_)
    setting_.host->PeerFailed(this, Unavailable("it said goodbye: ", *goodbye_));
  if (state_.load() != State::kClosing) return;
  absl::MutexLock lock(&mutex_);
  if (IsGoodbyeDue()) Pump(1);
}

void TcpPeer::PassageFailed(const Status& why) { setting_.host->PeerFailed(this, why); }

void TcpPeer::OfferMemory() {
  if (setting_.options->shared_memory == nullptr || !SameHost(channel_.fd())) return;
  StatusOr<std::unique_ptr<shm::Lender>> lender =
      shm::Lender::Make(*setting_.options->shared_memory);
  if (!lender.ok()) return;  // then everything is copied
  lender_ = *std::move(lender);
  queue_.PushOwn(MakeControl(FrameKind::kShare, 0, lender_->Offer()));
}

Status TcpPeer::AcceptOffer(absl::string_view offer) {
  if (borrower_ != nullptr) return InvalidArgument("Memory is offered twice");
  StatusOr<std::unique_ptr<shm::Borrower>> borrower = shm::Borrower::Open(offer);
  if (absl::IsInvalidArgument(borrower.status())) return borrower.status();
  if (borrower.ok()) borrower_ = *std::move(borrower);
  const uint64_t pid = borrower_ == nullptr ? 0 : static_cast<uint64_t>(getpid());
  SendOwn(MakeControl(FrameKind::kShareReply, pid));
  return absl::OkStatus();
}

Status TcpPeer::TakeLent(const FrameHeader& header, absl::string_view meta) {
  if (borrower_ == nullptr) return InvalidArgument("Lent frame without an offer");
  WEFT_ASSIGN_OR_RETURN(std::optional<shm::Borrower::Frame> frame,
                        borrower_->Take(header, meta, setting_.options->max_body_bytes));
  if (!frame.has_value()) return absl::OkStatus();
  {
    absl::MutexLock lock(&mutex_);
    credit_return_.Owe(frame->header.body_bytes);
  }
  const FrameHeader inner = frame->header;
  if (state_.load() != State::kUp) return absl::OkStatus();
  setting_.handler->FrameReceived(shared_from_this(), inner, frame->meta, std::move(frame->body));
  if (setting_.options->auto_credit) ReturnCredit(inner.body_bytes);
  return absl::OkStatus();
}

Status TcpPeer::OnTick(int64_t now_ns) {
  if (lender_ != nullptr) lender_->Sweep();
  switch (state_.load()) {
    case State::kConnecting:
    case State::kGreeting:
    case State::kRefused:
      if (now_ns < deadline_ns_) return absl::OkStatus();
      return DeadlineExceeded(state_.load() == State::kConnecting ? "no answer in time"
                                                                  : "no Hello in time");
    case State::kClosing: {
      reader_.DropBody();
      if (linger_end_ns_ == 0) {
        linger_end_ns_ = now_ns + absl::ToInt64Nanoseconds(setting_.options->linger);
      }
      if (now_ns >= linger_end_ns_) return Cancelled("it did not take what was queued in time");
      return absl::OkStatus();
    }
    case State::kUp:
      return CheckAlive(now_ns);
    case State::kDown:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

Status TcpPeer::CheckAlive(int64_t now_ns) {
  const int64_t dead_ns = absl::ToInt64Nanoseconds(setting_.options->dead_after);
  if (std::exchange(heard_, false)) last_received_ns_ = now_ns;
  if (passage_ != nullptr) WEFT_RETURN_IF_ERROR(passage_->CheckMoving(now_ns, dead_ns));
  if (now_ns - last_received_ns_ > dead_ns) {
    return Unavailable("no byte came for ", absl::FormatDuration(setting_.options->dead_after));
  }
  // Bytes may have come, too few to wake us: on a slow network that is life.
  if (now_ns - last_received_ns_ > dead_ns / 4) reader_.ReportEveryByte(&channel_);
  const bool same_frame = reader_.mid_frame() && reader_.frames() == drip_mark_frames_;
  if (!same_frame || drip_mark_ns_ == 0 || reader_.bytes() - drip_mark_bytes_ >= kDripBytes) {
    drip_mark_ns_ = now_ns;
    drip_mark_bytes_ = reader_.bytes();
    drip_mark_frames_ = reader_.frames();
  } else if (now_ns - drip_mark_ns_ > dead_ns) {
    return Unavailable("a frame dripped in too slowly");
  }
  if (sent_something_.exchange(false)) last_sent_ns_ = now_ns;
  if (now_ns - last_sent_ns_ >= absl::ToInt64Nanoseconds(setting_.options->ping_interval)) {
    last_ping_ns_ = MonotonicNanos();
    SendOwn(MakeControl(FrameKind::kPing, static_cast<uint64_t>(last_ping_ns_)));
  }
  return absl::OkStatus();
}

void TcpPeer::GoDown(const Status& why) {
  std::vector<OutFrame> lost;
  Status end;
  {
    absl::MutexLock lock(&mutex_);
    if (state_.load() == State::kDown) return;
    // A close that began here stays Cancelled whatever ends it.
    if (state_.load() != State::kClosing) end_ = why;
    end = end_;
    state_ = State::kDown;
    epoll_ctl(setting_.epoll_fd, EPOLL_CTL_DEL, channel_.fd(), nullptr);
    lost = queue_.TakeAll();
  }
  // Before the socket closes, by which the other side knows that this one is gone.
  if (passage_ != nullptr) passage_->End(end);
  {
    absl::MutexLock lock(&mutex_);
    if (!writing_) {
      for (OutFrame& frame : writer_.TakeAll()) lost.push_back(std::move(frame));
      channel_.Close();
    }
  }
  reader_.DropBody();
  FinishAll(std::move(lost), end);
  if (lender_ != nullptr) lender_->End();
  if (announced_) setting_.handler->PeerDown(shared_from_this(), end);
}

}  // namespace weft::transport::tcp
