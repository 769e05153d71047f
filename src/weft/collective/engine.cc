// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/engine.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace weft::collective {
namespace {

constexpr size_t kRecentSteps = 64;
constexpr size_t kDeadEpochsKept = 4096;
constexpr size_t kEarlyEpochs = 64;
constexpr size_t kEarlyPackets = 4096;  // of one epoch
constexpr int kMostQuestions = 30;
// Another question to a leader that could not be reached.
constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(500);

}  // namespace

Engine::Engine(EngineOptions options, Network* network)
    : options_(std::move(options)),
      network_(network),
      leader_(network->self().incarnation(), options_.tasks, options_.table) {}

const std::string& Engine::LeaderOf(const CollectiveCall& call) const {
  if (call.group_size < 0 && !open_leader_.empty()) return open_leader_;
  return call.is_local || options_.leader.empty() ? self() : options_.leader;
}

void Engine::Run(CollectiveCall what, Done done) {
  auto call = std::make_shared<PendingCall>();
  call->what = std::move(what);
  call->done = std::move(done);
  if (Cancellation* cancellation = call->what.cancellation; cancellation != nullptr) {
    call->is_registered = cancellation->Register(
        &call->token, [this, call](const Status& why) { CallCancelled(call, why); });
    if (!call->is_registered) return call->done(cancellation->status());
  }
  if (call->what.waits != nullptr) {
    call->wait = call->what.waits->Begin(
        WaitSubject{.waiter = call->what.device,
                    .what = absl::StrCat(SignatureOf(call->what), " '", call->what.node,
                                         "' (instance ", call->what.instance_key, ")"),
                    .on = absl::StrCat("group ", call->what.group_key)},
        call->what.step_id);
  }
  const absl::Duration timeout = call->what.timeout;
  {
    absl::MutexLock lock(&mutex_);
    const int32_t key = call->what.group_key;
    Group& group = groups_[key];
    call->since = remarks_;
    RemarkLater();
    if (call->ended) {
      // Cancelled in between.
    } else if (call->what.group_size > 0 || !options_.open_groups) {
      RunFixed(key, &group, call);
    } else {
      RunOpen(key, &group, call);
    }
  }
  if (timeout < absl::InfiniteDuration()) {
    network_->After(timeout, [this, weak = std::weak_ptr<PendingCall>(call)] {
      if (CallRef late = weak.lock()) CallLate(late, false);
    });
  }
  Work(call.get());
}

void Engine::RunFixed(int32_t key, Group* group, const CallRef& call) {
  const CollectiveCall& what = call->what;
  if (what.group_size < 1) {
    return End(call, InvalidArgument("group_size must be a positive number, got ", what.group_size,
                                     " by '", what.node, "' on ", what.device,
                                     "; groups whose ranks come and go need --membership"));
  }
  if (group->epoch == 0 && group->waiting.empty()) {
    group->size = what.group_size;
    group->is_open = false;
  }
  if (group->is_open || group->size != what.group_size) {
    return End(call, InvalidArgument("Group ", key, " has ",
                                     group->is_open ? "any number of" : absl::StrCat(group->size),
                                     " members, and ", what.group_size, " as '", what.node, "' on ",
                                     what.device, " says"));
  }
  if (group->epoch != 0) return Enter(key, group, call);
  if (Status missed = TakeMissed(group, what); !missed.ok()) return End(call, missed);
  group->waiting.push_back(call);
  if (group->joining.insert(what.device).second) Ask(key, group, what);
}

void Engine::NoteMissed(Group* group, const Status& why) {
  std::map<std::string, const void*> missing = group->sessions;
  for (const auto& [number, exchange] : group->exchanges) {
    for (const CallRef& call : exchange->calls()) {
      if (call != nullptr) missing.erase(call->what.device);
    }
  }
  for (const auto& [device, session] : missing) group->missed[device] = {session, why};
}

Status Engine::TakeMissed(Group* group, const CollectiveCall& call) {
  const auto found = group->missed.find(call.device);
  if (found == group->missed.end()) return absl::OkStatus();
  const auto [session, why] = found->second;
  group->missed.erase(found);
  return session == call.session ? why : absl::OkStatus();
}

