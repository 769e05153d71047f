// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/dry_run.h"

#include <set>
#include <utility>

#include "platform/store/dry_run_store.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kListPause = absl::Milliseconds(20);

}  // namespace

StatusOr<int> TellChanges(TfJobController::Options options, absl::Duration timeout,
                          const std::function<void(const std::string& line)>& tell) {
  // A second look at a job, whose pods did not come, would find the same again.
  std::set<std::string> told;
  DryRunStore store(options.store, [&](const std::string& line) {
    if (told.insert(line).second) tell(line);
  });
  options.store = &store;
  options.pool = nullptr;  // one line after the other
  const absl::Duration deadline = options.clock->Monotonic() + timeout;
  for (const ResourceType* const type : {&TfJobs(), &Tensorflows()}) {
    options.type = type;
    TfJobController controller(options);
    controller.Maintain();
    while (!controller.HasSynced()) {
      if (options.clock->Monotonic() >= deadline) {
        return DeadlineExceeded("The ", type->plural, " of the cluster, with their pods, were not ",
                                "listed in time");
      }
      absl::SleepFor(kListPause);
      controller.Maintain();
    }
    while (controller.Step()) {
    }
  }
  return static_cast<int>(told.size());
}

}  // namespace weft::platform
