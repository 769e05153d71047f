// SPDX-License-Identifier: Apache-2.0
// For tests: a FrameHandler that remembers what it was told, and memory that counts itself.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

#include "weft/transport/endpoint.h"

namespace weft::transport {

// Heap bytes as a region's keep-alive.
class HeapBytes final : public RefCounted {
 public:
  explicit HeapBytes(size_t size)
      : bytes_(shared == nullptr ? new std::byte[size == 0 ? 1 : size] : shared->Allocate(size)) {
    ++live;
  }
  ~HeapBytes() override {
    if (shared == nullptr) delete[] bytes_;
    --live;
  }
  std::byte* data() { return bytes_; }

  static inline std::atomic<int> live{0};
  // Where the bytes come from instead, and stay: fixed while any are alive.
  static inline SharedMemory* shared = nullptr;

 private:
  std::byte* const bytes_;
};

inline Region NewRegion(size_t size) {
  auto bytes = MakeRef<HeapBytes>(size);
  std::byte* const data = bytes->data();
  return Region(data, size, std::move(bytes));
}

inline Region RegionOf(absl::string_view text) {
  Region region = NewRegion(text.size());
  std::memcpy(region.data, text.data(), text.size());
  return region;
}

// Thread-safe.
class Recorder : public FrameHandler {
 public:
  struct Got {
    PeerRef peer;
    FrameHeader header;
    std::string meta;
    Region body;
    std::string text() const { return {reinterpret_cast<const char*>(body.data), body.size}; }
  };

  // Called for each frame on the IO thread, besides recording it.
  std::function<void(const PeerRef&, const FrameHeader&)> on_frame;
  std::atomic<bool> drop_bodies{false};
  std::atomic<bool> keep_bodies{true};

  void PeerUp(const PeerRef& peer) override {
    absl::MutexLock lock(&mutex_);
    up_.push_back(peer);
  }
  Region ReceiveBuffer(const PeerRef&, const FrameHeader& header, absl::string_view) override {
    return drop_bodies ? Region() : NewRegion(header.body_bytes);
  }
  void FrameReceived(const PeerRef& peer, const FrameHeader& header, absl::string_view meta,
                     Region body) override {
    if (on_frame) on_frame(peer, header);
    absl::MutexLock lock(&mutex_);
    frames_.push_back({peer, header, std::string(meta), keep_bodies ? std::move(body) : Region()});
  }
  void PeerDown(const PeerRef& peer, const Status& why) override {
    absl::MutexLock lock(&mutex_);
    down_.emplace_back(peer, why);
  }

  // Waits are generous: they end early when true, and only a broken test waits them out.
  bool WaitFrames(size_t count) {
    return Wait([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return frames_.size() >= count; });
  }
  bool WaitUp(size_t count) {
    return Wait([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return up_.size() >= count; });
  }
  bool WaitDown(size_t count) {
    return Wait([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return down_.size() >= count; });
  }

  std::vector<Got> frames() const {
    absl::MutexLock lock(&mutex_);
    return frames_;
  }
  size_t frame_count() const {
    absl::MutexLock lock(&mutex_);
    return frames_.size();
  }
  PeerRef peer(size_t index) const {
    absl::MutexLock lock(&mutex_);
    return up_[index];
  }
  std::vector<std::pair<PeerRef, Status>> down() const {
    absl::MutexLock lock(&mutex_);
    return down_;
  }
  // Lets go of all peers and bodies.
  void Clear() {
    absl::MutexLock lock(&mutex_);
    frames_.clear();
    up_.clear();
    down_.clear();
  }

 private:
  template <typename F>
  bool Wait(F condition) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&condition), absl::Seconds(60));
  }

  mutable absl::Mutex mutex_;
  std::vector<Got> frames_ ABSL_GUARDED_BY(mutex_);
  std::vector<PeerRef> up_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<PeerRef, Status>> down_ ABSL_GUARDED_BY(mutex_);
};

// Counts completions, each of which must come once.
class Completions {
 public:
  SendDone Next() {
    return [this](const Status& status) {
      absl::MutexLock lock(&mutex_);
      statuses_.push_back(status);
    };
  }
  bool Wait(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [this, count]()
                            ABSL_NO_THREAD_SAFETY_ANALYSIS { return statuses_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(60));
  }
  std::vector<Status> statuses() const {
    absl::MutexLock lock(&mutex_);
    return statuses_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<Status> statuses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::transport
