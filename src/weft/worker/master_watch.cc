// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/master_watch.h"

#include <set>
#include <utility>

#include "absl/strings/str_split.h"

#include "base/log.h"

namespace weft::worker {

StatusOr<uint64_t> ProbeMaster(const std::string& master, cluster::TaskDirectory* known,
                               const cluster::StepTasks& sessions, absl::Duration patience,
                               Cancellation* cancellation) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(master, '@');
  WEFT_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(parts.first));
  if (!name.job || !name.task) return InvalidArgument("Not a task: ", master);
  const cluster::TaskId task{*name.job, *name.task};
  std::shared_ptr<cluster::TaskDirectory> others;  // of its cluster
  if (!parts.second.empty()) {
    others = sessions.FindCluster(task, parts.second);
    if (others == nullptr) return Unavailable("No cluster with ", master, " is known");
    known = others.get();
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<cluster::TaskStatus> answers,
                        known->GetStatus({task}, patience, cancellation));
  if (answers.empty()) return Unavailable("No answer from ", master);
  return answers.front().data.incarnation;
}

void MasterWatch::Check() {
  const std::set<Process> masters = worker_->masters();
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(silent_since_, [&](const auto& entry) { return !masters.contains(entry.first); });
  }
  for (const Process& master : masters) {
    const StatusOr<uint64_t> now = probe_(master.first);
    bool gone = now.ok() && *now != master.second;
    {
      absl::MutexLock lock(&mutex_);
      if (now.ok()) {
        silent_since_.erase(master);
      } else {
        const absl::Duration time = clock_->Monotonic();
        const absl::Duration since = silent_since_.try_emplace(master, time).first->second;
        gone = time - since >= patience_;
        if (gone) silent_since_.erase(master);
      }
    }
    if (!gone) continue;
    WEFT_LOG(INFO) << "Dropping the sessions of " << master.first
                   << (now.ok() ? ", which was started again" : ", which does not answer");
    worker_->DropSessionsOf(master.first, master.second);
  }
}

bool MasterWatch::FindsOne() const {
  for (const auto& [master, incarnation] : worker_->masters()) {
    const StatusOr<uint64_t> now = probe_(master);
    if (now.ok() && *now == incarnation) return true;
  }
  return false;
}

}  // namespace weft::worker
