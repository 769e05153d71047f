// SPDX-License-Identifier: Apache-2.0
// A place where kernels run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/threads.h"
#include "weft/graph/device_name.h"
#include "weft/kernel/resource.h"
#include "weft/tensor/buffer.h"

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
  Device(DeviceAttributes attributes, Allocator* allocator, ThreadPool* threads)
      : attributes_(std::move(attributes)), allocator_(allocator), threads_(threads) {}
  virtual ~Device() = default;

  const DeviceAttributes& attributes() const { return attributes_; }
  const std::string& name() const { return attributes_.name; }
  const std::string& type() const { return attributes_.type; }
  Allocator& allocator() const { return *allocator_; }
  // Threads that kernels share work over.
  ThreadPool& threads() const { return *threads_; }
  ResourceManager& resources() { return resources_; }

 private:
  const DeviceAttributes attributes_;
  Allocator* const allocator_;
  ThreadPool* const threads_;
  ResourceManager resources_;
};

}  // namespace weft
