// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/step_tasks.h"

#include <utility>
#include <vector>

namespace weft::cluster {

Status StepTasks::Describe(const std::string& owner, const tensorflow::ServerDef& server) {
  WEFT_ASSIGN_OR_RETURN(ClusterSpec spec, ClusterSpec::FromProto(server.cluster()));
  const TaskId self{server.job_name(), server.task_index()};
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<TaskDirectory>& tasks = tasks_[owner];
  if (tasks != nullptr && tasks->self() == self && tasks->cluster().tasks() == spec.tasks())
    return absl::OkStatus();
  tasks = std::make_shared<TaskDirectory>(std::move(spec), self, waits_, identity_);
  // The servers were started with clusters of their own.
  tasks->LetClustersDiffer();
  return absl::OkStatus();
}

void StepTasks::Forget(const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  tasks_.erase(owner);
  absl::erase_if(owners_, [&](const auto& entry) { return entry.second == owner; });
}

void StepTasks::ForgetUnless(absl::FunctionRef<bool(const std::string& owner)> there) {
  std::vector<std::string> owners;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [owner, tasks] : tasks_) owners.push_back(owner);
  }
  for (const std::string& owner : owners) {
    if (!there(owner)) Forget(owner);
  }
}

void StepTasks::Begin(int64_t step, const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  if (tasks_.contains(owner)) owners_[step] = owner;
}

void StepTasks::End(int64_t step) {
  absl::MutexLock lock(&mutex_);
  owners_.erase(step);
}

std::shared_ptr<TaskDirectory> StepTasks::TasksOf(const std::string& owner) const {
  absl::MutexLock lock(&mutex_);
  const auto found = tasks_.find(owner);
  return found == tasks_.end() ? nullptr : found->second;
}

std::shared_ptr<TaskDirectory> StepTasks::FindCluster(const TaskId& task,
                                                      const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [owner, tasks] : tasks_) {
    const auto found = tasks->cluster().tasks().find(task);
    if (found != tasks->cluster().tasks().end() && found->second == address) return tasks;
  }
  return nullptr;
}

void StepTasks::Pull(int64_t step, const RendezvousKey& key,
                     std::shared_ptr<Cancellation> cancellation, ReceiveCallback done) {
  std::shared_ptr<TaskDirectory> tasks;
  {
    absl::MutexLock lock(&mutex_);
    const auto owner = owners_.find(step);
    const auto found = owner == owners_.end() ? tasks_.end() : tasks_.find(owner->second);
    if (found != tasks_.end()) tasks = found->second;
  }
  rendezvous::TensorSource& source = tasks != nullptr ? *tasks : *known_;
  source.Pull(step, key, std::move(cancellation), std::move(done));
}

}  // namespace weft::cluster
