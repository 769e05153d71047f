// SPDX-License-Identifier: Apache-2.0
// Memory that only its device reaches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"

#include "base/status.h"
#include "weft/tensor/buffer.h"

namespace weft {

class Tensor;

// The memory of one device. Thread-safe; outlives the tensors in it. What is asked of it happens in
// the order of asking, after all that the device was given to compute before; `done` is called
// once, perhaps later and on another thread, and the tensors are held until then. A device that
// failed says so in every later answer.
class DeviceMemory {
 public:
  using Done = absl::AnyInvocable<void(Status)>;

  virtual ~DeviceMemory() = default;
  // The device's: "/job:worker/replica:0/task:0/device:ASIC:0".
  virtual const std::string& name() const = 0;
  // Gives DeviceBuffers; null when the device's memory is used up.
  virtual Allocator& allocator() = 0;
  // Copies between tensors of one size: from the host, to the host, within this memory.
  virtual void CopyIn(Tensor host, Tensor device, Done done) = 0;
  virtual void CopyOut(Tensor device, Tensor host, Done done) = 0;
  virtual void CopyAcross(Tensor from, Tensor to, Done done) = 0;
  // `done` when all that was asked of the device before has happened.
  virtual void Sync(Done done) = 0;
};

// A block in a device's memory.
class DeviceBuffer : public Buffer {
 public:
  // As the device counts: nothing that the host may look at.
  uint64_t address() const { return address_; }

 protected:
  DeviceBuffer(DeviceMemory* memory, uint64_t address, size_t size)
      : Buffer(memory, size), address_(address) {}

 private:
  const uint64_t address_;
};

}  // namespace weft
