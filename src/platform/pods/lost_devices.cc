// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/lost_devices.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_annotations.h"
#include "platform/resources/node_description.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {

std::vector<std::string> LostGpusOf(const Json& pod, const Json& node) {
  std::vector<std::string> lost;
  const StatusOr<std::vector<int>> given =
      ParseGpuIndices(StringField(pod, {"metadata", "annotations", kGpuIndicesAnnotation}));
  if (!given.ok() || given->empty()) return lost;
  const StatusOr<Json> gpus =
      Json::Parse(StringField(node, {"metadata", "annotations", kGpusAnnotation}));
  if (!gpus.ok()) return lost;
  for (const int index : *given) {
    if (static_cast<size_t>(index) >= gpus->items().size()) continue;
    const Json& gpu = gpus->items()[static_cast<size_t>(index)];
    if (StringField(gpu, {"health"}) != "Unhealthy") continue;
    const std::string uuid = StringField(gpu, {"uuid"});
    lost.push_back(absl::StrCat("GPU ", index, uuid.empty() ? "" : absl::StrCat(" (", uuid, ")")));
  }
  return lost;
}

std::string LostDevicesMessage(const std::vector<std::string>& lost) {
  return absl::StrCat(absl::StrJoin(lost, ", "),
                      lost.size() == 1 ? " of this pod is lost" : " of this pod are lost",
                      ": the driver does not see it any more. No other pod gets it; this one keeps "
                      "its place until it ends");
}

Json LostDevicesCondition(const std::vector<std::string>& lost, absl::Time since) {
  Json condition;
  condition.Set("type", "weft.dev/DeviceLost");
  condition.Set("status", "True");
  condition.Set("reason", "DeviceLost");
  condition.Set("message", LostDevicesMessage(lost));
  condition.Set("lastTransitionTime", FormatObjectTime(since));
  return condition;
}

}  // namespace weft::platform
