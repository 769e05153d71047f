// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/workload.h"

namespace weft::platform {

Usage UsageOf(const PodNeeds& needs) {
  Usage usage;
  usage.of[0] = AmountOf(needs.amounts, kCpu);
  usage.of[1] = AmountOf(needs.amounts, kMemory);
  // A share of memory alone counts as a whole GPU only where its size is not known.
  usage.of[2] = needs.gpu.count * needs.gpu.thousandths;
  return usage;
}

void AddUsage(const Usage& more, int64_t sign, Usage* to) {
  for (size_t i = 0; i < more.of.size(); ++i) to->of[i] += sign * more.of[i];
}

void Measure(Workload* workload) {
  workload->usage = Usage();
  for (const auto& pod : workload->pods) AddUsage(UsageOf(*pod), 1, &workload->usage);
  const int64_t gpus = workload->usage.of[2];
  workload->width = static_cast<double>(gpus > 0 ? gpus : workload->usage.of[0]) / 1000;
}

}  // namespace weft::platform
