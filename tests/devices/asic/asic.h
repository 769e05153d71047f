// SPDX-License-Identifier: Apache-2.0
// The fake accelerator of the tests: a device of weft whose memory no host code can touch and whose
// streams run late. What it teaches about real devices is that nothing may be taken for granted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/device/plugin/weft_device.h"

namespace asic {

// Fills `error` and gives `code`.
int Fail(weft_error* error, int code, const std::string& message);

// Addresses lie in a range that is reserved but may not be read or written, so that a host access
// faults. The bytes are in a second mapping, which kernels alone know.
class Memory {
 public:
  explicit Memory(uint64_t size);
  ~Memory();
  bool ok() const { return range_ != nullptr && bytes_ != nullptr; }
  uint64_t size() const { return size_; }
  uint64_t Allocate(uint64_t bytes);  // 0: none left
  void Free(uint64_t address);
  // What lies at `address`.
  template <typename T>
  T* At(uint64_t address) const {
    return reinterpret_cast<T*>(bytes_ + (address - reinterpret_cast<uint64_t>(range_)));
  }

 private:
  const uint64_t size_;
  char* range_ = nullptr;
  char* bytes_ = nullptr;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_;  // offset and size of each gap
  std::map<uint64_t, uint64_t> used_;
};

}  // namespace asic

// One thread that does what it was asked in order, each thing a moment after it could have.
struct weft_stream {
  explicit weft_stream(weft_device* owner);
  ~weft_stream();
  void Ask(std::function<void()> work);
  uint64_t asked();
  uint64_t done();
  void Break(const std::string& why);  // from now on nothing is done
  std::string broken();

  weft_device* const device;

 private:
  void Run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  uint64_t asked_ = 0;
  uint64_t done_ = 0;
  bool ending_ = false;
  std::string broken_;
  std::thread thread_;
};

struct weft_event {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;
  uint64_t happened = 0;
};

struct weft_device {
  explicit weft_device(uint64_t size) : memory(size) {}
  // Takes back released blocks that no stream uses any more.
  void Reclaim();
  bool HasReleased();

  asic::Memory memory;
  std::mutex mutex;
  std::list<weft_stream*> streams;
  struct Released {
    uint64_t address = 0;
    std::vector<std::pair<weft_stream*, uint64_t>> users;  // what they had been asked
  };
  std::list<Released> released;
};

namespace asic {

// What a kernel is made of: attributes it has read, and how it is launched.
using Launch = std::function<int(weft_stream*, const weft_call&, weft_error*)>;
using Make = std::function<int(const weft_op&, Launch*, weft_error*)>;

struct Kernel {
  std::string op;
  std::vector<std::pair<std::string, std::vector<int32_t>>> types;
  Make make;
  uint64_t writes = 0;
};

// The kernels of each file.
void AddElementwise(std::vector<Kernel>* kernels);
void AddBinary(std::vector<Kernel>* kernels);
void AddReductions(std::vector<Kernel>* kernels);
void AddProducts(std::vector<Kernel>* kernels);
void AddConvolutions(std::vector<Kernel>* kernels);
void AddVariables(std::vector<Kernel>* kernels);

inline constexpr int32_t kFloat = 1;
inline constexpr int32_t kDouble = 2;
inline constexpr int32_t kInt32 = 3;
inline constexpr int32_t kInt64 = 9;
inline constexpr int32_t kBool = 10;

using Dims = std::vector<int64_t>;
inline Dims DimsOf(const weft_tensor& t) { return Dims(t.dims, t.dims + t.rank); }
inline int64_t Product(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t d : dims) product *= d;
  return product;
}
std::string Text(const Dims& dims);
// Sizes after NumPy's broadcasting; false if they do not fit.
bool Broadcast(const Dims& a, const Dims& b, Dims* out);
// For each element of `out` the position in a tensor of sizes `in` that is broadcast to it.
std::vector<int64_t> Positions(const Dims& in, const Dims& out);

// Output `index`, over input `reuse`'s bytes if it may be (-1: not).
inline const weft_tensor* Output(const weft_call& call, int index, int reuse, const Dims& dims) {
  return call.output(call.host, index, reuse, static_cast<int32_t>(dims.size()), dims.data());
}

// Calls `body` with a value of the C++ type of `dtype`: float or double (or also int32, int64).
template <typename Body>
bool ForReal(int32_t dtype, Body body) {
  if (dtype == kFloat) return body(float{}), true;
  if (dtype == kDouble) return body(double{}), true;
  return false;
}
template <typename Body>
bool ForNumber(int32_t dtype, Body body) {
  if (dtype == kInt32) return body(int32_t{}), true;
  if (dtype == kInt64) return body(int64_t{}), true;
  return ForReal(dtype, body);
}

}  // namespace asic