void Engine::Ask(int32_t key, Group* group, const CollectiveCall& call) {
  CollectiveMessage join;
  join.set_kind(CollectiveMessage::JOIN);
  join.set_group_key(key);
  join.set_group_size(call.group_size);
  join.set_epoch(group->last_epoch);
  if (call.timeout < absl::InfiniteDuration())
    join.set_timeout_seconds(absl::ToDoubleSeconds(call.timeout));
  CollectiveMember* member = join.add_member();
  *member = network_->self();
  member->set_device(call.device);
  member->set_rank(call.rank);
  if (call.group_size != 1 && !call.is_local) OfferBoard(group, member);
  group->leader = LeaderOf(call);
  Post(group->leader, std::move(join), {});
}

uint64_t Engine::OrdinalOf(Instance* instance, const CollectiveCall& call) {
  uint64_t& next = instance->next[call.device];
  uint64_t ordinal = next;
  bool known = false;
  for (const Instance::Step& step : instance->recent) {
    if (step.session != call.session) continue;
    if (step.step == call.step_id) {
      ordinal = step.ordinal;
      known = true;
      break;
    }
    // Another step of the session, in which this device has not come yet.
    if (step.ordinal >= ordinal) ordinal = step.ordinal + 1;
  }
  if (!known) {
    instance->recent.push_back({call.session, call.step_id, ordinal});
    if (instance->recent.size() > kRecentSteps) instance->recent.pop_front();
  }
  next = std::max(next, ordinal + 1);
  return ordinal;
}

void Engine::Enter(int32_t key, Group* group, CallRef call) {
  const int rank = group->members->RankOf(call->what.device);
  if (rank < 0) {
    std::vector<std::string> members;
    for (const CollectiveMember& member : group->members->members)
      members.push_back(member.device());
    return End(call, InvalidArgument("Group ", key, " has its ", group->size, " members, ",
                                     absl::StrJoin(members, ", "), ": ", call->what.device,
                                     " is none of them"));
  }
  group->sessions[call->what.device] = call->what.session;
  Instance& instance = group->instances[call->what.instance_key];
  const ExchangeRef exchange =
      FindOrMake(group, {call->what.instance_key, OrdinalOf(&instance, call->what),
                         call->what.frame, call->what.iteration});
  if (Status refused = exchange->AddCall(rank, call); !refused.ok()) {
    EndEpoch(key, group, refused, refused, /*tell=*/true);
    return End(call, refused);
  }
  if (exchange->HasWork()) ready_.emplace_back(key, exchange);
}

Engine::ExchangeRef Engine::FindOrMake(Group* group, const Exchange::Key& key) {
  ExchangeRef& exchange = group->exchanges[key];
  if (exchange == nullptr)
    exchange = std::make_shared<Exchange>(key, group->members, options_.pool);
  return exchange;
}

void Engine::Post(const std::string& task, CollectiveMessage message, std::vector<Tensor> body) {
  letters_.push_back({task, std::move(message), std::move(body)});
}

void Engine::PostAll(std::vector<Addressed> messages) {
  for (Addressed& addressed : messages) Post(addressed.task, std::move(addressed.message), {});
}

void Engine::End(const CallRef& call, StatusOr<Tensor> result) {
  if (call->ended) return;
  call->ended = true;
  if (remarks_in_a_row_ == kMostRemarks) remarks_in_a_row_ = 0;  // it goes on
  ends_.emplace_back(call, std::move(result));
}

void Engine::EndEpoch(int32_t key, Group* group, const Status& own, const Status& others,
                      bool tell) {
  if (group->epoch == 0) return;
  const uint64_t epoch = std::exchange(group->epoch, 0);
  group->last_epoch = epoch;
  Bury(epoch);
  leader_.Left(key, epoch);
  if (tell) {
    std::set<std::string> told(group->members->tasks.begin(), group->members->tasks.end());
    told.insert(group->leader);
    told.erase(self());
    for (const std::string& task : told) Post(task, AbortMessage(key, epoch, others), {});
  }
  for (const auto& [number, exchange] : group->exchanges) {
    exchange->over = true;
    for (const CallRef& call : exchange->calls()) {
      if (call != nullptr) End(call, own);
    }
  }
  group->exchanges.clear();
  group->sessions.clear();
  group->instances.clear();
  group->finished.clear();
  group->finished_order.clear();
  group->members.reset();
  group->board.reset();
}

