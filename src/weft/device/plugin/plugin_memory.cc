// SPDX-License-Identifier: Apache-2.0
#include "weft/device/plugin/plugin_memory.h"

#include <atomic>
#include <bit>
#include <utility>

#include "absl/synchronization/notification.h"

#include "base/log.h"
#include "weft/device/plugin/plugin_library.h"

namespace weft::plugin {
namespace {

constexpr size_t kLeastBlock = 256;
constexpr absl::Duration kPatienceAtTheEnd = absl::Seconds(10);

// Sizes in steps of an eighth of a power of two: blocks are used again, little is wasted.
size_t BlockSize(size_t size) {
  if (size <= kLeastBlock) return kLeastBlock;
  const size_t step = std::bit_floor(size) / 8;
  return (size + step - 1) / step * step;
}

}  // namespace

class PluginMemory::Block final : public DeviceBuffer {
 public:
  Block(PluginMemory* memory, uint64_t address, size_t size)
      : DeviceBuffer(memory, address, size), owner_(memory) {}
  ~Block() override { owner_->GiveBack(address(), size()); }

 private:
  PluginMemory* const owner_;
};

// What waits for a stream.
struct PluginMemory::Pending {
  PluginMemory* memory = nullptr;
  std::shared_ptr<std::atomic<bool>> is_left;  // outlives `memory`: shared with it
  std::vector<Tensor> held;
  Done done;
};

StatusOr<std::unique_ptr<PluginMemory>> PluginMemory::Make(const weft_device_api* api, int number) {
  auto memory = std::unique_ptr<PluginMemory>(new PluginMemory(api));
  WEFT_RETURN_IF_ERROR(memory->Open(number));
  return memory;
}

Status PluginMemory::Open(int number) {
  weft_error error = {};
  int code = api_->create(number, &device_, &properties_, &error);
  if (code == WEFT_OK) code = api_->create_stream(device_, &work_, &error);
  if (code == WEFT_OK) code = api_->create_stream(device_, &out_, &error);
  if (code == WEFT_OK) code = api_->create_event(device_, &computed_, &error);
  set_name(absl::StrCat(api_->type, ":", properties_.index));
  return ToStatus(code, error.message, absl::StrCat("Device ", name_));
}

PluginMemory::~PluginMemory() {
  if (work_ != nullptr && out_ != nullptr && computed_ != nullptr) {
    const auto ended =
        std::make_shared<absl::Notification>();  // shared with an answer that is late
    Sync([ended](Status) { ended->Notify(); });
    if (!ended->WaitForNotificationWithTimeout(kPatienceAtTheEnd)) {
      WEFT_LOG(ERROR) << "Device " << name_ << " does not end its work: it is left as it is";
      *is_left_ = true;
      return;
    }
  }
  for (const auto& [size, blocks] : free_) {
    for (const uint64_t address : blocks) api_->release(device_, address);
  }
  if (computed_ != nullptr) api_->destroy_event(computed_);
  if (out_ != nullptr) api_->destroy_stream(out_);
  if (work_ != nullptr) api_->destroy_stream(work_);
  if (device_ != nullptr) api_->destroy(device_);
}

void PluginMemory::set_name(const std::string& name) {
  if (name_ != name) name_ = name;
}

uint64_t PluginMemory::TakeBlock(size_t size) {
  {
    absl::MutexLock lock(&free_mutex_);
    const auto found = free_.find(size);
    if (found != free_.end() && !found->second.empty()) {
      const uint64_t address = found->second.back();
      found->second.pop_back();
      return address;
    }
  }
  uint64_t address = 0;
  weft_error error = {};
  if (api_->allocate(device_, size, &address, &error) != WEFT_OK) return 0;
  if (address % kAddressStep == 0) return address;
  // A kernel that is being launched may ask for memory, and holds the mutex then.
  misplaced_.store(address);
  return 0;
}

Ref<Buffer> PluginMemory::Allocate(size_t size) {
  if (size > properties_.memory_bytes) return nullptr;
  const size_t block = BlockSize(size);
  uint64_t address = TakeBlock(block);
  if (address == 0) {
    ReleaseCached();
    address = TakeBlock(block);
  }
  if (address == 0) return nullptr;
  return MakeRef<Block>(this, address, block);
}

void PluginMemory::GiveBack(uint64_t address, size_t size) {
  absl::MutexLock lock(&free_mutex_);
  free_[size].push_back(address);
}

void PluginMemory::ReleaseCached() {
  std::map<size_t, std::vector<uint64_t>> unused;
  {
    absl::MutexLock lock(&free_mutex_);
    unused.swap(free_);
  }
  for (const auto& [size, blocks] : unused) {
    for (const uint64_t address : blocks) api_->release(device_, address);
  }
}

Status PluginMemory::Failure() {
  if (const uint64_t address = misplaced_.load(); address != 0 && failed_.ok()) {
    failed_ = Internal("it gave memory at ", address, ", expected a multiple of ", kAddressStep);
  }
  if (failed_.ok()) return failed_;
  return Internal("Device ", name_, " has failed: ", failed_.message());
}

void PluginMemory::Fail(const Status& status) {
  absl::MutexLock lock(&mutex_);
  if (failed_.ok()) failed_ = status;
}

void PluginMemory::Notified(void* argument, int code, const char* message) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(argument));
  if (*pending->is_left) return;
  Status status = ToStatus(code, message, absl::StrCat("Device ", pending->memory->name_));
  if (!status.ok()) pending->memory->Fail(status);
  pending->held.clear();
  pending->done(std::move(status));
}

