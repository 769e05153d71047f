// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/packed_job.h"

#include <algorithm>
#include <utility>

#include "platform/jobs/packed_pod.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

std::vector<TaskPack> PacksOf(const Json& packing) {
  std::vector<TaskPack> packs;
  const Json* const pods = packing.Find("pods");
  if (pods == nullptr) return packs;
  for (const Json& pod : pods->items()) packs.push_back(ParsePack(pod.AsString().value_or("")));
  return packs;
}

bool HasEnded(const Json& object) {
  const Json* const status = object.Find("status");
  return status != nullptr && JobStatus(*status, "", absl::InfinitePast()).IsFinished();
}

}  // namespace

bool NeedsPacking(const TfJob& job, const Json& object) {
  return job.extras.packing != Packing::kNever && !job.run_policy.suspend &&
         FindField(object, {"status", "packing"}) == nullptr && !HasEnded(object);
}

PackedJob::PackedJob(const JobObservation& observation) : told_(observation), seen_(observation) {
  Decide();
  seen_.view.packs = PacksOf(packing_);
  seen_.pods = UnpackTasks(told_.pods);
}

void PackedJob::Decide() {
  const TfJob& job = told_.view.job;
  const Json* const known = FindField(*told_.view.object, {"status", "packing"});
  const bool has_pods = !told_.pods.empty();
  if (known != nullptr) {
    packing_ = *known;
    // Another run may get other nodes, and another number of tasks other pods.
    const bool is_over = job.run_policy.suspend || !ArePacksOf(job, PacksOf(packing_));
    if (!is_over || has_pods || HasEnded(*told_.view.object)) return;
    packing_ = Json();
  }
  if (job.run_policy.suspend || HasEnded(*told_.view.object)) return;
  PackingChoice choice;
  if (has_pods) {
    choice.reason = "Each task has a pod of its own: they had begun so.";
  } else {
    choice = ChoosePacking(job, told_.nodes.get());
  }
  Json pods = Json::MakeArray();
  for (const TaskPack& pack : choice.packs) pods.Append(FormatPack(pack));
  packing_ = Json::MakeObject();
  packing_.Set("pods", std::move(pods));
  packing_.Set("reason", choice.reason);
  reason_ = std::move(choice.reason);
}

void PackedJob::Finish(JobPlan* plan) const {
  plan->delete_pods = PodsOfTasks(plan->delete_pods, told_.pods);
  packing_.is_null() ? (void)plan->status.Erase("packing") : plan->status.Set("packing", packing_);
  if (reason_.empty()) return;
  plan->events.push_back({"Normal", seen_.view.packs.empty() ? "NotPacked" : "Packed", reason_});
  // The next look goes by it, whatever happens before the pods are there.
  plan->status_first = true;
}

}  // namespace weft::platform
