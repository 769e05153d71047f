// SPDX-License-Identifier: Apache-2.0
// One connection's frames as messages of UCX. Messages overtake each other there, so each has its
// place in its lane, and the user gets them in order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/transport/carrier.h"
#include "weft/transport/ucx/worker.h"

namespace weft::transport::ucx {

class UcxPassage final : public Passage {
 public:
  UcxPassage(Worker* worker, uint64_t number, PassageUser* user, uint64_t max_body_bytes)
      : number_(number), user_(user), max_body_bytes_(max_body_bytes), worker_(worker) {}
  ~UcxPassage() override;

  std::string Offer() const override;
  Status Open(absl::string_view offer) override;
  void Start() override;
  void Send(OutFrame frame, bool is_bulk) override;
  void End(const Status& why) override;
  uint64_t given() const override { return given_.load(); }
  uint64_t under_way() const override { return under_way_.load(); }
  uint64_t delivered() const override { return lanes_[0].ended + lanes_[1].ended; }
  Status CheckMoving(int64_t now_ns, int64_t patience_ns) override;
  PassageStats stats() const override;

  // The worker's. IO thread.
  uint64_t number() const { return number_; }
  const Way* way() const { return way_; }
  void Knocked();
  void SendWaiting();
  void Sent(SendOp* op, const Status& status);
  // What arrived: UCS_INPROGRESS keeps `data`, which is `description` where it has to be fetched.
  ucs_status_t Arrived(absl::Span<const std::byte> head, void* data, size_t bytes,
                       bool is_rendezvous);
  void Received(ReceiveOp* op, const Status& status);
  void Fail(const Status& why);

 private:
  struct Arrival {
    FrameHeader header;
    std::string meta;
    bool has_meta_in_data = false;
    bool is_whole = false;
    bool is_dropped = false;
    void* description = nullptr;  // of what has to be fetched
    size_t bytes = 0;             // of the data
    std::string kept;             // data that came before its turn
    Region body;
  };
  struct Lane {
    uint64_t begun = 0, ended = 0;         // frames so far
    std::map<uint64_t, Arrival> arrivals;  // from `ended` on
  };

  Status GoThere();
  StatusOr<Arrival> Parse(absl::Span<const std::byte> head, size_t bytes, bool* is_bulk,
                          uint64_t* sequence) const;
  // In the order of the lane, with data that is here (`data`) or has to be fetched.
  Status Begin(uint64_t sequence, bool is_bulk, Arrival* arrival, const std::byte* data);
  Status Place(Arrival* arrival);
  Status Fetch(uint64_t sequence, bool is_bulk, Arrival* arrival, Region into);
  Status TakeWhole(Arrival* arrival, const std::byte* data);
  void BeginKept(bool is_bulk);
  void Deliver(bool is_bulk);
  SendOp MakeOp(OutFrame frame, bool is_bulk);

  const uint64_t number_;  // ours
  PassageUser* const user_;
  const uint64_t max_body_bytes_;
  Worker* worker_;  // null: ended
  Way* way_ = nullptr;
  std::string their_address_;
  uint64_t their_number_ = 0;
  bool is_knocked_ = false;
  bool is_started_ = false;
  bool has_failed_ = false;
  std::array<Lane, 2> lanes_;                   // control, bulk
  std::array<uint64_t, 2> next_sequence_ = {};  // of what is sent
  int64_t moved_ns_ = 0;  // when something left last, or nothing was under way
  uint64_t checked_frames_ = 0;

  absl::Mutex mutex_;
  struct Waiting {
    OutFrame frame;
    bool is_bulk;
  };
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> given_{0}, under_way_{0}, bytes_under_way_{0};
  std::atomic<uint64_t> frames_sent_{0}, bytes_sent_{0}, bytes_received_{0};
};

}  // namespace weft::transport::ucx
