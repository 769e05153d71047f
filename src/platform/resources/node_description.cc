// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/node_description.h"

#include <algorithm>
#include <utility>

#include "platform/object/fields.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

StatusOr<int64_t> ReadCount(const Json& amounts, absl::string_view name) {
  const Json* const value = amounts.Find(name);
  if (value == nullptr) return 0;
  WEFT_ASSIGN_OR_RETURN(const int64_t thousandths, ParseQuantity(*value));
  return thousandths / 1000;
}

StatusOr<Gpu> ReadGpu(const Json& json) {
  Gpu gpu;
  gpu.uuid = StringField(json, {"uuid"});
  gpu.model = StringField(json, {"model"});
  if (const Json* const memory = json.Find("memory")) {
    WEFT_ASSIGN_OR_RETURN(const int64_t thousandths, ParseQuantity(*memory));
    gpu.memory = thousandths / 1000;
  }
  gpu.numa_node = static_cast<int>(IntField(json, {"numa"}, -1));
  gpu.island = static_cast<int>(IntField(json, {"island"}, std::max(gpu.numa_node, 0)));
  gpu.is_healthy = StringField(json, {"health"}) != "Unhealthy";
  return gpu;
}

StatusOr<std::vector<Gpu>> ReadGpus(const Json& node, const NodeDescription& description) {
  const Json* const allocatable = FindField(node, {"status", "allocatable"});
  int64_t count = 0;
  if (allocatable != nullptr) {
    for (const char* name : {"nvidia.com/gpu", "alpha.kubernetes.io/nvidia-gpu"}) {
      WEFT_ASSIGN_OR_RETURN(const int64_t told, ReadCount(*allocatable, name));
      count = std::max(count, told);
    }
  }
  if (count > kMostGpus) {
    return InvalidArgument("says that it has ", count, " GPUs, at most ", kMostGpus,
                           " are believed");
  }
  std::vector<Gpu> gpus;
  const std::string list = StringField(node, {"metadata", "annotations", kGpusAnnotation});
  if (!list.empty()) {
    const StatusOr<Json> json = Json::Parse(list);
    if (!json.ok()) return Annotate(json.status(), kGpusAnnotation);
    for (const Json& item : json->items()) {
      WEFT_ASSIGN_OR_RETURN(Gpu gpu, ReadGpu(item));
      gpus.push_back(std::move(gpu));
    }
  } else {
    Gpu gpu;
    const auto model = description.labels.find("nvidia.com/gpu.product");
    if (model != description.labels.end()) gpu.model = model->second;
    // In MiB, as GPU feature discovery labels nodes.
    const auto memory = description.labels.find("nvidia.com/gpu.memory");
    if (memory != description.labels.end()) {
      const StatusOr<int64_t> thousandths = ParseQuantity(Json(memory->second + "Mi"));
      if (thousandths.ok()) gpu.memory = *thousandths / 1000;
    }
    gpus.assign(static_cast<size_t>(count), gpu);
  }
  // The allocatable count is the last word: what is beyond it is lost or kept back.
  int64_t healthy = 0;
  for (Gpu& gpu : gpus) {
    if (gpu.is_healthy && ++healthy > count) gpu.is_healthy = false;
  }
  return gpus;
}

}  // namespace

StatusOr<NodeDescription> ReadNode(const Json& node, ResourceNames* names) {
  NodeDescription description;
  description.name = NameOf(node);
  description.labels = ReadLabels(FindField(node, {"metadata", "labels"}));
  description.is_unschedulable = BoolField(node, {"spec", "unschedulable"});
  if (const Json* const taints = FindField(node, {"spec", "taints"})) {
    for (const Json& taint : taints->items()) {
      description.taints.push_back({StringField(taint, {"key"}), StringField(taint, {"value"}),
                                    StringField(taint, {"effect"})});
    }
  }
  StatusOr<Amounts> allocatable = ReadAmounts(FindField(node, {"status", "allocatable"}), names);
  if (!allocatable.ok()) return Annotate(allocatable.status(), "node '" + description.name + "'");
  description.allocatable = *std::move(allocatable);
  StatusOr<std::vector<Gpu>> gpus = ReadGpus(node, description);
  if (!gpus.ok()) return Annotate(gpus.status(), "node '" + description.name + "'");
  description.gpus = *std::move(gpus);
  return description;
}

}  // namespace weft::platform
