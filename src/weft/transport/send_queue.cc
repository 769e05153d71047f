// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/send_queue.h"

#include <algorithm>
#include <utility>

namespace weft::transport {

void OutFrame::Finish(const Status& status) {
  body.clear();
  if (done) std::exchange(done, nullptr)(status);
}

Status MakeFrame(FrameHeader header, absl::string_view meta, std::span<Region> body,
                 OutFrame* out) {
  if (!IsCallerKind(header.kind)) {
    return InvalidArgument("Frame of this kind belongs to the transport: ",
                           FrameKindName(header.kind));
  }
  if (meta.size() > kMaxMetaBytes) {
    return InvalidArgument("Meta of a frame is too long: ", meta.size(), " bytes, at most ",
                           kMaxMetaBytes);
  }
  if ((header.flags & ~kCallerFlags) != 0) {
    return InvalidArgument("Flags of a frame use reserved bits: ", header.flags);
  }
  uint64_t bytes = 0;
  for (Region& region : body) {
    bytes += region.size;
    if (region.size > kMaxBodyBytes || bytes > kMaxBodyBytes) {
      return InvalidArgument("Body of a frame is too long: at most ", kMaxBodyBytes, " bytes");
    }
  }
  for (Region& region : body) {
    if (region.size > 0) out->body.push_back(std::move(region));
  }
  header.body_bytes = bytes;
  header.meta_bytes = static_cast<uint32_t>(meta.size());
  out->header = header;
  out->meta.assign(meta.data(), meta.size());
  return absl::OkStatus();
}

OutFrame MakeControl(FrameKind kind, uint64_t value, absl::string_view meta) {
  OutFrame frame;
  frame.header.kind = kind;
  frame.header.step = value;
  frame.meta = std::string(meta.substr(0, kMaxMetaBytes));
  frame.header.meta_bytes = static_cast<uint32_t>(frame.meta.size());
  return frame;
}

void FinishAll(std::vector<OutFrame> frames, const Status& status) {
  for (OutFrame& frame : frames) frame.Finish(status);
}

bool SendQueue::HasCredit(const OutFrame& frame) const {
  const uint64_t bytes = frame.header.body_bytes;
  return under_way_ < std::max<uint64_t>(1, window_ / 4) ||
         (bytes <= window_ && under_way_ <= window_ - bytes);
}

void SendQueue::Pay(const OutFrame& frame) {
  if (IsBulk(frame.header.kind)) under_way_ += frame.header.body_bytes;
}

Status SendQueue::Push(OutFrame& frame) {
  const uint64_t bytes = frame.wire_bytes();
  if (control_.size() + bulk_.size() >= max_frames_) {
    return ResourceExhausted("Too many frames wait to be sent: at most ", max_frames_);
  }
  // One frame alone may be longer than the limit, else it could never be sent.
  if (!empty() && queued_bytes_ + bytes > max_bytes_) {
    return ResourceExhausted("Too many bytes wait to be sent: ", queued_bytes_, " and ", bytes,
                             " more, at most ", max_bytes_);
  }
  queued_bytes_ += bytes;
  (IsBulk(frame.header.kind) ? bulk_ : control_).push_back(std::move(frame));
  return absl::OkStatus();
}

OutFrame SendQueue::Pop() {
  std::deque<OutFrame>& lane = !own_.empty() ? own_ : !control_.empty() ? control_ : bulk_;
  OutFrame frame = std::move(lane.front());
  lane.pop_front();
  if (&lane != &own_) queued_bytes_ -= frame.wire_bytes();
  Pay(frame);
  return frame;
}

Status SendQueue::AddCredit(uint64_t bytes) {
  if (bytes > under_way_) {
    return InvalidArgument("Peer gave back more credit than it got: ", bytes, " bytes of ",
                           under_way_);
  }
  under_way_ -= bytes;
  return absl::OkStatus();
}

std::vector<OutFrame> SendQueue::TakeAll() {
  std::vector<OutFrame> frames;
  frames.reserve(own_.size() + control_.size() + bulk_.size());
  for (std::deque<OutFrame>* lane : {&own_, &control_, &bulk_}) {
    for (OutFrame& frame : *lane) frames.push_back(std::move(frame));
    lane->clear();
  }
  queued_bytes_ = 0;
  return frames;
}

uint64_t CreditReturn::Add(uint64_t bytes) {
  bytes = std::min(bytes, owed_);
  owed_ -= bytes;
  gathered_ += bytes;
  if (gathered_ < std::max<uint64_t>(1, window_ / 4)) return 0;
  return std::exchange(gathered_, 0);
}

}  // namespace weft::transport
