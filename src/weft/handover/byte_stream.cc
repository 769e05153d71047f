// SPDX-License-Identifier: Apache-2.0
#include "weft/handover/byte_stream.h"

#include <cstring>
#include <utility>

#include "absl/time/clock.h"

#include "weft/transport/tcp/endpoint.h"

namespace weft::handover {
namespace {

using transport::FrameHeader;
using transport::FrameKind;
using transport::PeerRef;
using transport::Region;

// Without a byte.
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);
constexpr uint64_t kMostUnderWay = uint64_t{128} << 20;

transport::EndpointOptions OptionsFrom(const StreamOptions& options) {
  transport::EndpointOptions endpoint;
  endpoint.task = options.task;
  endpoint.incarnation = options.incarnation;
  endpoint.token = "handover of " + options.token;
  endpoint.tls = options.tls;
  endpoint.dead_after = kPatience;
  if (endpoint.token.size() > transport::kMaxTokenBytes)
    endpoint.token.resize(transport::kMaxTokenBytes);
  return endpoint;
}

}  // namespace

StatusOr<std::unique_ptr<StreamSender>> StreamSender::Start(const StreamOptions& options,
                                                            const std::string& bind,
                                                            uint64_t receiver,
                                                            std::function<void()> lost) {
  std::unique_ptr<StreamSender> sender(new StreamSender(receiver, std::move(lost)));
  WEFT_ASSIGN_OR_RETURN(sender->endpoint_,
                        transport::tcp::MakeEndpoint(OptionsFrom(options), sender.get()));
  WEFT_ASSIGN_OR_RETURN(sender->address_, sender->endpoint_->Listen(bind));
  return sender;
}

StreamSender::~StreamSender() {
  if (endpoint_ != nullptr) endpoint_->Shutdown();
}

bool StreamSender::is_connected() {
  absl::MutexLock lock(&mutex_);
  return peer_ != nullptr;
}

void StreamSender::PeerUp(const PeerRef& peer) {
  if (peer->incarnation() != receiver_) {
    peer->Close("another process was expected", absl::StatusCode::kCancelled);
    return;
  }
  absl::MutexLock lock(&mutex_);
  peer_ = peer;
}

void StreamSender::PeerDown(const PeerRef& peer, const Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (peer != peer_) return;
    peer_.reset();
    if (failure_.ok())
      failure_ = Unavailable("The process that takes over is gone: ", why.message());
  }
  lost_();
}

Status StreamSender::Send(const std::vector<ChangedRange>& ranges, const VariableRounds& values) {
  // Waits until at most `most` bytes are under way.
  const auto wait = [this](uint64_t most) -> Status {
    absl::MutexLock lock(&mutex_);
    const auto done = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return under_way_ <= most || !failure_.ok();
    };
    for (uint64_t before = left_; !mutex_.AwaitWithTimeout(absl::Condition(&done), kPatience);
         before = left_) {
      if (before == left_) {
        return DeadlineExceeded("The process that takes over took nothing for ",
                                absl::FormatDuration(kPatience));
      }
    }
    return failure_;
  };
  {
    absl::MutexLock lock(&mutex_);
    const auto is_there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return peer_ != nullptr || !failure_.ok();
    };
    mutex_.AwaitWithTimeout(absl::Condition(&is_there), kPatience);
  }
  for (const ChangedRange& range : ranges) {
    WEFT_RETURN_IF_ERROR(wait(kMostUnderWay));
    PeerRef peer;
    {
      absl::MutexLock lock(&mutex_);
      if (peer_ == nullptr) return Unavailable("The process that takes over is not connected");
      peer = peer_;
      under_way_ += range.bytes;
    }
    FrameHeader header;
    header.kind = FrameKind::kTensor;
    header.key = range.variable;
    header.step = range.offset;
    // Held by `values`, also when this ends early: the endpoint goes before them.
    std::vector<Region> body;
    body.push_back(Region::Of({values.BytesOf(range.variable) + range.offset, range.bytes}));
    peer->Send(header, "", std::span<Region>(body),
               [this, bytes = range.bytes](const Status& sent) {
                 absl::MutexLock lock(&mutex_);
                 under_way_ -= bytes;
                 left_ += bytes;
                 if (!sent.ok() && failure_.ok()) failure_ = sent;
               });
  }
  return wait(0);
}

StatusOr<std::unique_ptr<StreamReceiver>> StreamReceiver::Connect(const StreamOptions& options,
                                                                  const std::string& address) {
  std::unique_ptr<StreamReceiver> receiver(new StreamReceiver());
  WEFT_ASSIGN_OR_RETURN(receiver->endpoint_,
                        transport::tcp::MakeEndpoint(OptionsFrom(options), receiver.get()));
  WEFT_RETURN_IF_ERROR(
      receiver->endpoint_->Connect(address, absl::Now() + kConnectTimeout).status());
  return receiver;
}

StreamReceiver::~StreamReceiver() {
  if (endpoint_ != nullptr) endpoint_->Shutdown();
}

void StreamReceiver::Receive(uint32_t variable, const Tensor& value) {
  absl::MutexLock lock(&mutex_);
  if (values_.size() <= variable) values_.resize(variable + 1);
  values_[variable] = value;
}

Region StreamReceiver::Place(const FrameHeader& header) {
  if (header.kind == FrameKind::kTensor && header.key < values_.size() &&
      values_[header.key].IsInitialized()) {
    Tensor& value = values_[header.key];
    const uint64_t bytes = value.size_bytes();
    if (header.step <= bytes && header.body_bytes <= bytes - header.step) {
      return Region(value.bytes() + header.step, header.body_bytes,
                    Ref<RefCounted>(value.buffer()));
    }
  }
  if (failure_.ok()) {
    failure_ =
        InvalidArgument("The old process sent ", header.body_bytes, " bytes at ", header.step,
                        " of variable ", header.key, ", which has no such place");
  }
  return {};
}

Region StreamReceiver::ReceiveBuffer(const PeerRef&, const FrameHeader& header, absl::string_view) {
  absl::MutexLock lock(&mutex_);
  return Place(header);
}

void StreamReceiver::FrameReceived(const PeerRef&, const FrameHeader& header, absl::string_view,
                                   Region body) {
  absl::MutexLock lock(&mutex_);
  const Region place = Place(header);
  if (place.data == nullptr) return;
  // The sender's own bytes, where it is in this process.
  if (place.data != body.data) std::memcpy(place.data, body.data, body.size);
  received_ += body.size;
}

void StreamReceiver::PeerDown(const PeerRef&, const Status& why) {
  absl::MutexLock lock(&mutex_);
  if (failure_.ok()) failure_ = Unavailable("The old process is gone: ", why.message());
}

Status StreamReceiver::WaitFor(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto done = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return received_ >= bytes || !failure_.ok();
  };
  for (uint64_t before = received_; !mutex_.AwaitWithTimeout(absl::Condition(&done), kPatience);
       before = received_) {
    if (before == received_) {
      return DeadlineExceeded("The old process sent nothing for ", absl::FormatDuration(kPatience));
    }
  }
  return received_ >= bytes ? absl::OkStatus() : failure_;
}

}  // namespace weft::handover
