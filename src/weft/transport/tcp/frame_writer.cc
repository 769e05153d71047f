// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/tcp/frame_writer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/uio.h>

namespace weft::transport::tcp {
namespace {

constexpr size_t kMaxPieces = 128;
// One call never keeps a thread longer than it takes to copy this.
constexpr uint64_t kMaxBytesPerCall = 8 << 20;

// Collects the pieces of frames for one sendmsg, skipping what has left.
class Pieces {
 public:
  explicit Pieces(uint64_t skip) : skip_(skip) {}

  // False when there is no room for more.
  bool Add(const void* data, uint64_t size) {
    if (skip_ >= size) {
      skip_ -= size;
      return true;
    }
    const uint64_t take = std::min(size - skip_, kMaxBytesPerCall - bytes_);
    pieces_[count_++] = {const_cast<char*>(static_cast<const char*>(data)) + skip_, take};
    bytes_ += take;
    skip_ = 0;
    return count_ < kMaxPieces && bytes_ < kMaxBytesPerCall;
  }

  iovec* data() { return pieces_; }
  size_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

 private:
  iovec pieces_[kMaxPieces];
  size_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t skip_;
};

}  // namespace

void FrameWriter::Add(OutFrame frame) {
  bytes_ += frame.wire_bytes();
  Entry& entry = frames_.emplace_back();
  EncodeHeader(frame.header, entry.header);
  entry.frame = std::move(frame);
}

StatusOr<FrameWriter::Outcome> FrameWriter::Write(Channel* channel,
                                                  std::vector<OutFrame>* finished) {
  Pieces pieces(offset_);
  for (const Entry& entry : frames_) {
    bool room = pieces.Add(entry.header.data(), kHeaderBytes) &&
                pieces.Add(entry.frame.meta.data(), entry.frame.meta.size());
    for (size_t i = 0; room && i < entry.frame.body.size(); ++i) {
      room = pieces.Add(entry.frame.body[i].data, entry.frame.body[i].size);
    }
    if (!room) break;
  }
  const ssize_t written = channel->Write(pieces.data(), static_cast<int>(pieces.count()));
  if (written < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Outcome::kBlocked;
    return channel->WhyBroken(errno);
  }
  Advance(static_cast<uint64_t>(written), finished);
  if (channel->has_output()) return Outcome::kBlocked;
  if (frames_.empty()) return Outcome::kAll;
  return static_cast<uint64_t>(written) < pieces.bytes() ? Outcome::kBlocked : Outcome::kPart;
}

void FrameWriter::Advance(uint64_t written, std::vector<OutFrame>* finished) {
  bytes_ -= written;
  offset_ += written;
  while (!frames_.empty() && offset_ >= frames_.front().frame.wire_bytes()) {
    offset_ -= frames_.front().frame.wire_bytes();
    finished->push_back(std::move(frames_.front().frame));
    frames_.pop_front();
  }
}

std::vector<OutFrame> FrameWriter::TakeAll() {
  std::vector<OutFrame> frames;
  for (Entry& entry : frames_) frames.push_back(std::move(entry.frame));
  frames_.clear();
  offset_ = 0;
  bytes_ = 0;
  return frames;
}

}  // namespace weft::transport::tcp
