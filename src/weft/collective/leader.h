// SPDX-License-Identifier: Apache-2.0
// The task that hears from all members of a group and tells them who they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/collective/algorithm_table.h"
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
  // is said of a group that does not fill; `table` is what its members choose algorithms by.
  Leader(uint64_t first_epoch, std::vector<std::string> tasks, AlgorithmTable table = {})
      : next_epoch_(first_epoch), tasks_(std::move(tasks)), table_(std::move(table)) {}

  // A group that began to form with this JOIN, and until when it must be complete.
  struct Forming {
    int32_t group_key = 0;
    uint64_t number = 0;
    absl::Duration deadline;
    absl::Duration settled = absl::ZeroDuration();  // when to call Settled; zero: never
  };
  std::optional<Forming> Join(const CollectiveMessage& join, std::vector<Addressed>* out);
  // Of an open group: who is alive and takes part in such, and whether this task is whom all ask.
  void SetRanks(std::set<std::string> ranks, bool leads, std::vector<Addressed>* out);
  // Nobody was heard of for a while: an open group that begins needs no more patience.
  void Settled(int32_t group_key, uint64_t number, std::vector<Addressed>* out);
  // The deadline of Forming has come.
  void Deadline(int32_t group_key, uint64_t number, std::vector<Addressed>* out);
  // A member's task has left this epoch, or is gone.
  void Left(int32_t group_key, uint64_t epoch);
  void TaskLost(const std::string& task, const Status& why, std::vector<Addressed>* out);
  // Of groups that still form and began to before the `number`-th: who is there, who is not.
  std::vector<std::string> Late(uint64_t number) const;
  uint64_t next_number() const { return next_number_; }
  bool IsForming() const;

 private:
  struct Group {
    int32_t size = 0;
    uint64_t epoch = 0;   // 0 while it forms
    uint64_t number = 0;  // of this forming
    absl::Duration deadline;
    std::map<std::string, CollectiveMember> members;  // by device
    // Of an open group.
    bool is_open = false;
    bool settled = false;                             // all who start with it had time to come
    bool continues = false;                           // somebody was in it before
    std::map<std::string, CollectiveMember> waiting;  // for the end of this epoch
  };
  using Groups = std::map<int32_t, Group>;
  Status Check(const Group& group, const CollectiveMessage& join) const;
  void Complete(int32_t group_key, Group* group, std::vector<Addressed>* out);
  CollectiveMessage GroupMessage(int32_t group_key, const Group& group) const;
  // "1 of 2 members are there, ...; nothing came from ..."
  std::string Present(const Group& group) const;
  // An open group is of all ranks that are alive, and before it began once, of all that may come.
  bool IsWhole(const Group& group) const;
  bool HasAllTasks(const Group& group) const;
  std::optional<Forming> JoinOpen(const CollectiveMessage& join, std::vector<Addressed>* out);
  // The epoch ended: who waited begins the next.
  Groups::iterator EndEpoch(Groups::iterator group);

  uint64_t NextEpoch();  // never 0

  uint64_t next_epoch_;
  uint64_t next_number_ = 1;
  const std::vector<std::string> tasks_;
  const AlgorithmTable table_;
  Groups groups_;
  std::set<std::string> ranks_;  // empty: not known
  bool leads_ = true;
};

}  // namespace weft::collective
