// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/leader.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "absl/strings/str_join.h"

#include "weft/graph/device_name.h"

namespace weft::collective {
namespace {

constexpr absl::Duration kFillDeadline = absl::Minutes(10);
// Ranks that start together come to an open group within this time, or to the next epoch of it.
constexpr absl::Duration kSettled = absl::Seconds(3);

// Every task of the members once.
std::set<std::string> TasksOf(const std::map<std::string, CollectiveMember>& members) {
  std::set<std::string> tasks;
  for (const auto& [device, member] : members) tasks.insert(member.task());
  return tasks;
}

std::string DevicesOf(const std::map<std::string, CollectiveMember>& members) {
  std::vector<std::string> devices;
  for (const auto& [device, member] : members) devices.push_back(device);
  return absl::StrJoin(devices, ", ");
}

// Job, task, type and number: CPU:10 comes after CPU:9.
std::tuple<std::string, int, int, std::string, int, std::string> Order(const std::string& device) {
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  if (!name.ok()) return {"", 0, 0, "", 0, device};
  return {name->job.value_or(""),  name->replica.value_or(0), name->task.value_or(0),
          name->type.value_or(""), name->index.value_or(0),   device};
}

std::string TypeOf(const std::string& device) {
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  return name.ok() ? name->type.value_or("") : "";
}

}  // namespace

CollectiveMessage AbortMessage(int32_t group_key, uint64_t epoch, const Status& why) {
  CollectiveMessage message;
  message.set_kind(CollectiveMessage::ABORT);
  message.set_group_key(group_key);
  message.set_epoch(epoch);
  message.set_code(static_cast<int>(why.code()));
  message.set_text(std::string(why.message()));
  return message;
}

Status StatusOf(const CollectiveMessage& message) {
  const auto code = static_cast<absl::StatusCode>(message.code());
  const bool known = code > absl::StatusCode::kOk && code <= absl::StatusCode::kUnauthenticated;
  return Status(known ? code : absl::StatusCode::kAborted, message.text());
}

Status Leader::Check(const Group& group, const CollectiveMessage& join) const {
  const CollectiveMember& member = join.member(0);
  if (group.members.empty()) return absl::OkStatus();
  const CollectiveMember& first = group.members.begin()->second;
  if (group.is_open != (join.group_size() < 0)) {
    return InvalidArgument("Group ", join.group_key(), " is open to ranks that come and go ",
                           group.is_open ? "for " : "not for ", first.device(),
                           group.is_open ? ", and not for " : ", and is for ", member.device());
  }
  if (group.size != join.group_size()) {
    return InvalidArgument("Group ", join.group_key(), " has ", group.size, " members as ",
                           first.device(), " says, and ", join.group_size(), " as ",
                           member.device(), " says");
  }
  if (group.epoch != 0) {
    return InvalidArgument("Group ", join.group_key(), " has its ", group.size, " members, ",
                           DevicesOf(group.members), ": ", member.device(), " cannot join it");
  }
  if (TypeOf(first.device()) != TypeOf(member.device())) {
    return InvalidArgument("Group ", join.group_key(), " has devices of two types, ",
                           first.device(), " and ", member.device());
  }
  return absl::OkStatus();
}

std::optional<Leader::Forming> Leader::Join(const CollectiveMessage& join,
                                            std::vector<Addressed>* out) {
  if (join.member_size() != 1) return std::nullopt;
  const CollectiveMember& member = join.member(0);
  const int32_t key = join.group_key();
  if (join.group_size() < 0) return JoinOpen(join, out);
  Group& group = groups_[key];
  const auto known = group.members.find(member.device());
  if (group.epoch != 0 && known != group.members.end()) {
    const bool is_same_process = known->second.incarnation() == member.incarnation();
    if (is_same_process && join.epoch() != group.epoch && join.group_size() == group.size) {
      // It has not heard of this epoch yet.
      out->push_back({member.task(), GroupMessage(key, group)});
      return std::nullopt;
    }
    const Status over = Aborted("Group ", key, " is formed again: ", member.device(),
                                is_same_process ? " has left it" : " was started again");
    for (const std::string& task : TasksOf(group.members)) {
      out->push_back({task, AbortMessage(key, group.epoch, over)});
    }
    group = Group();
  }
  if (Status refused = Check(group, join); !refused.ok()) {
    out->push_back({member.task(), AbortMessage(key, 0, refused)});
    if (group.epoch == 0) {
      for (const std::string& task : TasksOf(group.members)) {
        if (task != member.task()) out->push_back({task, AbortMessage(key, 0, refused)});
      }
      groups_.erase(key);
    }
    return std::nullopt;
  }
  std::optional<Forming> forming;
  const absl::Duration wanted =
      join.timeout_seconds() > 0 ? absl::Seconds(join.timeout_seconds()) : kFillDeadline;
  if (group.members.empty() || wanted < group.deadline) {
    if (group.members.empty()) group.number = next_number_++;
    group.size = join.group_size();
    group.deadline = wanted;
    forming = Forming{key, group.number, wanted};
  }
  group.members[member.device()] = member;
  if (static_cast<int32_t>(group.members.size()) < group.size) return forming;
  Complete(key, &group, out);
  return std::nullopt;
}

uint64_t Leader::NextEpoch() {
  if (next_epoch_ == 0) ++next_epoch_;
  return next_epoch_++;
}

void Leader::Complete(int32_t group_key, Group* group, std::vector<Addressed>* out) {
  std::set<int32_t> ranks;
  bool all_named = true;
  for (const auto& [device, member] : group->members) {
    if (member.rank() < 0) all_named = false;
    if (member.rank() >= 0) ranks.insert(member.rank());
  }
  const bool is_whole = all_named && static_cast<int32_t>(ranks.size()) == group->size &&
                        *ranks.rbegin() == group->size - 1;
  if (!ranks.empty() && !is_whole) {
    std::vector<std::string> named;
    for (const auto& [device, member] : group->members)
      named.push_back(absl::StrCat(device, " is ", member.rank()));
    const Status refused = InvalidArgument("The ranks of group ", group_key, " must be 0 to ",
                                           group->size - 1, ": ", absl::StrJoin(named, ", "));
    for (const std::string& task : TasksOf(group->members))
      out->push_back({task, AbortMessage(group_key, 0, refused)});
    groups_.erase(group_key);
    return;
  }
  group->epoch = NextEpoch();
  const CollectiveMessage message = GroupMessage(group_key, *group);
  for (const std::string& task : TasksOf(group->members)) out->push_back({task, message});
}

CollectiveMessage Leader::GroupMessage(int32_t group_key, const Group& group) const {
  std::vector<const CollectiveMember*> ordered;
  for (const auto& [device, member] : group.members) ordered.push_back(&member);
  std::sort(ordered.begin(), ordered.end(),
            [](const CollectiveMember* a, const CollectiveMember* b) {
              if (a->rank() != b->rank()) return a->rank() < b->rank();
              return Order(a->device()) < Order(b->device());
            });
  CollectiveMessage message;
  message.set_kind(CollectiveMessage::GROUP);
  message.set_group_key(group_key);
  message.set_group_size(group.size);
  message.set_epoch(group.epoch);
  for (const CollectiveMember* member : ordered) *message.add_member() = *member;
  table_.Tell(static_cast<int>(TasksOf(group.members).size()), &message);
  return message;
}

std::string Leader::Present(const Group& group) const {
  const std::set<std::string> joined = TasksOf(group.members);
  std::vector<std::string> silent;
  for (const std::string& task : tasks_) {
    if (!joined.contains(task)) silent.push_back(task);
  }
  return absl::StrCat(
      group.members.size(), " of ", std::abs(group.size), " members are there, ",
      DevicesOf(group.members),
      silent.empty() ? "" : absl::StrCat("; nothing came from ", absl::StrJoin(silent, ", ")));
}

std::vector<std::string> Leader::Late(uint64_t number) const {
  std::vector<std::string> late;
  for (const auto& [key, group] : groups_) {
    if (group.epoch == 0 && group.number < number)
      late.push_back(absl::StrCat("Group ", key, " still forms: ", Present(group)));
  }
  return late;
}

bool Leader::IsForming() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const auto& entry) { return entry.second.epoch == 0; });
}

