// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/job_index.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/pod_view.h"

namespace weft::platform {
namespace {

constexpr char kIndex[] = "batch.kubernetes.io/job-completion-index";
constexpr char kIndexVariable[] = "JOB_COMPLETION_INDEX";

}  // namespace

int64_t CompletionIndexOf(const Json& pod) {
  int64_t index = -1;
  return absl::SimpleAtoi(PodView(pod).annotation(kIndex), &index) ? index : -1;
}

std::string Ranges(const std::set<int64_t>& numbers) {
  std::vector<std::string> parts;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int64_t first = *at;
    int64_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    parts.push_back(first == last       ? absl::StrCat(first)
                    : first + 1 == last ? absl::StrCat(first, ",", last)
                                        : absl::StrCat(first, "-", last));
  }
  return absl::StrJoin(parts, ",");
}

void AddCompletionIndex(const std::string& job, int64_t index, Json* pod) {
  const std::string text = absl::StrCat(index);
  SetField(pod, {"metadata", "annotations", kIndex}, text);
  SetField(pod, {"metadata", "labels", kIndex}, text);
  SetField(pod, {"spec", "hostname"}, absl::StrCat(job, "-", index));
  Json reference;
  SetField(&reference, {"fieldRef", "fieldPath"}, absl::StrCat("metadata.labels['", kIndex, "']"));
  Json variable;
  variable.Set("name", kIndexVariable);
  variable.Set("valueFrom", std::move(reference));
  for (const char* list : {"initContainers", "containers"}) {
    Json* const containers = pod->FindMutable("spec")->FindMutable(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers->mutable_items()) {
      if (container.FindMutable("env") == nullptr) container.Set("env", Json::MakeArray());
      container.FindMutable("env")->Append(variable);
    }
  }
}

}  // namespace weft::platform