void Engine::Received(const std::string& from, CollectiveMessage message, Tensor body) {
  {
    absl::MutexLock lock(&mutex_);
    switch (message.kind()) {
      case CollectiveMessage::JOIN:
        TakeJoin(message);
        break;
      case CollectiveMessage::GROUP:
        TakeGroup(message);
        break;
      case CollectiveMessage::ABORT:
        TakeAbort(message);
        break;
      case CollectiveMessage::CHANGED:
        TakeChanged(message);
        break;
      case CollectiveMessage::LOOK:
        TakeLook(message);
        break;
      case CollectiveMessage::DATA:
        TakeData(from, std::move(message), std::move(body));
        break;
      default:
        break;
    }
  }
  Work();
}

void Engine::TakeJoin(const CollectiveMessage& message) {
  if (message.member_size() == 1 && message.member(0).task() != self())
    network_->Learn(message.member(0));
  std::vector<Addressed> out;
  const std::optional<Leader::Forming> forming = leader_.Join(message, &out);
  PostAll(std::move(out));
  if (forming) Schedule(*forming);
  RemarkLater();
}

void Engine::Schedule(const Leader::Forming& forming) {
  const auto later = [&](absl::Duration delay, auto what) {
    network_->After(delay, [this, forming, what] {
      {
        absl::MutexLock lock(&mutex_);
        std::vector<Addressed> out;
        (leader_.*what)(forming.group_key, forming.number, &out);
        PostAll(std::move(out));
      }
      Work();
    });
  };
  later(forming.deadline, &Leader::Deadline);
  if (forming.settled > absl::ZeroDuration()) later(forming.settled, &Leader::Settled);
}

void Engine::TakeGroup(const CollectiveMessage& message) {
  const int32_t key = message.group_key();
  const uint64_t epoch = message.epoch();
  const auto found = groups_.find(key);
  if (found == groups_.end() || epoch == 0) return;
  Group& group = found->second;
  if (dead_epochs_.contains(epoch)) {
    // An answer of a leader that has not heard yet that this epoch is over: it forgets our question
    // when it does.
    if (group.epoch == 0 && IsAwaited(group)) {
      Post(group.leader, AbortMessage(key, epoch, Aborted("Group ", key, ": the epoch is over")),
           {});
      AskAgain(key, &group);
    }
    return;
  }
  if (group.epoch == epoch) return;
  auto members = std::make_shared<Membership>(Membership::Of(message, self()));
  // An earlier process of this task may have asked.
  const auto is_stale = [&](const CollectiveMember& member) {
    return member.task() == self() && member.incarnation() != network_->self().incarnation();
  };
  if (members->me < 0 || std::any_of(members->members.begin(), members->members.end(), is_stale)) {
    return;
  }
  if (group.is_open && !IsAwaited(group)) {
    // Of a question that was given up: the others must not wait for us.
    Bury(epoch);
    const Status over = Aborted("Group ", key, ": ", self(), " does not want to be in it now");
    for (const std::string& task : members->tasks) {
      if (task != self()) Post(task, AbortMessage(key, epoch, over), {});
    }
    leader_.Left(key, epoch);
    return;
  }
  if (group.epoch != 0) {
    const Status over = Aborted("Group ", key, " was formed again");
    NoteMissed(&group, over);
    EndEpoch(key, &group, over, over, /*tell=*/true);
  }
  for (const CollectiveMember& member : members->members) {
    if (member.task() != self()) network_->Learn(member);
  }
  group.epoch = epoch;
  group.questions = 0;
  OpenBoards(key, group, members.get());
  group.members = std::move(members);
  group.changed = group.is_open && HasStrangers(group);
  group.joining.clear();
  std::vector<CallRef> waiting = std::move(group.waiting);
  group.waiting.clear();
  for (CallRef& call : waiting) {
    if (call->ended) continue;
    if (group.epoch == epoch) {
      Enter(key, &group, call);
    } else {
      End(call, Aborted("Group ", key, " ended while it was formed"));
    }
  }
  const auto early = early_.find(epoch);
  if (early == early_.end()) return;
  std::vector<std::pair<std::string, Packet>> packets = std::move(early->second);
  early_.erase(early);
  std::erase(early_order_, epoch);
  for (auto& [from, packet] : packets)
    TakeData(from, std::move(packet.message), std::move(packet.body));
}