void Leader::Deadline(int32_t group_key, uint64_t number, std::vector<Addressed>* out) {
  const auto found = groups_.find(group_key);
  if (found == groups_.end()) return;
  const Group& group = found->second;
  if (group.number != number || group.epoch != 0) return;
  const Status late = DeadlineExceeded("Group ", group_key, " did not fill within ",
                                       absl::FormatDuration(group.deadline), ": ", Present(group));
  for (const std::string& task : TasksOf(group.members))
    out->push_back({task, AbortMessage(group_key, 0, late)});
  groups_.erase(found);
}

std::optional<Leader::Forming> Leader::JoinOpen(const CollectiveMessage& join,
                                                std::vector<Addressed>* out) {
  const CollectiveMember& member = join.member(0);
  const int32_t key = join.group_key();
  auto found = groups_.try_emplace(key).first;
  if (found->second.epoch != 0 && found->second.is_open) {
    Group& formed = found->second;
    const auto known = formed.members.find(member.device());
    if (known == formed.members.end()) {
      // Those in it go on until they ask whether somebody waits.
      formed.waiting[member.device()] = member;
      CollectiveMessage changed;
      changed.set_kind(CollectiveMessage::CHANGED);
      changed.set_group_key(key);
      changed.set_epoch(formed.epoch);
      for (const std::string& task : TasksOf(formed.members)) out->push_back({task, changed});
      return std::nullopt;
    }
    const bool is_same_process = known->second.incarnation() == member.incarnation();
    if (is_same_process && join.epoch() != formed.epoch) {
      out->push_back({member.task(), GroupMessage(key, formed)});
      return std::nullopt;
    }
    const Status over = Aborted("Group ", key, " is formed again: ", member.device(),
                                is_same_process ? " has left it" : " was started again");
    for (const std::string& task : TasksOf(formed.members))
      out->push_back({task, AbortMessage(key, formed.epoch, over)});
    EndEpoch(found);
    found = groups_.try_emplace(key).first;
    found->second.continues = true;
  }
  Group& group = found->second;
  CollectiveMessage as_others = join;
  if (group.is_open) as_others.set_group_size(group.size);  // the most that somebody wants counts
  if (Status refused = Check(group, as_others); !refused.ok()) {
    out->push_back({member.task(), AbortMessage(key, 0, refused)});
    return std::nullopt;
  }
  std::optional<Forming> forming;
  const absl::Duration wanted =
      join.timeout_seconds() > 0 ? absl::Seconds(join.timeout_seconds()) : kFillDeadline;
  if (group.members.empty() || group.number == 0 || wanted < group.deadline) {
    const bool begins = group.number == 0;
    if (begins) group.number = next_number_++;
    group.deadline = wanted;
    forming = Forming{key, group.number, wanted, begins ? kSettled : absl::ZeroDuration()};
  }
  group.is_open = true;
  group.size = std::min(group.size, join.group_size());
  group.continues = group.continues || join.epoch() != 0;
  group.members[member.device()] = member;
  if (!IsWhole(group)) return forming;
  Complete(key, &group, out);
  return std::nullopt;
}

