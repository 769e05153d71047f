// SPDX-License-Identifier: Apache-2.0
// What the engine says of calls that wait for long: whom they wait for, and where those are.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "base/log.h"
#include "weft/collective/engine.h"

namespace weft::collective {
namespace {

// The leader knows better than its members who is missing: it gets this much longer to say so.
constexpr absl::Duration kLeadersTurn = absl::Seconds(2);
// The log says of a call that waits for so long whom it waits for, and again each time that it has
// waited for twice as long, kMostRemarks times.
constexpr absl::Duration kRemarkAfter = absl::Seconds(30);
// Of ranks that come to the instances in another order: "; X is at instance 4".
std::string Elsewhere(const std::map<Exchange::Key, std::shared_ptr<Exchange>>& exchanges,
                      const Membership& members, int32_t instance) {
  std::vector<std::string> elsewhere;
  const auto add = [&](const std::string& task, int32_t there) {
    elsewhere.push_back(absl::StrCat(task, " has come to instance ", there, ", but no rank here"));
  };
  for (const auto& [key, exchange] : exchanges) {
    if (std::get<0>(key) == instance) continue;
    for (const std::string& task : exchange->CameAlone()) add(task, std::get<0>(key));
  }
  for (size_t task = 0; members.boards != nullptr && task < members.tasks.size(); ++task) {
    for (const int32_t there : members.boards->Instances(static_cast<int>(task))) {
      const bool is_known = std::any_of(exchanges.begin(), exchanges.end(), [&](const auto& entry) {
        return std::get<0>(entry.first) == there;
      });
      if (there != instance && !is_known) add(members.tasks[task], there);
    }
  }
  return elsewhere.empty() ? "" : absl::StrCat("; ", absl::StrJoin(elsewhere, "; "));
}

}  // namespace

void Engine::RemarkLater() {
  if (formings_ != 0 || remarks_in_a_row_ == kMostRemarks) return;
  ++remarks_;
  formings_ = leader_.next_number();
  network_->After(kRemarkAfter * (1 << remarks_in_a_row_), [this] { Remark(); });
}

void Engine::Remark() {
  absl::MutexLock lock(&mutex_);
  bool waits = false;
  // Before this look was due.
  const auto is_old = [&](const CallRef& call) {
    if (call == nullptr || call->ended) return false;
    waits = true;
    return call->since < remarks_;
  };
  std::vector<std::string> said = leader_.Late(std::exchange(formings_, 0));
  for (const auto& [key, group] : groups_) {
    for (const auto& [number, exchange] : group.exchanges) {
      if (std::none_of(exchange->calls().begin(), exchange->calls().end(), is_old)) continue;
      const int32_t instance = std::get<0>(number);
      said.push_back(absl::StrCat("Instance ", instance, " of group ", key, " waits for ",
                                  exchange->Awaited(),
                                  Elsewhere(group.exchanges, *group.members, instance)));
    }
    if (std::any_of(group.waiting.begin(), group.waiting.end(), is_old)) {
      said.push_back(absl::StrCat("Group ", key, " is not formed yet by ", group.leader,
                                  ", who knows which tasks are missing"));
    }
  }
  for (const std::string& what : said) WEFT_LOG(WARNING) << what;
  remarks_in_a_row_ = said.empty() ? 0 : remarks_in_a_row_ + 1;
  if (waits || leader_.IsForming()) RemarkLater();
}

void Engine::CallLate(const CallRef& call, bool again) {
  {
    absl::MutexLock lock(&mutex_);
    if (call->ended) return;
    const int32_t key = call->what.group_key;
    Group& group = groups_[key];
    const bool is_waiting =
        std::find(group.waiting.begin(), group.waiting.end(), call) != group.waiting.end();
    if (is_waiting && !again) {
      network_->After(kLeadersTurn, [this, weak = std::weak_ptr<PendingCall>(call)] {
        if (CallRef late = weak.lock()) CallLate(late, true);
      });
      return;
    }
    const std::string limit = absl::FormatDuration(call->what.timeout);
    if (is_waiting) {
      std::erase(group.waiting, call);
      End(call, DeadlineExceeded("Group ", key, " was not formed within ", limit, " by ",
                                 LeaderOf(call->what)));
    } else {
      std::string awaited;
      for (const auto& [number, exchange] : group.exchanges) {
        const auto& calls = exchange->calls();
        if (std::find(calls.begin(), calls.end(), call) == calls.end()) continue;
        exchange->Collect().IgnoreError();
        awaited = absl::StrCat(exchange->Awaited(),
                               Elsewhere(group.exchanges, *group.members, call->what.instance_key));
      }
      const Status late =
          DeadlineExceeded("Instance ", call->what.instance_key, " of group ", key,
                           " did not end within ", limit, ": waiting for ", awaited);
      EndEpoch(key, &group, late, late, /*tell=*/true);
      End(call, late);
    }
  }
  Work();
}

}  // namespace weft::collective
