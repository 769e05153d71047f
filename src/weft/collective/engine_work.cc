// SPDX-License-Identifier: Apache-2.0
// What the engine does without its lock, and how it waits for what tasks of its host put up.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

#include "absl/time/clock.h"

#include "base/pause.h"
#include "weft/collective/engine.h"

namespace weft::collective {
namespace {

constexpr size_t kFinishedKept = 4096;
// Looks that cost less than to let others run.
constexpr int kQuickLooks = 100;
// Who yields for so long has others than ranks beside it, and is woken sooner than it comes back.
constexpr int64_t kLongYieldNs = 1000000;
constexpr int64_t kLeastRestNs = 20000000;
constexpr int64_t kMostRestNs = 1000000000;

}  // namespace

void Engine::OfferBoard(Group* group, CollectiveMember* member) {
  if (!options_.boards) return;
  if (group->board == nullptr) {
    StatusOr<std::shared_ptr<Board>> board = Board::Make();
    if (!board.ok()) return;
    group->board = *std::move(board);
  }
  member->set_board(group->board->Offer());
}

void Engine::OpenBoards(int32_t key, const Group& group, Membership* members) {
  if (group.board == nullptr) return;
  const std::vector<std::string>& hosts = members->topology.hosts;
  const std::string& here = hosts[static_cast<size_t>(members->me)];
  std::vector<std::string> offers;
  for (size_t task = 0; task < members->tasks.size(); ++task) {
    const auto first = static_cast<size_t>(members->ranks_of_task[task].front());
    offers.push_back(hosts[task] == here ? members->members[first].board() : "");
  }
  members->boards = Boards::Open(group.board, members->me, offers);
  if (members->boards == nullptr) return;
  // One message to each, so that there is a connection that tells of its end.
  for (size_t task = 0; task < members->tasks.size(); ++task) {
    if ((members->boards->opened() >> task & 1) == 0) continue;
    CollectiveMessage look;
    look.set_kind(CollectiveMessage::LOOK);
    look.set_group_key(key);
    look.set_epoch(members->epoch);
    Post(members->tasks[task], std::move(look), {});
  }
}

void Engine::TakeLook(const CollectiveMessage& message) {
  const int32_t key = message.group_key();
  const auto found = groups_.find(key);
  if (found == groups_.end() || message.epoch() == 0) return;
  Group& group = found->second;
  std::vector<ExchangeRef> exchanges;
  for (const auto& [number, exchange] : group.exchanges) exchanges.push_back(exchange);
  for (const ExchangeRef& exchange : exchanges) {
    if (group.epoch == message.epoch()) Look(key, &group, exchange);
  }
}

bool Engine::Look(int32_t key, Group* group, const ExchangeRef& exchange) {
  if (Status refused = exchange->Collect(); !refused.ok()) {
    NoteMissed(group, refused);
    EndEpoch(key, group, refused, refused, /*tell=*/true);
    return false;
  }
  if (!exchange->HasWork()) return false;
  ready_.emplace_back(key, exchange);
  return true;
}

void Engine::Sleep(int32_t key, Group* group, const ExchangeRef& exchange) {
  if (!exchange->LooksAtBoards()) return;
  exchange->Sleep();
  Look(key, group, exchange);
}

std::map<int32_t, Engine::Group>::iterator Engine::GroupOf(const ExchangeRef& exchange) {
  return std::find_if(groups_.begin(), groups_.end(), [&](const auto& entry) {
    const auto at = entry.second.exchanges.find(exchange->key());
    return at != entry.second.exchanges.end() && at->second == exchange;
  });
}

bool Engine::AfterWork(const ExchangeRef& exchange, const Status& done, const PendingCall* own) {
  exchange->busy = false;
  if (exchange->over) return false;
  const auto found = GroupOf(exchange);
  if (found == groups_.end()) return false;
  auto& [key, group] = *found;
  if (!done.ok()) {
    EndEpoch(key, &group, done, done, /*tell=*/true);
    return false;
  }
  for (Exchange::Send& send : exchange->TakeSends()) {
    send.message.set_group_key(key);
    send.message.set_epoch(group.epoch);
    Post(group.members->tasks[static_cast<size_t>(send.peer)], std::move(send.message),
         std::move(send.body));
  }
  if (!exchange->is_finished()) {
    if (Look(key, &group, exchange) || !exchange->LooksAtBoards()) return false;
    const bool is_own = std::any_of(exchange->calls().begin(), exchange->calls().end(),
                                    [&](const CallRef& call) { return call.get() == own; });
    if (!is_own) Sleep(key, &group, exchange);
    return is_own;
  }
  exchange->over = true;
  for (size_t i = 0; i < exchange->calls().size(); ++i)
    End(exchange->calls()[i], exchange->result(i));
  group.finished.insert(exchange->key());
  group.finished_order.push_back(exchange->key());
  if (group.finished_order.size() > kFinishedKept) {
    group.finished.erase(group.finished_order.front());
    group.finished_order.pop_front();
  }
  group.exchanges.erase(exchange->key());
  return false;
}

Engine::ExchangeRef Engine::TakeReady() {
  while (!ready_.empty()) {
    const auto [key, exchange] = std::move(ready_.front());
    ready_.pop_front();
    if (!exchange->HasWork()) continue;
    exchange->TakeWork();
    exchange->crowded = absl::GetCurrentTimeNanos() < crowded_until_ns_;
    // Who has all that it needs tells those who sleep: all may be there for them, too.
    const auto found = groups_.find(key);
    const uint64_t sleepers = exchange->Sleepers();
    for (int task = 0; task < kMostTasksOfBoards && found != groups_.end(); ++task) {
      if ((sleepers >> task & 1) == 0 || found->second.epoch == 0) continue;
      CollectiveMessage look;
      look.set_kind(CollectiveMessage::LOOK);
      look.set_group_key(key);
      look.set_epoch(found->second.epoch);
      Post(found->second.members->tasks[static_cast<size_t>(task)], std::move(look), {});
    }
    return exchange;
  }
  return nullptr;
}

// Looks for a while at boards for the caller's exchange; then others must tell it. Returns what is
// to do now, if nothing is to be sent or ended before.
Engine::ExchangeRef Engine::Watch(const ExchangeRef& exchange) {
  Exchange::Lookout lookout;
  {
    absl::MutexLock lock(&mutex_);
    if (!exchange->LooksAtBoards() || exchange->crowded) {
      const auto sleeps = GroupOf(exchange);
      if (sleeps != groups_.end()) Sleep(sleeps->first, &sleeps->second, exchange);
      return nullptr;
    }
    lookout = exchange->Missing();
  }
  const int64_t end = absl::GetCurrentTimeNanos() + absl::ToInt64Nanoseconds(options_.patience) *
                                                        static_cast<int64_t>(lookout.tasks.size());
  for (int looks = 0; !lookout.IsAllThere() && exchange->turn == lookout.turn && !exchange->over;
       ++looks) {
    if (looks < kQuickLooks) {
      Pause();
      continue;
    }
    const int64_t before = absl::GetCurrentTimeNanos();
    if (before >= end || before < crowded_until_ns_) break;
    sched_yield();
    const int64_t after = absl::GetCurrentTimeNanos();
    if (after - before < kLongYieldNs) continue;
    rest_ns_ = std::clamp(2 * rest_ns_.load(), kLeastRestNs, kMostRestNs);
    crowded_until_ns_ = after + rest_ns_;
    break;
  }
  absl::MutexLock lock(&mutex_);
  const auto found = GroupOf(exchange);
  if (found != groups_.end() && !Look(found->first, &found->second, exchange))
    Sleep(found->first, &found->second, exchange);
  return letters_.empty() && ends_.empty() ? TakeReady() : nullptr;
}

void Engine::Work(const PendingCall* own) {
  ExchangeRef watched;  // the one that `own` is of, while it waits
  ExchangeRef exchange;
  bool is_flushed = false;
  while (true) {
    if (!std::exchange(is_flushed, false)) {
      Flush(own);
      absl::MutexLock lock(&mutex_);
      exchange = TakeReady();
    }
    if (exchange == nullptr) {
      if (watched == nullptr) return;
      exchange = Watch(std::exchange(watched, nullptr));
      is_flushed = exchange != nullptr;
      continue;
    }
    const Status done = exchange->Do();
    absl::MutexLock lock(&mutex_);
    if (AfterWork(exchange, done, own)) watched = exchange;
    is_flushed = letters_.empty() && ends_.empty();
    exchange = is_flushed ? TakeReady() : nullptr;
  }
}

void Engine::Finish(const CallRef& call, StatusOr<Tensor> result) {
  call->wait.End();
  if (call->is_registered) call->what.cancellation->Deregister(call->token);
  call->done(std::move(result));
}

void Engine::Flush(const PendingCall* own) {
  while (true) {
    std::optional<Letter> letter;
    Ends ends;
    {
      absl::MutexLock lock(&mutex_);
      ends.swap(ends_);
      if (!sending_ && !letters_.empty()) {
        sending_ = true;
        letter = std::move(letters_.front());
        letters_.pop_front();
      } else if (ends.empty()) {
        return;
      }
    }
    if (letter.has_value()) {
      // Whoever sends does it for all, so that the order stays.
      if (letter->task == self()) {
        Received(self(), std::move(letter->message), Tensor());
      } else {
        network_->Send(letter->task, std::move(letter->message), std::move(letter->body));
      }
      absl::MutexLock lock(&mutex_);
      sending_ = false;
    }
    for (auto& [call, result] : ends) {
      if (call.get() == own) {
        Finish(call, std::move(result));
      } else {
        network_->Execute([call = std::move(call), result = std::move(result)]() mutable {
          Finish(call, std::move(result));
        });
      }
    }
  }
}

}  // namespace weft::collective
