// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/ucx/peer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::transport::ucx {
namespace {

constexpr uint64_t kMostAhead = 1 << 20;    // frames of a lane that may wait for an earlier one
constexpr double kSlowestBytes = 16 << 20;  // under way, that patience is given once more for

// Bytes of a frame whose meta is among them.
class HeapBytes final : public RefCounted {
 public:
  explicit HeapBytes(size_t size) : bytes_(std::make_unique<std::byte[]>(size)) {}
  std::byte* data() { return bytes_.get(); }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
};

Region NewBytes(size_t size) {
  auto bytes = MakeRef<HeapBytes>(size);
  std::byte* const data = bytes->data();
  return Region(data, size, std::move(bytes));
}

}  // namespace

UcxPassage::~UcxPassage() {
  // Of a connection that never came to be.
  if (worker_ != nullptr) End(Cancelled("The connection was not made"));
}

std::string UcxPassage::Offer() const {
  std::string offer(reinterpret_cast<const char*>(&number_), sizeof(number_));
  return offer + worker_->address();
}

Status UcxPassage::Open(absl::string_view offer) {
  if (offer.size() <= sizeof(their_number_)) return InvalidArgument("Way is malformed");
  std::memcpy(&their_number_, offer.data(), sizeof(their_number_));
  offer.remove_prefix(sizeof(their_number_));
  their_address_ = std::string(offer);
  // Of two workers always the same one begins: UCX 1.13 does not survive the end of two ways that
  // were made towards each other.
  if (worker_->address() < their_address_) {
    WEFT_RETURN_IF_ERROR(GoThere());
    WEFT_RETURN_IF_ERROR(worker_->Knock(way_, their_number_));
  } else if (is_knocked_) {
    WEFT_RETURN_IF_ERROR(GoThere());
  } else {
    return absl::OkStatus();
  }
  user_->PassageOpened();
  return absl::OkStatus();
}

Status UcxPassage::GoThere() {
  WEFT_ASSIGN_OR_RETURN(way_, worker_->Reach(their_address_));
  return absl::OkStatus();
}

void UcxPassage::Knocked() {
  // It may be here before the socket's Way is.
  is_knocked_ = true;
  if (way_ != nullptr || their_address_.empty()) return;
  const Status there = GoThere();
  if (!there.ok()) return Fail(there);
  user_->PassageOpened();
}

void UcxPassage::Start() {
  is_started_ = true;
  for (const bool is_bulk : {false, true}) {
    BeginKept(is_bulk);
    Deliver(is_bulk);
  }
}

void UcxPassage::End(const Status& why) {
  if (worker_ == nullptr) return;
  Worker* const worker = std::exchange(worker_, nullptr);
  std::vector<SendDone> waiters = worker->TakeWaiters(this);
  worker->Forget(this);
  for (Lane& lane : lanes_) {
    for (const auto& [sequence, arrival] : lane.arrivals) {
      if (arrival.description != nullptr) worker->Release(arrival.description);
    }
    lane.arrivals.clear();
  }
  if (way_ != nullptr) worker->Leave(std::exchange(way_, nullptr));
  std::vector<Waiting> waiting;
  {
    absl::MutexLock lock(&mutex_);
    waiting.swap(waiting_);
  }
  for (SendDone& done : waiters) done(why);
  for (Waiting& one : waiting) one.frame.Finish(why);
}

PassageStats UcxPassage::stats() const {
  return {frames_sent_.load(), bytes_sent_.load(), bytes_received_.load()};
}

void UcxPassage::Fail(const Status& why) {
  if (!std::exchange(has_failed_, true)) user_->PassageFailed(why);
}

Status UcxPassage::CheckMoving(int64_t now_ns, int64_t patience_ns) {
  const uint64_t sent = frames_sent_.load();
  if (under_way_.load() == 0 || sent != checked_frames_ || moved_ns_ == 0) {
    moved_ns_ = now_ns;
    checked_frames_ = sent;
    return absl::OkStatus();
  }
  const double bytes = static_cast<double>(bytes_under_way_.load());
  const double allowed_ns = static_cast<double>(patience_ns) * (1 + bytes / kSlowestBytes);
  if (static_cast<double>(now_ns - moved_ns_) < allowed_ns) return absl::OkStatus();
  return Unavailable("UCX moved none of the ", under_way_.load(), " frames that are under way for ",
                     absl::FormatDuration(absl::Nanoseconds(now_ns - moved_ns_)));
}

// ---- What is sent.

void UcxPassage::Send(OutFrame frame, bool is_bulk) {
  given_.fetch_add(1);
  under_way_.fetch_add(1);
  bytes_under_way_.fetch_add(frame.header.body_bytes);
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back({std::move(frame), is_bulk});
    if (waiting_.size() > 1) return;
  }
  worker_->Wake(this);
}

