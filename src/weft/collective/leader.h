// SPDX-License-Identifier: Apache-2.0
// The task that hears from all members of a group and tells them who they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/collective/network.h"

namespace weft::collective {

// A message and the task that it is for.
struct Addressed {
  std::string task;
  CollectiveMessage message;
};

// Puts a status into an ABORT and takes it out again.
CollectiveMessage AbortMessage(int32_t group_key, uint64_t epoch, const Status& why);
Status StatusOf(const CollectiveMessage& message);

// Pure: messages in, messages out. Not thread-safe.
class Leader {
 public:
  // `first_epoch` differs at each start of the process. `tasks` are those of the cluster, for what
  // is said of a group that does not fill.
  Leader(uint64_t first_epoch, std::vector<std::string> tasks)
      : next_epoch_(first_epoch), tasks_(std::move(tasks)) {}

  // A group that began to form with this JOIN, and until when it must be complete.
  struct Forming {
    int32_t group_key = 0;
    uint64_t number = 0;
    absl::Duration deadline;
  };
  std::optional<Forming> Join(const CollectiveMessage& join, std::vector<Addressed>* out);
  // The deadline of Forming has come.
  void Deadline(int32_t group_key, uint64_t number, std::vector<Addressed>* out);
  // A member's task has left this epoch, or is gone.
  void Left(int32_t group_key, uint64_t epoch);
  void TaskLost(const std::string& task, const Status& why, std::vector<Addressed>* out);

 private:
  struct Group {
    int32_t size = 0;
    uint64_t epoch = 0;   // 0 while it forms
    uint64_t number = 0;  // of this forming
    absl::Duration deadline;
    std::map<std::string, CollectiveMember> members;  // by device
  };
  Status Check(const Group& group, const CollectiveMessage& join) const;
  void Complete(int32_t group_key, Group* group, std::vector<Addressed>* out);
  CollectiveMessage GroupMessage(int32_t group_key, const Group& group) const;
  std::string Missing(const Group& group) const;

  uint64_t next_epoch_;
  uint64_t next_number_ = 1;
  const std::vector<std::string> tasks_;
  std::map<int32_t, Group> groups_;
};

}  // namespace weft::collective