bool Leader::HasAllTasks(const Group& group) const {
  const std::set<std::string> joined = TasksOf(group.members);
  return !tasks_.empty() && std::all_of(tasks_.begin(), tasks_.end(), [&](const auto& task) {
    return joined.contains(task) || task.starts_with("/job:ps/") ||
           task.starts_with("/job:evaluator/");
  });
}

bool Leader::IsWhole(const Group& group) const {
  if (!leads_ || group.epoch != 0 || static_cast<int32_t>(group.members.size()) < -group.size)
    return false;
  const std::set<std::string> joined = TasksOf(group.members);
  if (!std::includes(joined.begin(), joined.end(), ranks_.begin(), ranks_.end())) return false;
  return group.settled || group.continues || HasAllTasks(group);
}

void Leader::SetRanks(std::set<std::string> ranks, bool leads, std::vector<Addressed>* out) {
  ranks_ = std::move(ranks);
  leads_ = leads;
  for (auto it = groups_.begin(); it != groups_.end();) {
    auto& [key, group] = *it;
    if (!group.is_open || group.epoch != 0) {
      ++it;
    } else if (!leads_) {
      it = groups_.erase(it);  // they ask whom they take for the leader now
    } else {
      if (IsWhole(group)) Complete(key, &group, out);
      ++it;
    }
  }
}

void Leader::Settled(int32_t group_key, uint64_t number, std::vector<Addressed>* out) {
  const auto found = groups_.find(group_key);
  if (found == groups_.end() || found->second.number != number) return;
  found->second.settled = true;
  if (found->second.is_open && IsWhole(found->second)) Complete(group_key, &found->second, out);
}

Leader::Groups::iterator Leader::EndEpoch(Groups::iterator group) {
  if (group->second.waiting.empty()) return groups_.erase(group);
  Group next;
  next.is_open = true;
  next.size = group->second.size;
  next.continues = true;
  next.members = std::move(group->second.waiting);
  group->second = std::move(next);
  return std::next(group);
}

void Leader::Left(int32_t group_key, uint64_t epoch) {
  const auto found = groups_.find(group_key);
  if (found != groups_.end() && epoch != 0 && found->second.epoch == epoch) EndEpoch(found);
}

void Leader::TaskLost(const std::string& task, const Status& why, std::vector<Addressed>* out) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    auto& [key, group] = *it;
    const std::set<std::string> tasks = TasksOf(group.members);
    if (!tasks.contains(task)) {
      ++it;
      continue;
    }
    if (group.epoch != 0) {
      for (const std::string& other : tasks) {
        if (other != task) out->push_back({other, AbortMessage(key, group.epoch, why)});
      }
      std::erase_if(group.waiting, [&](const auto& entry) { return entry.second.task() == task; });
      it = EndEpoch(it);
      continue;
    }
    std::erase_if(group.members, [&](const auto& entry) { return entry.second.task() == task; });
    // The news may be of the process before, and whose question was forgotten lives: it asks again
    // when an epoch ends of which it knows nothing.
    out->push_back({task, AbortMessage(key, NextEpoch(), why)});
    it = group.members.empty() ? groups_.erase(it) : std::next(it);
  }
}

}  // namespace weft::collective
