// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/tcp/frame_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/uio.h>

namespace weft::transport::tcp {
namespace {

constexpr size_t kGreetingStaging = 4 * 1024;
constexpr size_t kWorkingStaging = 32 * 1024;
constexpr uint64_t kLowWater = 1 << 20;
constexpr uint64_t kLeastLowWater = 64 * 1024;
static_assert(kGreetingStaging >= kHeaderBytes + kMaxHelloBytes);

// A hint for the log: who knocks on this port by mistake.
absl::string_view GuessProtocol(const std::byte* bytes) {
  const absl::string_view text(reinterpret_cast<const char*>(bytes), 4);
  for (const absl::string_view verb : {"GET ", "PUT ", "POST", "HEAD", "OPTI", "HTTP"}) {
    if (text == verb) return "an HTTP client";
  }
  if (text == "PRI ") return "an HTTP/2 or gRPC client";
  if (text[0] == 0x16 && text[1] == 0x03) return "a TLS client: this task has no secret of the job";
  if (text[0] == 0x15 && text[1] == 0x03) return "a task that demands TLS with the job's secret";
  return "another protocol";
}

}  // namespace

FrameReader::FrameReader(uint64_t max_body_bytes)
    : max_body_bytes_(max_body_bytes), staging_(kGreetingStaging) {}

void FrameReader::GrowStaging() {
  if (staging_.size() < kWorkingStaging) staging_.resize(kWorkingStaging);
}

StatusOr<FrameReader::Outcome> FrameReader::Read(Channel* channel, uint64_t budget,
                                                 FrameSink* sink) {
  const uint64_t stop = bytes_ + budget;
  while (bytes_ < stop) {
    size_t wanted = 0;
    bool end = false;
    WEFT_ASSIGN_OR_RETURN(const size_t got, ReadOnce(channel, stop - bytes_, &wanted, &end));
    if (end) return Outcome::kEnd;
    if (got == 0) return Outcome::kDrained;
    WEFT_RETURN_IF_ERROR(Take(got, sink));
    if (got < wanted) {
      AdjustLowWater(channel);
      return Outcome::kDrained;
    }
  }
  return Outcome::kMore;
}

StatusOr<size_t> FrameReader::ReadOnce(Channel* channel, uint64_t budget, size_t* wanted,
                                       bool* end) {
  iovec pieces[2];
  size_t count = 0;
  bool stage = true;
  if (body_left_ > 0 && body_.data != nullptr) {
    // The rest of the body in place, and the next frame's head with the same call.
    pieces[count].iov_base = body_.data + (header_.body_bytes - body_left_);
    pieces[count].iov_len = std::min(body_left_, budget);
    stage = pieces[count++].iov_len == body_left_;
  }
  if (stage) pieces[count++] = {staging_.data() + end_, staging_.size() - end_};
  *wanted = pieces[0].iov_len + (count > 1 ? pieces[1].iov_len : 0);
  const ssize_t got = channel->Read(pieces, static_cast<int>(count));
  if (got == 0) *end = true;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  if (got < 0) return channel->WhyBroken(errno);
  return static_cast<size_t>(got);
}

void FrameReader::AdjustLowWater(Channel* channel) {
  // A piece at a time is cheaper than a wake-up for each packet; a quarter of the frame at most, so
  // that the sender's copy and ours overlap.
  const uint64_t piece = std::min(kLowWater, header_.body_bytes / 4);
  const bool in_place = body_left_ > 0 && body_.data != nullptr;
  SetLowWater(channel, in_place && piece >= kLeastLowWater && body_left_ >= piece
                           ? static_cast<int>(piece)
                           : 1);
}

void FrameReader::SetLowWater(Channel* channel, int bytes) {
  if (bytes == low_water_) return;
  low_water_ = bytes;
  channel->SetLowWater(bytes);
}

Status FrameReader::Take(size_t bytes, FrameSink* sink) {
  bytes_ += bytes;
  if (body_left_ > 0 && body_.data != nullptr) {
    const size_t in_place = std::min<uint64_t>(bytes, body_left_);
    body_left_ -= in_place;
    bytes -= in_place;
    end_ += bytes;
    if (body_left_ > 0) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(EndFrame(sink));
  } else {
    end_ += bytes;
  }
  return ParseStaged(sink);
}

Status FrameReader::ParseStaged(FrameSink* sink) {
  while (true) {
    if (have_meta_ && body_left_ > 0) {
      const size_t staged = std::min<uint64_t>(end_ - begin_, body_left_);
      if (body_.data != nullptr && staged > 0) {
        std::memcpy(body_.data + (header_.body_bytes - body_left_), &staging_[begin_], staged);
      }
      begin_ += staged;
      body_left_ -= staged;
      if (body_left_ > 0) break;
      WEFT_RETURN_IF_ERROR(EndFrame(sink));
    }
    WEFT_ASSIGN_OR_RETURN(const bool whole, TakeHead());
    if (!whole) break;
    if (body_left_ == 0) {
      WEFT_RETURN_IF_ERROR(EndFrame(sink));
    } else {
      WEFT_RETURN_IF_ERROR(BeginBody(sink));
    }
  }
  Compact();
  return absl::OkStatus();
}

StatusOr<bool> FrameReader::TakeHead() {
  const size_t staged = end_ - begin_;
  const std::byte* at = staging_.data() + begin_;
  if (!have_header_) {
    // Magic first, so that a short probe is turned away at once.
    const uint32_t magic = kFrameMagic;
    if (staged >= sizeof(magic) && std::memcmp(at, &magic, sizeof(magic)) != 0) {
      return InvalidArgument("Not a weft frame, it looks like ", GuessProtocol(at));
    }
    if (staged < kHeaderBytes) return false;
    WEFT_ASSIGN_OR_RETURN(
        header_,
        ParseHeader(std::span<const std::byte, kHeaderBytes>(at, kHeaderBytes), max_body_bytes_));
    have_header_ = true;
    begin_ += kHeaderBytes;
  }
  if (end_ - begin_ < header_.meta_bytes) {
    if (staging_.size() < header_.meta_bytes) staging_.resize(header_.meta_bytes);
    return false;
  }
  meta_.assign(reinterpret_cast<const char*>(staging_.data() + begin_), header_.meta_bytes);
  begin_ += header_.meta_bytes;
  body_left_ = header_.body_bytes;
  have_meta_ = true;
  return true;
}

Status FrameReader::BeginBody(FrameSink* sink) {
  WEFT_ASSIGN_OR_RETURN(body_, sink->FrameBegins(header_, meta_));
  if (body_.data != nullptr && body_.size != header_.body_bytes) {
    const size_t size = body_.size;
    body_ = Region();
    return Internal("Receive buffer has the wrong size: ", size, " bytes for a frame of ",
                    header_.body_bytes);
  }
  return absl::OkStatus();
}

Status FrameReader::EndFrame(FrameSink* sink) {
  have_header_ = false;
  have_meta_ = false;
  ++frames_;
  Region body = std::exchange(body_, Region());
  const bool dropped = header_.body_bytes > 0 && body.data == nullptr;
  if (dropped) return absl::OkStatus();
  return sink->FrameEnds(header_, meta_, std::move(body));
}

void FrameReader::Compact() {
  if (begin_ == 0) return;
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

}  // namespace weft::transport::tcp
