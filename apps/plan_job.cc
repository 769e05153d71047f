// SPDX-License-Identifier: Apache-2.0
#include "apps/plan_job.h"

#include <cstdio>
#include <map>

#include "apps/plan_inputs.h"
#include "base/clock.h"
#include "platform/jobs/job_scaling.h"
#include "platform/object/tfjob.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::apps {

Status PrintJobPlan(const RunningJob& running) {
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access, FindCluster(running.cluster));
  const std::string& where =
      running.namespace_name.empty() ? access.namespace_name : running.namespace_name;
  std::map<std::string, double> prices;
  if (!running.prices.empty()) {
    WEFT_ASSIGN_OR_RETURN(prices, ReadPriceFile(running.prices));
  }
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::KubernetesStore::Connect(access, &clock));
  WEFT_ASSIGN_OR_RETURN(const platform::ObjectPtr object,
                        store->Get(platform::TfJobs(), {where, running.name}));
  WEFT_ASSIGN_OR_RETURN(const platform::TfJob job,
                        platform::ParseTfJob(*object, kJobPrefix + running.name));
  platform::TaskPrices of_tasks;
  if (!prices.empty()) {
    WEFT_ASSIGN_OR_RETURN(const platform::ObjectList nodes, store->List(platform::Nodes(), {}));
    WEFT_ASSIGN_OR_RETURN(const platform::ObjectList pods, store->List(platform::Pods(), {}));
    platform::PackingNodes room = platform::ReadPackingNodes(nodes.items, pods.items);
    of_tasks = platform::SurroundingsOfJob(job, pods.items, prices, &room).prices;
    if (!of_tasks.are_dollars) {
      return NotFound(running.prices, " has no price of the nodes where ", running.name,
                      " runs (label node.kubernetes.io/instance-type)");
    }
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        platform::DescribeScaling(job, *object, of_tasks, clock.Now()));
  std::printf("%s", text.c_str());
  return absl::OkStatus();
}

}  // namespace weft::apps
