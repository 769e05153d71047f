// SPDX-License-Identifier: Apache-2.0
// The memory and the streams of one device of a library.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/device/plugin/weft_device.h"
#include "weft/tensor/device_memory.h"
#include "weft/tensor/tensor.h"

namespace weft::plugin {

// Kernels and copies into the device go through one stream, so that each finds what those before it
// made and a block that was given back may be used again at once. Copies out have a stream of their
// own, which waits for what they read: later kernels run beside them. Thread-safe.
class PluginMemory final : public DeviceMemory, public Allocator {
 public:
  // Makes device `number` of the library.
  static StatusOr<std::unique_ptr<PluginMemory>> Make(const weft_device_api* api, int number);
  ~PluginMemory() override;

  const weft_device_properties& properties() const { return properties_; }
  const weft_device_api& api() const { return *api_; }
  weft_device* device() const { return device_; }
  void set_name(const std::string& name);

  const std::string& name() const override { return name_; }
  Allocator& allocator() override { return *this; }
  Ref<Buffer> Allocate(size_t size) override;
  void CopyIn(Tensor host, Tensor device, Done done) override;
  void CopyOut(Tensor device, Tensor host, Done done) override;
  void CopyAcross(Tensor from, Tensor to, Done done) override;
  void Sync(Done done) override;

  // Calls `launch` with the stream of kernels, alone. Internal when the device has failed.
  Status Launch(absl::FunctionRef<int(weft_stream* stream, weft_error* error)> launch,
                absl::string_view what);

 private:
  class Block;
  struct Pending;
  explicit PluginMemory(const weft_device_api* api) : api_(api) {}
  Status Open(int number);
  void GiveBack(uint64_t address, size_t size);
  // Gives cached blocks back to the library.
  void ReleaseCached();
  uint64_t TakeBlock(size_t size);
  Status Failure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks `stream` for what `ask` puts into it, and calls `done` when that has happened. The tensors
  // are held until then.
  void Ask(weft_stream* stream, absl::FunctionRef<int(weft_error* error)> ask,
           std::vector<Tensor> held, Done done);
  static void Notified(void* pending, int code, const char* message);
  void Fail(const Status& status);

  const weft_device_api* const api_;
  weft_device* device_ = nullptr;
  weft_stream* work_ = nullptr;     // kernels, copies in and across
  weft_stream* out_ = nullptr;      // copies out
  weft_event* computed_ = nullptr;  // recorded in work_, waited for in out_
  weft_device_properties properties_ = {};
  std::string name_;
  absl::Mutex mutex_;
  Status failed_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> misplaced_{0};  // an address that cannot be, as the library gave it
  // Of a device that did not end its work: answers that come yet are not heard.
  const std::shared_ptr<std::atomic<bool>> is_left_ = std::make_shared<std::atomic<bool>>(false);
  absl::Mutex free_mutex_;
  std::map<size_t, std::vector<uint64_t>> free_  // blocks by size
      ABSL_GUARDED_BY(free_mutex_);
};

}  // namespace weft::plugin
