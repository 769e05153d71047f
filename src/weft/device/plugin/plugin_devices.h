// SPDX-License-Identifier: Apache-2.0
// Devices of a shared library that weft does not know, behind the C interface of weft_device.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/kernel/device.h"
#include "weft/kernel/op_spec.h"

namespace weft {

// A library of devices, loaded. Must outlive its devices and their tensors; thread-safe.
class PluginDevices : public DeviceFactory {
 public:
  // Loads the library, first in a child process, so that one which crashes or hangs ends that.
  // NotFound, FailedPrecondition (another version), InvalidArgument (what it says is nonsense) or
  // Internal (it crashed) name the file. Devices exist from here on.
  static StatusOr<std::unique_ptr<PluginDevices>> Load(const std::string& path);

  // "ASIC"
  virtual const std::string& type() const = 0;
  virtual int num_devices() const = 0;
  // Adds the library's kernels to `catalogue`, which must hold their ops: InvalidArgument if not.
  // Before graphs are made with it.
  virtual Status AddKernels(Catalogue* catalogue) = 0;
};

}  // namespace weft
