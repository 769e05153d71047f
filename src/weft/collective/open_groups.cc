// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks come and go: how the engine forms them, and who leads.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/collective/engine.h"

namespace weft::collective {
namespace {

constexpr absl::Duration kRemindEvery = absl::Seconds(3);
// As long as a group may take to fill.
constexpr int kMostReminders = 200;

}  // namespace

void Engine::RunOpen(int32_t key, Group* group, const CallRef& call) {
  const CollectiveCall& what = call->what;
  if (!group->is_open && (group->epoch != 0 || !group->waiting.empty())) {
    return End(call, InvalidArgument("Group ", key, " has ", group->size, " members, and '",
                                     what.node, "' on ", what.device, " takes it for an open one"));
  }
  group->is_open = true;
  if (what.group_size == kOpenGroup) {
    if (group->epoch != 0) return Enter(key, group, call);
    const auto missed = group->missed.find(what.device);
    return End(call, missed != group->missed.end()
                         ? missed->second.second
                         : Aborted("Group ", key, " is over, and was not formed again"));
  }
  const Status over = Aborted("Group ", key, ": ", what.device, " forms it again");
  EndEpoch(key, group, over, over, /*tell=*/true);
  group->missed.erase(what.device);
  group->waiting.push_back(call);
  group->joining.insert(what.device);
  network_->BeRank();
  // Else SetRanks comes, and with it who is asked.
  if (!open_leader_.empty()) Ask(key, group, what);
  group->reminders = 0;
  RemindLater(key, group);
}

void Engine::RemindLater(int32_t key, Group* group) {
  if (std::exchange(group->reminds, true)) return;
  network_->After(kRemindEvery, [this, key] { Remind(key); });
}

void Engine::Remind(int32_t key) {
  {
    absl::MutexLock lock(&mutex_);
    Group& group = groups_[key];
    group.reminds = false;
    if (group.epoch != 0 || !IsAwaited(group) || ++group.reminders > kMostReminders) return;
    if (!open_leader_.empty()) AskAgain(key, &group);
    RemindLater(key, &group);
  }
  Work();
}

Engine::View Engine::ViewOf(int32_t group_key) {
  absl::MutexLock lock(&mutex_);
  View view;
  const auto found = groups_.find(group_key);
  if (found == groups_.end() || found->second.epoch == 0) return view;
  view.epoch = found->second.epoch;
  view.changed = found->second.changed;
  for (const CollectiveMember& member : found->second.members->members)
    view.devices.push_back(member.device());
  return view;
}

void Engine::SetRanks(const std::vector<std::string>& ranks) {
  {
    absl::MutexLock lock(&mutex_);
    const std::string leader = ranks.empty() ? "" : ranks.front();
    const bool moved = leader != open_leader_;
    open_leader_ = leader;
    std::vector<Addressed> out;
    leader_.SetRanks({ranks.begin(), ranks.end()}, leader.empty() || leader == self(), &out);
    PostAll(std::move(out));
    ranks_ = ranks;
    for (auto& [key, group] : groups_) {
      if (moved && group.is_open && group.epoch == 0) AskAgain(key, &group);
      // Who comes may be the one who leads from now on, and knows nothing of this epoch.
      if (group.is_open && group.epoch != 0 && HasStrangers(group)) group.changed = true;
    }
  }
  Work();
}

// Whether a rank lives that is not in the group as it was formed.
bool Engine::HasStrangers(const Group& group) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const std::string& rank) {
    return std::none_of(group.members->members.begin(), group.members->members.end(),
                        [&](const CollectiveMember& member) { return member.task() == rank; });
  });
}

bool Engine::IsAwaited(const Group& group) const {
  return std::any_of(group.waiting.begin(), group.waiting.end(),
                     [](const CallRef& call) { return !call->ended; });
}

void Engine::TakeChanged(const CollectiveMessage& message) {
  const auto found = groups_.find(message.group_key());
  if (found != groups_.end() && found->second.epoch == message.epoch())
    found->second.changed = true;
}

}  // namespace weft::collective