void UcxPassage::SendWaiting() {
  std::vector<Waiting> waiting;
  {
    absl::MutexLock lock(&mutex_);
    waiting.swap(waiting_);
  }
  for (Waiting& one : waiting) {
    const Status sent = worker_->Send(way_, MakeOp(std::move(one.frame), one.is_bulk));
    if (!sent.ok()) Fail(sent);
  }
}

SendOp UcxPassage::MakeOp(OutFrame frame, bool is_bulk) {
  Envelope envelope;
  envelope.passage = their_number_;
  envelope.sequence = next_sequence_[is_bulk ? 1 : 0]++;
  envelope.is_bulk = is_bulk ? 1 : 0;
  envelope.has_meta_in_data = frame.meta.size() > kMostMetaInHead ? 1 : 0;
  EncodeHeader(frame.header, envelope.header);
  SendOp op;
  op.passage = this;
  op.head.assign(reinterpret_cast<const char*>(&envelope), sizeof(envelope));
  if (envelope.has_meta_in_data == 0) op.head += frame.meta;
  op.frame = std::move(frame);
  return op;
}

void UcxPassage::Sent(SendOp* op, const Status& status) {
  bytes_under_way_.fetch_sub(op->frame.header.body_bytes);
  if (status.ok()) {
    frames_sent_.fetch_add(1);
    bytes_sent_.fetch_add(op->frame.wire_bytes());
  }
  const bool is_idle = under_way_.fetch_sub(1) == 1;
  op->frame.Finish(status);
  if (!status.ok()) return Fail(status);
  if (is_idle) user_->PassageMoved();
}

// ---- What arrives.

StatusOr<UcxPassage::Arrival> UcxPassage::Parse(absl::Span<const std::byte> head, size_t bytes,
                                                bool* is_bulk, uint64_t* sequence) const {
  Envelope envelope;
  std::memcpy(&envelope, head.data(), sizeof(envelope));
  *is_bulk = envelope.is_bulk != 0;
  *sequence = envelope.sequence;
  Arrival arrival;
  WEFT_ASSIGN_OR_RETURN(arrival.header, ParseHeader(envelope.header, max_body_bytes_));
  if (!IsCallerKind(arrival.header.kind) && arrival.header.kind != FrameKind::kLent) {
    return InvalidArgument("Frame out of place: kind ", FrameKindName(arrival.header.kind));
  }
  head.remove_prefix(sizeof(envelope));
  arrival.meta.assign(reinterpret_cast<const char*>(head.data()), head.size());
  arrival.has_meta_in_data = envelope.has_meta_in_data != 0;
  arrival.bytes = bytes;
  const uint64_t meta_in_data = arrival.has_meta_in_data ? arrival.header.meta_bytes : 0;
  if (head.size() + meta_in_data != arrival.header.meta_bytes ||
      bytes != meta_in_data + arrival.header.body_bytes) {
    return InvalidArgument("Message of UCX has ", bytes, " bytes, and its frame another number");
  }
  const Lane& lane = lanes_[*is_bulk ? 1 : 0];
  if (*sequence < lane.ended || *sequence - lane.ended > kMostAhead ||
      lane.arrivals.contains(*sequence)) {
    return InvalidArgument("Frame out of order: number ", *sequence, ", expected ", lane.ended);
  }
  return arrival;
}

ucs_status_t UcxPassage::Arrived(absl::Span<const std::byte> head, void* data, size_t bytes,
                                 bool is_rendezvous) {
  if (has_failed_) return UCS_OK;
  bytes_received_.fetch_add(head.size() + bytes);
  bool is_bulk = false;
  uint64_t sequence = 0;
  StatusOr<Arrival> parsed = Parse(head, bytes, &is_bulk, &sequence);
  if (!parsed.ok()) {
    Fail(parsed.status());
    return UCS_OK;
  }
  Lane& lane = lanes_[is_bulk ? 1 : 0];
  Arrival& arrival = lane.arrivals.emplace(sequence, *std::move(parsed)).first->second;
  if (is_rendezvous) arrival.description = data;
  if (!is_started_ || sequence != lane.begun) {
    if (is_rendezvous) return UCS_INPROGRESS;
    arrival.kept.assign(static_cast<const char*>(data), bytes);
    return UCS_OK;
  }
  ++lane.begun;
  const Status begun = Begin(sequence, is_bulk, &arrival,
                             is_rendezvous ? nullptr : static_cast<const std::byte*>(data));
  // What nobody fetches UCX drops when it is told so.
  const bool is_fetched = is_rendezvous && std::exchange(arrival.description, nullptr) == nullptr;
  if (begun.ok()) {
    BeginKept(is_bulk);
    Deliver(is_bulk);
  } else {
    Fail(begun);
  }
  return is_fetched ? UCS_INPROGRESS : UCS_OK;
}

