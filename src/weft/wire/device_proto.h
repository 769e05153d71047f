// SPDX-License-Identifier: Apache-2.0
// DeviceAttributes <-> tensorflow.DeviceAttributes.
#pragma once

#include "proto/tensorflow/device_attributes.pb.h"
#include "weft/kernel/device.h"

namespace weft::wire {

inline void DeviceToProto(const DeviceAttributes& device, tensorflow::DeviceAttributes* proto) {
  proto->set_name(device.name);
  proto->set_device_type(device.type);
  proto->set_memory_limit(device.memory_limit_bytes);
  proto->set_incarnation(device.incarnation);
  proto->set_physical_device_desc(device.description);
  proto->set_xla_global_id(-1);
}

inline DeviceAttributes DeviceFromProto(const tensorflow::DeviceAttributes& proto) {
  return {.name = proto.name(),
          .type = proto.device_type(),
          .memory_limit_bytes = proto.memory_limit(),
          .incarnation = proto.incarnation(),
          .description = proto.physical_device_desc()};
}

}  // namespace weft::wire
