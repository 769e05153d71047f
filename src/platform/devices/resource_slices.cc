// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/resource_slices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/object/quantity.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr char kGroup[] = "resource.k8s.io";
constexpr size_t kMostDevices = 128;

// A DNS label: "GPU-0000:17:00.0" -> "gpu-0000-17-00-0".
std::string DeviceName(const std::string& id) {
  std::string name;
  for (const char c : absl::AsciiStrToLower(id)) name += absl::ascii_isalnum(c) ? c : '-';
  return name.substr(0, 63);
}

Json Text(const std::string& value) {
  Json attribute;
  attribute.Set("string", value.substr(0, 64));
  return attribute;
}

Json Number(int64_t value) {
  Json attribute;
  attribute.Set("int", value);
  return attribute;
}

// v1beta1 has what a device is in a field of its own.
Json Device(const std::string& id, Json what, const std::string& version) {
  Json device;
  if (version == "v1beta1")
    device.Set("basic", std::move(what));
  else
    device = std::move(what);
  device.Set("name", DeviceName(id));
  return device;
}

Json DescribeGpu(const DriverGpu& gpu, int index) {
  Json what;
  SetField(&what, {"attributes", "type"}, Text("gpu"));
  SetField(&what, {"attributes", "index"}, Number(index));
  SetField(&what, {"attributes", "uuid"}, Text(gpu.gpu.uuid));
  SetField(&what, {"attributes", "model"}, Text(gpu.gpu.model));
  SetField(&what, {"attributes", "island"}, Number(gpu.gpu.island));
  if (gpu.gpu.numa_node >= 0)
    SetField(&what, {"attributes", "numaNode"}, Number(gpu.gpu.numa_node));
  if (gpu.gpu.memory > 0) {
    SetField(&what, {"capacity", "memory", "value"},
             FormatQuantity(gpu.gpu.memory * 1000, /*is_binary=*/true));
  }
  return what;
}

Json DescribeAdapter(const RdmaAdapter& adapter) {
  Json what;
  SetField(&what, {"attributes", "type"}, Text("rdma"));
  SetField(&what, {"attributes", "adapter"}, Text(adapter.name));
  SetField(&what, {"attributes", "linkLayer"}, Text(adapter.link_layer));
  SetField(&what, {"attributes", "rate"}, Text(adapter.rate));
  if (adapter.numa_node >= 0)
    SetField(&what, {"attributes", "numaNode"}, Number(adapter.numa_node));
  return what;
}

}  // namespace

Json DescribeDevices(const Machine& machine, const std::string& version) {
  Json devices = Json::MakeArray();
  for (size_t i = 0; i < machine.gpus.size() && devices.size() < kMostDevices; ++i) {
    const DriverGpu& gpu = machine.gpus[i];
    if (!gpu.gpu.is_healthy || gpu.gpu.uuid.empty()) continue;
    devices.Append(Device(gpu.gpu.uuid, DescribeGpu(gpu, static_cast<int>(i)), version));
  }
  for (const RdmaAdapter& adapter : machine.rdma) {
    if (adapter.active_ports == 0 || devices.size() >= kMostDevices) continue;
    devices.Append(Device("rdma-" + adapter.name, DescribeAdapter(adapter), version));
  }
  return devices;
}

SlicePublisher::SlicePublisher(ObjectStore* store, std::string node,
                               const std::vector<std::string>& versions)
    : store_(store), node_(std::move(node)) {
  for (const char* known : {"v1", "v1beta2", "v1beta1"}) {
    if (version_.empty() && std::find(versions.begin(), versions.end(), known) != versions.end())
      version_ = known;
  }
  type_ = MakeResourceType(kGroup, version_, "resourceslices", "resourceslice", "ResourceSlice",
                           /*is_namespaced=*/false);
}

std::string SlicePublisher::SliceName() const { return absl::StrCat(node_, "-", kDeviceDriver); }

Status SlicePublisher::Step(const Machine& machine) {
  Json devices = DescribeDevices(machine, version_);
  const std::string text = devices.Dump();
  if (has_told_ && text == told_) return absl::OkStatus();
  const StatusOr<ObjectPtr> known = store_->Get(type_, {"", SliceName()});
  if (!known.ok() && !IsObjectNotFound(known.status())) return known.status();
  if (!known.ok() && devices.size() == 0) {
    told_ = text;
    has_told_ = true;
    return absl::OkStatus();
  }
  Json slice;
  slice.Set("apiVersion", type_.ApiVersion());
  slice.Set("kind", "ResourceSlice");
  SetField(&slice, {"metadata", "name"}, SliceName());
  const StatusOr<ObjectPtr> node = store_->Get(Nodes(), {"", node_});
  if (!node.ok()) return node.status();
  // It goes with the node.
  Json owner;
  owner.Set("apiVersion", "v1");
  owner.Set("kind", "Node");
  owner.Set("name", node_);
  owner.Set("uid", UidOf(**node));
  SetField(&slice, {"metadata", "ownerReferences"}, Json(Json::Array{std::move(owner)}));
  SetField(&slice, {"spec", "driver"}, kDeviceDriver);
  SetField(&slice, {"spec", "nodeName"}, node_);
  SetField(&slice, {"spec", "pool", "name"}, node_);
  SetField(&slice, {"spec", "pool", "resourceSliceCount"}, 1);
  const int64_t generation = known.ok() ? IntField(**known, {"spec", "pool", "generation"}) + 1 : 1;
  SetField(&slice, {"spec", "pool", "generation"}, generation);
  SetField(&slice, {"spec", "devices"}, std::move(devices));
  if (known.ok()) SetField(&slice, {"metadata", "resourceVersion"}, RevisionOf(**known));
  const Status written = known.ok()
                             ? store_->Update(type_, std::move(slice), WriteOptions()).status()
                             : store_->Create(type_, "", std::move(slice), WriteOptions()).status();
  if (IsConflict(written)) return absl::OkStatus();  // the next call reads it again
  WEFT_RETURN_IF_ERROR(Annotate(written, "ResourceSlice " + SliceName()));
  told_ = text;
  has_told_ = true;
  return absl::OkStatus();
}

void SlicePublisher::Leave() {
  if (!has_told_ || told_ == "[]") return;
  const Status gone = store_->Delete(type_, {"", SliceName()}, DeleteOptions()).status();
  if (!gone.ok() && !IsObjectNotFound(gone))
    WEFT_LOG(WARNING) << "The ResourceSlice stays: " << gone.message();
}

}  // namespace weft::platform