void UcxPassage::BeginKept(bool is_bulk) {
  Lane& lane = lanes_[is_bulk ? 1 : 0];
  while (!has_failed_) {
    const auto next = lane.arrivals.find(lane.begun);
    if (next == lane.arrivals.end()) return;
    Arrival& arrival = next->second;
    const bool is_here = arrival.description == nullptr;
    const Status begun =
        Begin(lane.begun++, is_bulk, &arrival,
              is_here ? reinterpret_cast<const std::byte*>(arrival.kept.data()) : nullptr);
    if (arrival.description != nullptr)
      worker_->Release(std::exchange(arrival.description, nullptr));
    arrival.kept = std::string();
    if (!begun.ok()) Fail(begun);
  }
}

Status UcxPassage::Begin(uint64_t sequence, bool is_bulk, Arrival* arrival, const std::byte* data) {
  if (arrival->bytes == 0) {
    arrival->is_whole = true;
    return absl::OkStatus();
  }
  if (arrival->has_meta_in_data) {
    if (data != nullptr) return TakeWhole(arrival, data);
    return Fetch(sequence, is_bulk, arrival, NewBytes(arrival->bytes));
  }
  WEFT_RETURN_IF_ERROR(Place(arrival));
  if (arrival->is_whole) return absl::OkStatus();
  if (data == nullptr) return Fetch(sequence, is_bulk, arrival, arrival->body);
  std::memcpy(arrival->body.data, data, arrival->bytes);
  arrival->is_whole = true;
  return absl::OkStatus();
}

Status UcxPassage::Place(Arrival* arrival) {
  WEFT_ASSIGN_OR_RETURN(arrival->body, user_->FrameBegins(arrival->header, arrival->meta));
  arrival->is_dropped = arrival->is_whole = arrival->body.data == nullptr;
  if (arrival->is_dropped || arrival->body.size == arrival->header.body_bytes)
    return absl::OkStatus();
  return Internal("Receive buffer has the wrong size: ", arrival->body.size,
                  " bytes for a frame of ", arrival->header.body_bytes);
}

// `data` begins with the meta.
Status UcxPassage::TakeWhole(Arrival* arrival, const std::byte* data) {
  arrival->meta.assign(reinterpret_cast<const char*>(data), arrival->header.meta_bytes);
  if (arrival->header.body_bytes > 0) {
    WEFT_RETURN_IF_ERROR(Place(arrival));
    if (!arrival->is_dropped)
      std::memcpy(arrival->body.data, data + arrival->meta.size(), arrival->body.size);
  }
  arrival->is_whole = true;
  return absl::OkStatus();
}

Status UcxPassage::Fetch(uint64_t sequence, bool is_bulk, Arrival* arrival, Region into) {
  ReceiveOp op;
  op.passage = this;
  op.is_bulk = is_bulk;
  op.sequence = sequence;
  op.body = into;
  bool is_whole = false;
  WEFT_RETURN_IF_ERROR(
      worker_->Receive(std::exchange(arrival->description, nullptr), std::move(op), &is_whole));
  if (!is_whole) return absl::OkStatus();
  if (arrival->has_meta_in_data) return TakeWhole(arrival, into.data);
  arrival->is_whole = true;
  return absl::OkStatus();
}

void UcxPassage::Received(ReceiveOp* op, const Status& status) {
  if (has_failed_) return;
  if (!status.ok()) return Fail(status);
  Arrival& arrival = lanes_[op->is_bulk ? 1 : 0].arrivals.find(op->sequence)->second;
  arrival.is_whole = true;
  if (arrival.has_meta_in_data) {
    const Status taken = TakeWhole(&arrival, op->body.data);
    if (!taken.ok()) return Fail(taken);
  }
  Deliver(op->is_bulk);
}

void UcxPassage::Deliver(bool is_bulk) {
  Lane& lane = lanes_[is_bulk ? 1 : 0];
  const uint64_t before = lane.ended;
  while (!has_failed_) {
    const auto next = lane.arrivals.find(lane.ended);
    if (next == lane.arrivals.end() || !next->second.is_whole) break;
    Arrival arrival = std::move(next->second);
    lane.arrivals.erase(next);
    ++lane.ended;
    if (arrival.is_dropped) continue;
    const Status taken = user_->FrameEnds(arrival.header, arrival.meta, std::move(arrival.body));
    if (!taken.ok()) Fail(taken);
  }
  if (lane.ended != before && !has_failed_) user_->PassageMoved();
}

}  // namespace weft::transport::ucx
