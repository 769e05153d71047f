// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/gpu_variables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/subprocess.h"
#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/resources/gpu_needs.h"
#include "platform/resources/node_description.h"

namespace weft::platform {
namespace {

bool HasGpus(const Json& node) {
  ResourceNames names;
  const StatusOr<NodeDescription> description = ReadNode(node, &names);
  return description.ok() && !description->gpus.empty();
}

// Those of the pod that are this container's: the first ones go to the first container. A share is
// one GPU that all containers of the pod see who ask for it.
std::vector<int> GpusOf(const Json& pod, const Json& container, const std::vector<int>& all) {
  Json alone;
  SetField(&alone, {"spec", "containers"}, Json(Json::Array{container}));
  const StatusOr<GpuNeeds> own = ReadGpuNeeds(alone);
  if (own.ok() && own->is_shared()) return all;
  const int64_t wanted = GpuCountOf(container);
  int64_t before = 0;
  int64_t counted = 0;
  const std::string name = StringField(container, {"name"});
  const Json* const containers = FindField(pod, {"spec", "containers"});
  if (containers != nullptr) {
    bool is_before = true;
    for (const Json& other : containers->items()) {
      is_before = is_before && StringField(other, {"name"}) != name;
      counted += GpuCountOf(other);
      if (is_before) before += GpuCountOf(other);
    }
  }
  // Given by index alone, without a count: all containers see them.
  if (counted == 0) return all;
  std::vector<int> mine;
  for (int64_t i = before; i < before + wanted && i < static_cast<int64_t>(all.size()); ++i)
    mine.push_back(all[static_cast<size_t>(i)]);
  return mine;
}

}  // namespace

void SetGpuVariables(const Json& pod, const Json& container, const Json& node,
                     std::vector<std::string>* environment) {
  const StatusOr<std::vector<int>> all =
      ParseGpuIndices(StringField(pod, {"metadata", "annotations", kGpuIndicesAnnotation}));
  if (!all.ok()) return;
  if (all->empty() && !HasGpus(node)) return;
  const std::vector<int> mine = all->empty() ? std::vector<int>() : GpusOf(pod, container, *all);
  const std::string list = absl::StrJoin(mine, ",");
  // Indices that all programs understand alike, in the order of the PCI bus.
  SetEnvironment(environment, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  SetEnvironment(environment, "CUDA_VISIBLE_DEVICES", list);
  SetEnvironment(environment, "HIP_VISIBLE_DEVICES", list);
  SetEnvironment(environment, "NVIDIA_VISIBLE_DEVICES", list.empty() ? "void" : list);
}

}  // namespace weft::platform