void Engine::TakeAbort(const CollectiveMessage& message) {
  const int32_t key = message.group_key();
  leader_.Left(key, message.epoch());
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  Group& group = found->second;
  const Status why = StatusOf(message);
  if (message.epoch() != 0) {
    if (group.epoch == message.epoch()) {
      NoteMissed(&group, why);
      EndEpoch(key, &group, why, why, /*tell=*/false);
    } else if (Bury(message.epoch()) && group.epoch == 0) {
      // Its GROUP may still be on the way, for us as well: the leader has forgotten our question.
      AskAgain(key, &group);
    }
    return;
  }
  if (group.epoch == 0) FailWaiting(&group, why);
}

void Engine::FailWaiting(Group* group, const Status& why) {
  std::vector<CallRef> waiting = std::move(group->waiting);
  group->waiting.clear();
  group->joining.clear();
  group->questions = 0;
  for (const CallRef& call : waiting) End(call, why);
}

void Engine::TakeData(const std::string& from, CollectiveMessage message, Tensor body) {
  const uint64_t epoch = message.epoch();
  const int32_t key = message.group_key();
  if (epoch == 0 || dead_epochs_.contains(epoch)) return;
  const auto found = groups_.find(key);
  if (found == groups_.end() || found->second.epoch != epoch) {
    auto& packets = early_[epoch];
    if (packets.empty()) early_order_.push_back(epoch);
    if (packets.size() < kEarlyPackets)
      packets.emplace_back(from, Packet{std::move(message), std::move(body)});
    if (early_order_.size() > kEarlyEpochs) {
      early_.erase(early_order_.front());
      early_order_.pop_front();
    }
    return;
  }
  Group& group = found->second;
  const Exchange::Key at{message.instance_key(), message.ordinal(), message.frame(),
                         message.iteration()};
  if (group.finished.contains(at)) return;
  const ExchangeRef exchange = FindOrMake(&group, at);
  if (Status refused = exchange->AddPacket(from, {std::move(message), std::move(body)});
      !refused.ok()) {
    NoteMissed(&group, refused);
    return EndEpoch(key, &group, refused, refused, /*tell=*/true);
  }
  Look(key, &group, exchange);
}

void Engine::TaskLost(const std::string& task, const Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    std::vector<Addressed> out;
    leader_.TaskLost(task, why, &out);
    PostAll(std::move(out));
    bool asks = false;
    for (auto& [key, group] : groups_) {
      if (group.epoch != 0) {
        const std::vector<std::string>& tasks = group.members->tasks;
        if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) continue;
        NoteMissed(&group, why);
        EndEpoch(key, &group, why, why, /*tell=*/true);
      } else if (task == group.leader && !group.joining.empty()) {
        // Who has no part in our collectives will not have one later.
        if (!absl::IsUnimplemented(why) && ++group.questions < kMostQuestions) {
          asks = true;
        } else {
          FailWaiting(&group, Annotate(why, absl::StrCat("Group ", key, " cannot be formed")));
        }
      }
    }
    if (asks) {
      network_->After(kAskAgainAfter, [this] {
        {
          absl::MutexLock again(&mutex_);
          for (auto& [key, group] : groups_) {
            if (group.epoch == 0) AskAgain(key, &group);
          }
        }
        Work();
      });
    }
  }
  Work();
}

void Engine::AskAgain(int32_t key, Group* group) {
  std::set<std::string> asked;
  for (const CallRef& call : group->waiting) {
    if (!call->ended && asked.insert(call->what.device).second) Ask(key, group, call->what);
  }
  group->joining = std::move(asked);
}

// False if it was dead already.
bool Engine::Bury(uint64_t epoch) {
  if (!dead_epochs_.insert(epoch).second) return false;
  dead_order_.push_back(epoch);
  if (dead_order_.size() > kDeadEpochsKept) {
    dead_epochs_.erase(dead_order_.front());
    dead_order_.pop_front();
  }
  return true;
}

void Engine::CallCancelled(const CallRef& call, const Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = groups_.find(call->what.group_key);
    const bool is_waiting = found != groups_.end() && std::erase(found->second.waiting, call) > 0;
    if (!call->ended && !is_waiting && found != groups_.end()) {
      const Status left = Aborted("Group ", call->what.group_key, ": the step of ",
                                  call->what.device, " ended: ", why.message());
      EndEpoch(call->what.group_key, &found->second, why, left, /*tell=*/true);
    }
    End(call, why);
  }
  // Not here: ending another call waits for its own callback, which may be doing the same.
  network_->Execute([this] { Work(); });
}

}  // namespace weft::collective