void PluginMemory::Ask(weft_stream* stream, absl::FunctionRef<int(weft_error*)> ask,
                       std::vector<Tensor> held, Done done) {
  auto pending = std::make_unique<Pending>();
  pending->memory = this;
  pending->is_left = is_left_;
  pending->held = std::move(held);
  pending->done = std::move(done);
  Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = Failure();
    if (status.ok()) {
      weft_error error = {};
      int code = ask(&error);
      if (code == WEFT_OK) {
        code = api_->notify(stream, &PluginMemory::Notified, pending.get(), &error);
      }
      status = ToStatus(code, error.message, absl::StrCat("Device ", name_));
      if (status.ok()) {
        pending.release();  // Notified has it now
        return;
      }
      failed_ = status;
    }
  }
  pending->done(std::move(status));
}

void PluginMemory::CopyIn(Tensor host, Tensor device, Done done) {
  const size_t bytes = host.size_bytes();
  const std::byte* const from = host.bytes();
  const uint64_t to = device.device_address();
  Ask(
      work_,
      [&](weft_error* error) {
        return bytes == 0 ? WEFT_OK : api_->copy_in(work_, from, to, bytes, error);
      },
      // Whoever gets the target's memory next asks the same stream, later.
      {std::move(host)}, std::move(done));
}

void PluginMemory::CopyOut(Tensor device, Tensor host, Done done) {
  const size_t bytes = host.size_bytes();
  const uint64_t from = device.device_address();
  std::byte* const to = host.bytes();
  Ask(
      out_,
      [&](weft_error* error) {
        int code = api_->record(work_, computed_, error);
        if (code == WEFT_OK) code = api_->wait(out_, computed_, error);
        if (code != WEFT_OK || bytes == 0) return code;
        return api_->copy_out(out_, from, to, bytes, error);
      },
      {std::move(device), std::move(host)}, std::move(done));
}

void PluginMemory::CopyAcross(Tensor from, Tensor to, Done done) {
  const size_t bytes = from.size_bytes();
  const uint64_t source = from.device_address();
  const uint64_t target = to.device_address();
  Ask(
      work_,
      [&](weft_error* error) {
        return bytes == 0 ? WEFT_OK : api_->copy_across(work_, source, target, bytes, error);
      },
      // As above, and the source may be written again: by what the same stream is asked later.
      {}, std::move(done));
}

void PluginMemory::Sync(Done done) {
  Ask(
      out_,
      [&](weft_error* error) {
        const int code = api_->record(work_, computed_, error);
        return code == WEFT_OK ? api_->wait(out_, computed_, error) : code;
      },
      {}, std::move(done));
}

Status PluginMemory::Launch(absl::FunctionRef<int(weft_stream*, weft_error*)> launch,
                            absl::string_view what) {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(Failure());
  weft_error error = {};
  const int code = launch(work_, &error);
  const Status status = ToStatus(code, error.message, what);
  if (code == WEFT_DEVICE_LOST) failed_ = status;
  return status;
}

}  // namespace weft::plugin
