// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/devices/asic/asic.h"

namespace asic {

int Fail(weft_error* error, int code, const std::string& message) {
  std::snprintf(error->message, sizeof(error->message), "%s", message.c_str());
  return code;
}

Memory::Memory(uint64_t size) : size_(size) {
  void* const range =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* const bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range != MAP_FAILED) range_ = static_cast<char*>(range);
  if (bytes != MAP_FAILED) bytes_ = static_cast<char*>(bytes);
  free_[0] = size;
}

Memory::~Memory() {
  if (range_ != nullptr) munmap(range_, size_);
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

uint64_t Memory::Allocate(uint64_t bytes) {
  const uint64_t size = (std::max<uint64_t>(bytes, 1) + 63) / 64 * 64;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
    if (gap->second < size) continue;
    const uint64_t offset = gap->first;
    const uint64_t rest = gap->second - size;
    free_.erase(gap);
    if (rest > 0) free_[offset + size] = rest;
    used_[offset] = size;
    return reinterpret_cast<uint64_t>(range_) + offset;
  }
  return 0;
}

void Memory::Free(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto used = used_.find(address - reinterpret_cast<uint64_t>(range_));
  if (used == used_.end()) return;
  auto gap = free_.insert(*used).first;
  used_.erase(used);
  const auto next = std::next(gap);
  if (next != free_.end() && gap->first + gap->second == next->first) {
    gap->second += next->second;
    free_.erase(next);
  }
  if (gap == free_.begin()) return;
  const auto before = std::prev(gap);
  if (before->first + before->second == gap->first) {
    before->second += gap->second;
    free_.erase(gap);
  }
}

std::string Text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ",";
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

bool Broadcast(const Dims& a, const Dims& b, Dims* out) {
  const size_t rank = std::max(a.size(), b.size());
  out->assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    (*out)[rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

std::vector<int64_t> Positions(const Dims& in, const Dims& out) {
  const size_t rank = out.size();
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t size = in[in.size() - 1 - i];
    if (size != 1) strides[rank - 1 - i] = stride;
    stride *= size;
  }
  std::vector<int64_t> positions(static_cast<size_t>(Product(out)));
  std::vector<int64_t> index(rank, 0);
  int64_t at = 0;
  for (int64_t& position : positions) {
    position = at;
    for (size_t i = rank; i-- > 0;) {
      at += strides[i];
      if (++index[i] < out[i]) break;
      at -= strides[i] * out[i];
      index[i] = 0;
    }
  }
  return positions;
}

}  // namespace asic

weft_stream::weft_stream(weft_device* owner) : device(owner), thread_([this] { Run(); }) {}

weft_stream::~weft_stream() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void weft_stream::Ask(std::function<void()> work) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(work));
  ++asked_;
  changed_.notify_all();
}

uint64_t weft_stream::asked() {
  std::lock_guard<std::mutex> lock(mutex_);
  return asked_;
}

uint64_t weft_stream::done() {
  std::lock_guard<std::mutex> lock(mutex_);
  return done_;
}

void weft_stream::Break(const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (broken_.empty()) broken_ = why;
}

std::string weft_stream::broken() {
  std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

void weft_stream::Run() {
  uint32_t lateness = 1;
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    // Late, and never by the same time.
    lateness = lateness * 1664525 + 1013904223;
    std::this_thread::sleep_for(std::chrono::microseconds(lateness >> 26));
    work();
    work = nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

void weft_device::Reclaim() {
  std::lock_guard<std::mutex> lock(mutex);
  released.remove_if([this](const Released& block) {
    for (const auto& [stream, asked] : block.users) {
      const bool lives = std::find(streams.begin(), streams.end(), stream) != streams.end();
      if (lives && stream->done() < asked) return false;
    }
    memory.Free(block.address);
    return true;
  });
}

bool weft_device::HasReleased() {
  std::lock_guard<std::mutex> lock(mutex);
  return !released.empty();
}
