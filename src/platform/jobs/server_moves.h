// SPDX-License-Identifier: Apache-2.0
// A job whose parameter servers share a number of pods that changes, for a planner that knows tasks
// alone. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "platform/jobs/tfjob_plan.h"

namespace weft::platform {

// Which tasks share a pod when there are so many pods: neighbours, as evenly as can be.
std::vector<TaskPack> SpreadServers(int64_t tasks, int64_t pods);

// Tasks go to a pod of another number of tasks by handover: that pod is made first and takes over
// what each of them holds; the one before ends when all of its tasks are in pods that run. A count
// stands in status.servers from the moment when it is taken up, and the next one waits until no
// task is on its way.
class ServerMoves {
 public:
  explicit ServerMoves(const JobObservation& observation);
  // With one pod for each parameter server: the one that has it, or shall have it.
  const JobObservation& seen() const { return seen_; }
  // Pods in place of tasks, those that take over, the ends of those that have handed over, and the
  // status.
  void Finish(JobPlan* plan) const;

 private:
  struct Holder {
    ObjectPtr pod;
    TaskPack tasks;
    bool is_wanted = false;  // it has the tasks that a pod shall have, and is not being ended
    bool runs = false;
  };

  void Classify();
  const Holder* WantedOf(const TaskId& task) const;
  std::vector<const Holder*> LeavingOf(const TaskId& task) const;
  bool IsOnItsWay() const;
  void ShowTasks();
  void TakeOver(const TaskPack& tasks, JobPlan* plan) const;
  void EndPod(const Holder& holder, JobPlan* plan) const;
  void Tell(JobPlan* plan) const;

  const JobObservation& told_;
  const ReplicaSpec& servers_;
  JobObservation seen_;
  bool rests_ = false;  // the job is suspended or has ended
  int64_t known_ = 0;   // pods, as the status says; 0: nothing
  int64_t count_ = 0;   // pods that there shall be now
  std::vector<TaskPack> wanted_;
  std::vector<Holder> holders_;
};

}  // namespace weft::platform
