// SPDX-License-Identifier: Apache-2.0
// The table that weft reads. WEFT_ASIC_FAULT makes it misbehave, for the tests of bad libraries.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "tests/devices/asic/asic.h"

struct weft_kernel {
  std::string name;
  asic::Launch launch;
};

namespace {

using asic::Fail;

bool Fault(const char* name) {
  const char* const fault = std::getenv("WEFT_ASIC_FAULT");
  return fault != nullptr && std::strcmp(fault, name) == 0;
}

const std::vector<asic::Kernel>& Kernels() {
  static const auto* const kernels = [] {
    auto* made = new std::vector<asic::Kernel>();
    asic::AddElementwise(made);
    asic::AddBinary(made);
    asic::AddReductions(made);
    asic::AddProducts(made);
    asic::AddConvolutions(made);
    asic::AddVariables(made);
    return made;
  }();
  return *kernels;
}

int32_t NumDevices() { return Fault("twins") ? 2 : 1; }

int Create(int32_t number, weft_device** device, weft_device_properties* properties,
           weft_error* error) {
  const char* const size = std::getenv("WEFT_ASIC_MEMORY");
  const uint64_t bytes = size != nullptr ? std::strtoull(size, nullptr, 10) : uint64_t{1} << 30;
  auto made = std::make_unique<weft_device>(bytes);
  if (!made->memory.ok()) return Fail(error, WEFT_OUT_OF_MEMORY, "no memory for the device");
  properties->index = Fault("twins") ? 0 : number;
  properties->memory_bytes = Fault("no_memory") ? 0 : bytes;
  std::snprintf(properties->description, sizeof(properties->description), "fake accelerator");
  if (Fault("endless_text"))
    std::memset(properties->description, 'x', sizeof(properties->description));
  *device = made.release();
  return WEFT_OK;
}

void Destroy(weft_device* device) { delete device; }

int Allocate(weft_device* device, uint64_t bytes, uint64_t* address, weft_error* error) {
  for (int tries = 0; tries < 10000; ++tries) {
    device->Reclaim();
    *address = device->memory.Allocate(bytes);
    if (*address != 0 && Fault("misplaced")) *address += 8;
    if (*address != 0) return WEFT_OK;
    if (!device->HasReleased()) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return Fail(error, WEFT_OUT_OF_MEMORY, "the device's memory is used up");
}

void Release(weft_device* device, uint64_t address) {
  weft_device::Released block{.address = address, .users = {}};
  std::lock_guard<std::mutex> lock(device->mutex);
  for (weft_stream* stream : device->streams) block.users.emplace_back(stream, stream->asked());
  device->released.push_back(std::move(block));
}

int CreateStream(weft_device* device, weft_stream** stream, weft_error*) {
  *stream = new weft_stream(device);
  std::lock_guard<std::mutex> lock(device->mutex);
  device->streams.push_back(*stream);
  return WEFT_OK;
}

void DestroyStream(weft_stream* stream) {
  {
    std::lock_guard<std::mutex> lock(stream->device->mutex);
    stream->device->streams.remove(stream);
  }
  delete stream;
}

std::atomic<uint64_t> copies_in{0};

int CopyIn(weft_stream* stream, const void* from, uint64_t to, uint64_t bytes, weft_error*) {
  ++copies_in;
  stream->Ask([=] { std::memcpy(stream->device->memory.At<char>(to), from, bytes); });
  return WEFT_OK;
}

int CopyOut(weft_stream* stream, uint64_t from, void* to, uint64_t bytes, weft_error*) {
  stream->Ask([=] {
    std::memcpy(to, stream->device->memory.At<char>(from), bytes);
    if (Fault("garbles")) *static_cast<char*>(to) ^= 1;
  });
  return WEFT_OK;
}

int CopyAcross(weft_stream* stream, uint64_t from, uint64_t to, uint64_t bytes, weft_error*) {
  const asic::Memory& memory = stream->device->memory;
  stream->Ask([=, &memory] { std::memmove(memory.At<char>(to), memory.At<char>(from), bytes); });
  return WEFT_OK;
}

int Notify(weft_stream* stream, void (*done)(void*, int, const char*), void* argument,
           weft_error*) {
  stream->Ask([=] {
    std::string broken;
    {
      std::lock_guard<std::mutex> lock(stream->device->mutex);
      for (weft_stream* any : stream->device->streams) {
        if (broken.empty()) broken = any->broken();
      }
    }
    done(argument, broken.empty() ? WEFT_OK : WEFT_DEVICE_LOST, broken.c_str());
  });
  return WEFT_OK;
}

int CreateEvent(weft_device*, weft_event** event, weft_error*) {
  *event = new weft_event();
  return WEFT_OK;
}

void DestroyEvent(weft_event* event) { delete event; }

int Record(weft_stream* stream, weft_event* event, weft_error*) {
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    number = ++event->recorded;
  }
  stream->Ask([event, number] {
    std::lock_guard<std::mutex> lock(event->mutex);
    event->happened = std::max(event->happened, number);
    event->changed.notify_all();
  });
  return WEFT_OK;
}

int Wait(weft_stream* stream, weft_event* event, weft_error*) {
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    number = event->recorded;
  }
  stream->Ask([event, number] {
    std::unique_lock<std::mutex> lock(event->mutex);
    event->changed.wait(lock, [=] { return event->happened >= number; });
  });
  return WEFT_OK;
}

