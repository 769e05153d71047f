// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/gpu_needs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

using Totals = std::map<std::string, int64_t>;  // in thousandths

// A GPU's request and limit are the same; either may be written alone.
const Json* FindAmount(const Json& container, absl::string_view name) {
  for (const char* kind : {"limits", "requests"}) {
    const Json* const amounts = FindField(container, {"resources", kind});
    const Json* const value = amounts == nullptr ? nullptr : amounts->Find(name);
    if (value != nullptr) return value;
  }
  return nullptr;
}

Status AddContainer(const Json& container, bool is_init, Totals* totals) {
  for (const char* kind : {"limits", "requests"}) {
    const Json* const amounts = FindField(container, {"resources", kind});
    if (amounts == nullptr) continue;
    for (const JsonMember& member : amounts->members()) {
      if (!IsGpuResource(member.name)) continue;
      const Json* const counts = FindAmount(container, member.name);
      if (counts != &member.value) continue;  // counted as a limit
      const StatusOr<int64_t> thousandths = ParseQuantity(member.value);
      if (!thousandths.ok()) return Annotate(thousandths.status(), member.name);
      if (*thousandths % 1000 != 0) {
        return InvalidArgument(member.name, " holds ", member.value.Dump(),
                               ", a whole number is allowed: for a part of a GPU ask for "
                               "weft.dev/gpu-memory");
      }
      int64_t& total = (*totals)[member.name];
      total = is_init ? std::max(total, *thousandths) : total + *thousandths;
    }
  }
  return absl::OkStatus();
}

int64_t TotalOf(const Totals& totals, const char* name) {
  const auto found = totals.find(name);
  return found == totals.end() ? 0 : found->second / 1000;
}

Status ReadShares(const Totals& totals, GpuNeeds* gpu) {
  const std::pair<const char*, int64_t> kMemoryNames[] = {{"weft.dev/gpu-memory", 1},
                                                          {"aliyun.com/gpu-mem", kGiB},
                                                          {"nvidia.com/gpumem", kMiB},
                                                          {"tencent.com/vcuda-memory", 256 * kMiB}};
  const char* named = nullptr;
  for (const auto& [name, unit] : kMemoryNames) {
    const int64_t amount = TotalOf(totals, name);
    if (amount == 0) continue;
    if (named != nullptr)
      return InvalidArgument("a share of a GPU is asked for as ", named, " and as ", name);
    named = name;
    if (amount > (int64_t{1} << 50) / unit)
      return InvalidArgument(name, " holds ", amount, ", which no GPU has");
    gpu->memory = amount * unit;
  }
  const int64_t cores = TotalOf(totals, "tencent.com/vcuda-core");
  if (cores >= 100 && cores % 100 != 0)
    return InvalidArgument("tencent.com/vcuda-core holds ", cores,
                           ", less than 100 or a multiple of 100 is allowed");
  if (cores >= 100) gpu->count = cores / 100;
  if (cores > 0 && cores < 100) gpu->thousandths = cores * 10;
  const int64_t percent = TotalOf(totals, "nvidia.com/gpucores");
  if (percent > 100)
    return InvalidArgument("nvidia.com/gpucores holds ", percent, ", at most 100 is allowed");
  if (percent > 0) gpu->thousandths = percent * 10;
  if (gpu->count == 0 && gpu->is_shared()) gpu->count = 1;
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<int>> ParseGpuIndices(absl::string_view text) {
  std::vector<int> indices;
  if (text.empty()) return indices;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int index = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &index) || index < 0 ||
        index >= kMostGpus || std::find(indices.begin(), indices.end(), index) != indices.end()) {
      return InvalidArgument("holds \"", text,
                             "\", different numbers of GPUs are allowed, as \"0,1,3\"");
    }
    indices.push_back(index);
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

int64_t GpuCountOf(const Json& container) {
  int64_t count = 0;
  for (const char* name : {"nvidia.com/gpu", "alpha.kubernetes.io/nvidia-gpu"}) {
    const Json* const value = FindAmount(container, name);
    if (value != nullptr) count = std::max(count, ParseQuantity(*value).value_or(0) / 1000);
  }
  return count;
}

StatusOr<GpuNeeds> ReadGpuNeeds(const Json& pod) {
  Totals totals;
  for (const char* list : {"containers", "initContainers"}) {
    const Json* const containers = FindField(pod, {"spec", list});
    if (containers == nullptr) continue;
    for (const Json& container : containers->items()) {
      const bool is_init = list[0] == 'i' && StringField(container, {"restartPolicy"}) != "Always";
      WEFT_RETURN_IF_ERROR(AddContainer(container, is_init, &totals));
    }
  }
  GpuNeeds gpu;
  gpu.count = std::max(TotalOf(totals, "nvidia.com/gpu"),
                       TotalOf(totals, "alpha.kubernetes.io/nvidia-gpu"));
  WEFT_RETURN_IF_ERROR(ReadShares(totals, &gpu));
  const std::string set = StringField(pod, {"metadata", "annotations", kGpuSetAnnotation});
  StatusOr<std::vector<int>> indices = ParseGpuIndices(set);
  if (!indices.ok()) return Annotate(indices.status(), kGpuSetAnnotation);
  gpu.indices = *std::move(indices);
  const auto wanted = static_cast<int64_t>(gpu.indices.size());
  if (wanted > 0 && gpu.count == 0) gpu.count = wanted;
  if (wanted > 0 && gpu.count != wanted) {
    return InvalidArgument(kGpuSetAnnotation, " names ", wanted, " GPUs, the containers ask for ",
                           gpu.count);
  }
  for (const char* name : {kGpuModelAnnotation, "nvidia.com/use-gputype"}) {
    const std::string models = StringField(pod, {"metadata", "annotations", name});
    for (absl::string_view model : absl::StrSplit(models, ',', absl::SkipWhitespace()))
      gpu.models.emplace_back(absl::StripAsciiWhitespace(model));
  }
  return gpu;
}

}  // namespace weft::platform
