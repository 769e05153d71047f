// SPDX-License-Identifier: Apache-2.0
// The element of a `resource` tensor: names a stateful object on the device that owns it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/shape.h"

namespace weft {

// Names an object by (device, container, type, name); `object` short-cuts the look-up inside the
// owning process and keeps the object alive. It is empty after a trip over the wire.
struct ResourceHandle {
  std::string device;
  std::string container;
  std::string name;
  std::string type_name;
  uint64_t hash_code = 0;
  std::vector<std::pair<DType, PartialShape>> dtypes_and_shapes;
  Ref<RefCounted> object;
};

}  // namespace weft
