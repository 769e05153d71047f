// SPDX-License-Identifier: Apache-2.0
#include "weft/device/plugin/plugin_devices.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "weft/device/plugin/plugin_kernel.h"
#include "weft/device/plugin/plugin_library.h"
#include "weft/device/plugin/plugin_memory.h"

namespace weft {
namespace {

class LoadedDevices final : public PluginDevices {
 public:
  LoadedDevices(std::string path, const weft_device_api* api)
      : path_(std::move(path)), api_(api), type_(api->type) {}

  Status Open() {
    for (int i = 0; i < api_->num_devices(); ++i) {
      WEFT_ASSIGN_OR_RETURN(std::unique_ptr<plugin::PluginMemory> memory,
                            plugin::PluginMemory::Make(api_, i));
      memories_.push_back(std::move(memory));
    }
    return absl::OkStatus();
  }

  const std::string& type() const override { return type_; }
  int num_devices() const override { return static_cast<int>(memories_.size()); }

  Status AddKernels(Catalogue* catalogue) override {
    for (size_t i = 0; i < api_->num_kernels; ++i) {
      StatusOr<KernelDef> def = DefOf(i, catalogue->ops());
      if (!def.ok()) return Annotate(def.status(), absl::StrCat("Device library ", path_));
      catalogue->kernels().Add(*std::move(def));
    }
    return absl::OkStatus();
  }

  StatusOr<std::vector<std::unique_ptr<Device>>> Make(const DeviceName& task,
                                                      ThreadPool* threads) override {
    std::vector<std::unique_ptr<Device>> devices;
    std::random_device entropy;
    for (const auto& memory : memories_) {
      const weft_device_properties& properties = memory->properties();
      DeviceName name = task;
      name.type = type_;
      name.index = properties.index;
      memory->set_name(name.ToString());
      DeviceAttributes attributes{
          .name = name.ToString(),
          .type = type_,
          .memory_limit_bytes =
              static_cast<int64_t>(std::min<uint64_t>(properties.memory_bytes, INT64_MAX)),
          .incarnation = (uint64_t{entropy()} << 32 | entropy()) | 1,
          .description =
              std::string(properties.description,
                          strnlen(properties.description, sizeof(properties.description)))};
      devices.push_back(std::make_unique<Device>(
          std::move(attributes), static_cast<DeviceMemory*>(memory.get()), threads));
    }
    return devices;
  }

 private:
  StatusOr<KernelDef> DefOf(size_t number, const OpRegistry& ops) const {
    const weft_kernel_info& info = api_->kernels[number];
    WEFT_ASSIGN_OR_RETURN(const OpDefinition* op, ops.Get(info.op));
    KernelDef def{.op = info.op,
                  .device_type = type_,
                  .factory = plugin::MakePluginKernel(api_, number),
                  .cost = KernelCost::kInline};
    for (size_t t = 0; t < info.num_types; ++t) {
      const weft_type_limit& limit = info.types[t];
      if (limit.attribute == nullptr || op->schema.FindAttr(limit.attribute) == nullptr) {
        return InvalidArgument("A kernel of op ", info.op,
                               " limits an attribute that there is not: ",
                               limit.attribute == nullptr ? "(no name)" : limit.attribute);
      }
      std::vector<DType>& types = def.types[limit.attribute];
      for (size_t k = 0; k < limit.count; ++k) {
        WEFT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(limit.dtypes[k]));
        types.push_back(dtype);
      }
    }
    return def;
  }

  const std::string path_;
  const weft_device_api* const api_;
  const std::string type_;
  std::vector<std::unique_ptr<plugin::PluginMemory>> memories_;
};

}  // namespace

StatusOr<std::unique_ptr<PluginDevices>> PluginDevices::Load(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const weft_device_api* api, plugin::OpenLibrary(path));
  auto devices = std::make_unique<LoadedDevices>(path, api);
  WEFT_RETURN_IF_ERROR(devices->Open());
  return std::unique_ptr<PluginDevices>(std::move(devices));
}

}  // namespace weft
