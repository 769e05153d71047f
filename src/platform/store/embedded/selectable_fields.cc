// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/store/api_error.h"
#include "platform/store/embedded/rules.h"

namespace weft::platform {
namespace {

constexpr std::pair<absl::string_view, absl::string_view> kSelectable[] = {
    {"pods", "spec.nodeName"},
    {"pods", "spec.restartPolicy"},
    {"pods", "spec.schedulerName"},
    {"pods", "spec.serviceAccountName"},
    {"pods", "spec.hostNetwork"},
    {"pods", "status.phase"},
    {"pods", "status.podIP"},
    {"pods", "status.nominatedNodeName"},
    {"events", "involvedObject.kind"},
    {"events", "involvedObject.namespace"},
    {"events", "involvedObject.name"},
    {"events", "involvedObject.uid"},
    {"events", "involvedObject.apiVersion"},
    {"events", "involvedObject.resourceVersion"},
    {"events", "involvedObject.fieldPath"},
    {"events", "reason"},
    {"events", "reportingComponent"},
    {"events", "source"},
    {"events", "type"},
    {"secrets", "type"},
    {"namespaces", "status.phase"},
    {"nodes", "spec.unschedulable"},
    {"services", "spec.clusterIP"},
    {"services", "spec.type"},
    {"replicasets", "status.replicas"},
};

}  // namespace

Status CheckSelectableFields(const ResourceType& type, const Selector& fields) {
  std::vector<std::string> known = {"metadata.name", "metadata.namespace"};
  for (const auto& [plural, path] : kSelectable) {
    if (type.plural == plural) known.emplace_back(path);
  }
  for (const std::string& key : fields.Keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return ApiError(400, "BadRequest",
                    absl::StrCat("field selector: ", type.plural, " are not listed by \"", key,
                                 "\", only by ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace weft::platform
