// SPDX-License-Identifier: Apache-2.0
// What the engine says of calls that wait for long: whom they wait for, and where those are.
#include <algorithm>
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
// waited for twice as long, some times.
constexpr absl::Duration kRemarkAfter = absl::Seconds(30);
constexpr int kMostRemarks = 10;

}  // namespace

// Of ranks that come to the instances in another order: "; X is at instance 4".
std::string Engine::Elsewhere(const Group& group, int32_t instance) {
  std::vector<std::string> elsewhere;
  const auto add = [&](const std::string& task, int32_t there) {
    elsewhere.push_back(absl::StrCat(task, " has come to instance ", there, ", but no rank here"));
  };
  for (const auto& [key, exchange] : group.exchanges) {
    if (std::get<0>(key) == instance) continue;
    for (const std::string& task : exchange->CameAlone()) add(task, std::get<0>(key));
  }
  for (size_t task = 0; group.members != nullptr && task < group.members->tasks.size(); ++task) {
    if (group.members->boards == nullptr) break;
    for (const int32_t there : group.members->boards->Instances(static_cast<int>(task))) {
      const bool is_known =
          std::any_of(group.exchanges.begin(), group.exchanges.end(),
                      [&](const auto& entry) { return std::get<0>(entry.first) == there; });
      if (there != instance && !is_known) add(group.members->tasks[task], there);
    }
  }
  return elsewhere.empty() ? "" : absl::StrCat("; ", absl::StrJoin(elsewhere, "; "));
}

void Engine::RemarkLater() {
  if (std::exchange(remark_is_due_, true)) return;
  const int doublings = std::clamp(remarks_in_a_row_, 0, kMostRemarks);
  if (doublings == kMostRemarks) return;
  network_->After(kRemarkAfter * (1 << doublings), [this] { Remark(); });
}

void Engine::Remark() {
  absl::MutexLock lock(&mutex_);
  remark_is_due_ = false;
  bool waits = false;
  const auto is_old = [&](const CallRef& call) {
    if (call == nullptr || call->ended) return false;
    waits = true;
    return call->since < remarks_;
  };
  for (const auto& [key, group] : groups_) {
    for (const auto& [number, exchange] : group.exchanges) {
      if (std::none_of(exchange->calls().begin(), exchange->calls().end(), is_old)) continue;
      WEFT_LOG(WARNING) << "Instance " << std::get<0>(number) << " of group " << key
                        << " waits for " << exchange->Awaited()
                        << Elsewhere(group, std::get<0>(number));
    }
    if (std::any_of(group.waiting.begin(), group.waiting.end(), is_old)) {
      WEFT_LOG(WARNING) << "Group " << key << " is not formed yet by " << group.leader
                        << ", who knows which tasks are missing";
    }
  }
  for (const std::string& late : leader_.TakeLate()) WEFT_LOG(WARNING) << late;
  waits = waits || leader_.IsForming();
  ++remarks_;
  remarks_in_a_row_ = waits ? remarks_in_a_row_ + 1 : 0;
  if (waits) RemarkLater();
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
        awaited = absl::StrCat(exchange->Awaited(), Elsewhere(group, call->what.instance_key));
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
