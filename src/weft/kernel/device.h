// SPDX-License-Identifier: Apache-2.0
// A place where kernels run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/threads.h"
#include "weft/graph/device_name.h"
#include "weft/kernel/resource.h"
#include "weft/tensor/buffer.h"
#include "weft/tensor/device_memory.h"

namespace weft {

// What is told of a device (device_attributes.proto).
struct DeviceAttributes {
  std::string name;  // in full
  std::string type;  // "CPU", "GPU"
  int64_t memory_limit_bytes = 0;
  uint64_t incarnation = 0;  // another number after each restart, never 0
  std::string description;
};

// Owns its resources, borrows threads and memory. Thread-safe.
class Device {
 public:
  // A device whose kernels work in the host's memory, or in that of `allocator` which the host can
  // reach as well (memory that a parent process left, for example).
  Device(DeviceAttributes attributes, Allocator* allocator, ThreadPool* threads)
      : attributes_(std::move(attributes)), allocator_(allocator), threads_(threads) {}
  // A device with a memory of its own.
  Device(DeviceAttributes attributes, DeviceMemory* memory, ThreadPool* threads)
      : attributes_(std::move(attributes)),
        allocator_(&memory->allocator()),
        memory_(memory),
        threads_(threads) {}
  virtual ~Device() = default;

  const DeviceAttributes& attributes() const { return attributes_; }
  const std::string& name() const { return attributes_.name; }
  const std::string& type() const { return attributes_.type; }
  // Of what its kernels compute on; what stays on the host comes from HostAllocator().
  Allocator& allocator() const { return *allocator_; }
  // Null where kernels work in the host's memory.
  DeviceMemory* memory() const { return memory_; }
  // Threads that kernels share work over.
  ThreadPool& threads() const { return *threads_; }
  ResourceManager& resources() { return resources_; }

 private:
  const DeviceAttributes attributes_;
  Allocator* const allocator_;
  DeviceMemory* const memory_ = nullptr;
  ThreadPool* const threads_;
  ResourceManager resources_;
};

// Makes the devices of a task. What runs graphs is handed one by the program, so that it knows no
// kind of device itself. Thread-safe; outlives what it makes.
class DeviceFactory {
 public:
  virtual ~DeviceFactory() = default;
  // The devices of `task`, in the order of preference, with resources of their own. Called once for
  // a task and again for each session that shares no variables with others: those devices have the
  // same names and the same hardware. `threads` must outlive them.
  virtual StatusOr<std::vector<std::unique_ptr<Device>>> Make(const DeviceName& task,
                                                              ThreadPool* threads) = 0;
};

// The devices of several factories, one after the other. AlreadyExists names a device that two of
// them make.
class JoinedDevices final : public DeviceFactory {
 public:
  explicit JoinedDevices(std::vector<DeviceFactory*> factories)
      : factories_(std::move(factories)) {}
  StatusOr<std::vector<std::unique_ptr<Device>>> Make(const DeviceName& task,
                                                      ThreadPool* threads) override;

 private:
  const std::vector<DeviceFactory*> factories_;
};

}  // namespace weft
