// SPDX-License-Identifier: Apache-2.0
// Whatever tasks send: the engine lives, and ends what it can no longer do.
#include <cstdint>
#include <deque>
#include <string>

#include "weft/collective/engine.h"

namespace {

using weft::collective::CollectiveMember;
using weft::collective::CollectiveMessage;

// Delivers nothing; runs what is executed when it is asked to.
class Nowhere final : public weft::collective::Network {
 public:
  Nowhere() {
    self_.set_task("/job:w/replica:0/task:0");
    self_.set_incarnation(9);
    self_.set_rank(-1);
  }
  const CollectiveMember& self() const override { return self_; }
  void Send(const std::string&, CollectiveMessage, std::vector<weft::Tensor>) override {}
  void Learn(const CollectiveMember&) override {}
  void After(absl::Duration, absl::AnyInvocable<void()>) override {}
  void Execute(absl::AnyInvocable<void()> what) override { soon_.push_back(std::move(what)); }
  void RunAll() {
    while (!soon_.empty()) {
      auto what = std::move(soon_.front());
      soon_.pop_front();
      what();
    }
  }

 private:
  CollectiveMember self_;
  std::deque<absl::AnyInvocable<void()>> soon_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Nowhere network;
  weft::collective::Engine engine({}, &network);
  weft::CollectiveCall call;
  call.group_key = 1;
  call.group_size = 2;
  call.device = "/job:w/replica:0/task:0/device:CPU:0";
  call.input = weft::Tensor::Vector<float>({1, 2});
  call.dtype = weft::DType::kFloat;
  call.shape = call.input.shape();
  engine.Run(std::move(call), [](weft::StatusOr<weft::Tensor>) {});
  // Messages one after the other: a byte for the length of each, a byte for its body's.
  while (size >= 2) {
    const size_t length = std::min<size_t>(data[0], size - 2);
    const size_t body = std::min<size_t>(data[1], size - 2 - length);
    CollectiveMessage message;
    if (message.ParseFromArray(data + 2, static_cast<int>(length))) {
      const absl::Span<const uint8_t> bytes(data + 2 + length, body);
      engine.Received(
          "/job:w/replica:0/task:1", message,
          weft::Tensor::FromSpan<uint8_t>(weft::Shape{static_cast<int64_t>(body)}, bytes));
    }
    data += 2 + length + body;
    size -= 2 + length + body;
    network.RunAll();
  }
  engine.TaskLost("/job:w/replica:0/task:1", weft::Unavailable("gone"));
  network.RunAll();
  return 0;
}