int CreateKernel(weft_device*, size_t number, const weft_op* op, weft_kernel** kernel,
                 weft_error* error) {
  auto made = std::make_unique<weft_kernel>();
  made->name = op->name;
  const int code = Kernels()[number].make(*op, &made->launch, error);
  if (code == WEFT_OK && !Fault("no_kernel")) *kernel = made.release();
  return code;
}

void DestroyKernel(weft_kernel* kernel) { delete kernel; }

std::atomic<bool> stands_still{true};

int LaunchKernel(weft_kernel* kernel, weft_stream* stream, const weft_call* call,
                 weft_error* error) {
  // A node of this name is the end of the device, in the middle of its work.
  if (kernel->name.find("ends_the_device") != std::string::npos) {
    stream->Ask([stream] { stream->Break("the fake accelerator was unplugged"); });
  }
  // With a node of this name it stands still until a test lets it go on.
  if (kernel->name.find("stands_still") != std::string::npos) {
    stream->Ask([] {
      while (stands_still) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  if (Fault("rank")) {
    const int64_t size = 1;
    if (call->output(call->host, 0, -1, 1 << 30, &size) == nullptr) return WEFT_OUT_OF_MEMORY;
  }
  return kernel->launch(stream, *call, error);
}

// The kernels as weft reads them.
const std::vector<weft_kernel_info>& Infos() {
  static const auto* const infos = [] {
    auto* made = new std::vector<weft_kernel_info>();
    for (const asic::Kernel& kernel : Kernels()) {
      auto* limits = new std::vector<weft_type_limit>();
      for (const auto& [attribute, types] : kernel.types) {
        limits->push_back(
            {.attribute = attribute.c_str(), .dtypes = types.data(), .count = types.size()});
      }
      made->push_back({.op = kernel.op.c_str(),
                       .types = limits->data(),
                       .num_types = limits->size(),
                       .writes = kernel.writes});
    }
    return made;
  }();
  return *infos;
}

}  // namespace

// For the tests: how often the host's bytes were copied to a device.
extern "C" uint64_t asic_copies_in(void) { return copies_in; }

extern "C" void asic_go_on(void) { stands_still = false; }

extern "C" uint32_t weft_device_version(void) {
  return Fault("version") ? WEFT_DEVICE_VERSION + 41 : WEFT_DEVICE_VERSION;
}

extern "C" const weft_device_api* weft_device_get(void) {
  if (Fault("crash")) std::raise(SIGSEGV);
  static weft_device_api api = {.size = sizeof(weft_device_api),
                                .type = "ASIC",
                                .num_devices = NumDevices,
                                .create = Create,
                                .destroy = Destroy,
                                .allocate = Allocate,
                                .release = Release,
                                .create_stream = CreateStream,
                                .destroy_stream = DestroyStream,
                                .copy_in = CopyIn,
                                .copy_out = CopyOut,
                                .copy_across = CopyAcross,
                                .notify = Notify,
                                .create_event = CreateEvent,
                                .destroy_event = DestroyEvent,
                                .record = Record,
                                .wait = Wait,
                                .num_kernels = Infos().size(),
                                .kernels = Infos().data(),
                                .create_kernel = CreateKernel,
                                .destroy_kernel = DestroyKernel,
                                .launch = LaunchKernel};
  if (Fault("no_launch")) api.launch = nullptr;
  if (Fault("type")) api.type = "CPU";
  static weft_kernel_info untyped = {.op = "Square", .types = nullptr, .num_types = 3, .writes = 0};
  if (Fault("types")) api.kernels = &untyped;
  return &api;
}
