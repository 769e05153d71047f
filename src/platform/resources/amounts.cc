// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/amounts.h"

#include <algorithm>

#include "platform/object/quantity.h"

namespace weft::platform {

void SetAmount(Amounts* amounts, size_t resource, int64_t value) {
  if (amounts->size() <= resource) amounts->resize(resource + 1, 0);
  (*amounts)[resource] = value;
}

void RaiseAmounts(const Amounts& at_least, Amounts* to) {
  if (to->size() < at_least.size()) to->resize(at_least.size(), 0);
  for (size_t i = 0; i < at_least.size(); ++i) (*to)[i] = std::max((*to)[i], at_least[i]);
}

size_t ResourceNames::NumberOf(absl::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<size_t>(found - names_.begin());
  names_.emplace_back(name);
  return names_.size() - 1;
}

bool IsGpuResource(absl::string_view name) {
  static constexpr absl::string_view kNames[] = {
      "nvidia.com/gpu",         "alpha.kubernetes.io/nvidia-gpu",
      "weft.dev/gpu-memory",    "aliyun.com/gpu-mem",
      "nvidia.com/gpumem",      "nvidia.com/gpucores",
      "tencent.com/vcuda-core", "tencent.com/vcuda-memory"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

StatusOr<Amounts> ReadAmounts(const Json* mapping, ResourceNames* names) {
  Amounts amounts;
  if (mapping == nullptr) return amounts;
  for (const JsonMember& member : mapping->members()) {
    if (IsGpuResource(member.name)) continue;
    const StatusOr<int64_t> thousandths = ParseQuantity(member.value);
    if (!thousandths.ok()) return Annotate(thousandths.status(), member.name);
    const size_t resource = names->NumberOf(member.name);
    // Rounded up: half a byte more is still more.
    SetAmount(&amounts, resource, resource == kCpu ? *thousandths : (*thousandths + 999) / 1000);
  }
  return amounts;
}

std::string FormatAmount(size_t resource, int64_t amount) {
  if (resource == kCpu) return FormatQuantity(amount, false);
  if (resource != kMemory) return FormatQuantity(amount * 1000, false);
  // To a tenth of the greatest unit, as people say it; exact amounts stand in the objects.
  static constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  auto value = static_cast<double>(amount);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  const auto tenths = static_cast<int64_t>(value * 10);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + kUnits[unit];
}

}  // namespace weft::platform
