// SPDX-License-Identifier: Apache-2.0
// The connection on which what variables hold goes from the old process to the new one, received
// where it shall lie.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/handover/variable_rounds.h"
#include "weft/transport/endpoint.h"

namespace weft::handover {

// Of either end.
struct StreamOptions {
  std::string task;           // "/job:ps/replica:0/task:0", of both
  uint64_t incarnation = 0;   // of this process
  std::string token;          // tasks of one cluster share it
  std::optional<JobTls> tls;  // of the job; none: in the clear
};

// The old process's end. Thread-safe.
class StreamSender final : private transport::FrameHandler {
 public:
  // Listens at `bind` for the process of incarnation `receiver`. `lost` is called, on a thread that
  // must not block, when its connection ends.
  static StatusOr<std::unique_ptr<StreamSender>> Start(const StreamOptions& options,
                                                       const std::string& bind, uint64_t receiver,
                                                       std::function<void()> lost);
  ~StreamSender() override;

  // "host:port" as bound.
  const std::string& address() const { return address_; }
  // Whether the other process has come.
  bool is_connected();
  // Sends the bytes, which `values` holds, and waits until they have left. Unavailable if the other
  // process is not there or goes away; DeadlineExceeded if nothing moves for ten seconds.
  Status Send(const std::vector<ChangedRange>& ranges, const VariableRounds& values);

 private:
  StreamSender(uint64_t receiver, std::function<void()> lost)
      : receiver_(receiver), lost_(std::move(lost)) {}
  void PeerUp(const transport::PeerRef& peer) override;
  transport::Region ReceiveBuffer(const transport::PeerRef&, const transport::FrameHeader&,
                                  absl::string_view) override {
    return {};
  }
  void FrameReceived(const transport::PeerRef&, const transport::FrameHeader&, absl::string_view,
                     transport::Region) override {}
  void PeerDown(const transport::PeerRef& peer, const Status& why) override;

  const uint64_t receiver_;
  const std::function<void()> lost_;
  std::string address_;
  absl::Mutex mutex_;
  transport::PeerRef peer_ ABSL_GUARDED_BY(mutex_);
  uint64_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes
  uint64_t left_ ABSL_GUARDED_BY(mutex_) = 0;       // bytes, of all that were sent
  Status failure_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<transport::Endpoint> endpoint_;
};

// The new process's end. Thread-safe.
class StreamReceiver final : private transport::FrameHandler {
 public:
  static StatusOr<std::unique_ptr<StreamReceiver>> Connect(const StreamOptions& options,
                                                           const std::string& address);
  ~StreamReceiver() override;

  // Where the bytes of a variable go; before they are sent.
  void Receive(uint32_t variable, const Tensor& value);
  // Waits until so many bytes have come since the connection was made. Errors as of Send;
  // InvalidArgument for bytes that have no place.
  Status WaitFor(uint64_t bytes);

 private:
  StreamReceiver() = default;
  void PeerUp(const transport::PeerRef&) override {}
  transport::Region ReceiveBuffer(const transport::PeerRef& peer,
                                  const transport::FrameHeader& header,
                                  absl::string_view meta) override;
  void FrameReceived(const transport::PeerRef& peer, const transport::FrameHeader& header,
                     absl::string_view meta, transport::Region body) override;
  void PeerDown(const transport::PeerRef& peer, const Status& why) override;
  // Where the frame's bytes go; empty, and noted, if that is nowhere.
  transport::Region Place(const transport::FrameHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::vector<Tensor> values_ ABSL_GUARDED_BY(mutex_);
  uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes
  Status failure_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<transport::Endpoint> endpoint_;
};

}  // namespace weft::handover
