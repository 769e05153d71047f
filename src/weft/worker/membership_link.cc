// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/membership_link.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/graph/device_name.h"

namespace weft::worker {
namespace {

using membership::Actions;
using membership::Event;
using membership::Member;
using membership::MembershipMessage;
using transport::FrameHeader;
using transport::FrameKind;

// Tasks of the cluster that were not heard of are looked for so often.
constexpr absl::Duration kAskSeedsEvery = absl::Seconds(1);
// The last words of a task that leaves get this long to go out.
constexpr absl::Duration kFarewell = absl::Milliseconds(50);

std::tuple<std::string, int> Order(const std::string& task) {
  const StatusOr<DeviceName> name = DeviceName::Parse(task);
  if (!name.ok()) return {task, 0};
  return {name->job.value_or(""), name->task.value_or(0)};
}

}  // namespace

MembershipLink::MembershipLink(const std::vector<std::string>& others, Find find, Listener listener,
                               ThreadPool* setup, Clock* clock)
    : others_(others),
      find_(std::move(find)),
      listener_(std::move(listener)),
      setup_(setup),
      clock_(clock),
      timers_(std::in_place) {}

MembershipLink::~MembershipLink() { Stop(); }

void MembershipLink::Start(const cluster::TaskAddress& self, cluster::DataPlane* plane) {
  plane_ = plane;
  {
    absl::MutexLock lock(&mutex_);
    membership::SwimOptions options;
    // A process that is started later must win against what is told of an earlier one.
    options.self = {.name = self.task,
                    .address = self.address,
                    .process = self.incarnation,
                    .incarnation = static_cast<uint64_t>(absl::ToUnixMillis(clock_->Now()))};
    options.seed = self.incarnation;
    swim_.emplace(std::move(options));
  }
  Tick();
  AskSeeds();
}

void MembershipLink::Stop() {
  Actions last;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(stopped_, true)) return;
    if (swim_) swim_->Leave(&last);
  }
  timers_.reset();
  if (last.messages.empty()) return;
  Do(std::move(last));
  absl::SleepFor(kFarewell);
}

void MembershipLink::BeRank() {
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    if (!swim_ || stopped_) return;
    swim_->BeRank(&actions);
  }
  Do(std::move(actions));
  TellRanks();
}

std::vector<Member> MembershipLink::Members() {
  std::vector<Member> members;
  absl::MutexLock lock(&mutex_);
  if (!swim_) return members;
  members.push_back(swim_->self());
  swim_->roster().ForEach([&](const Member& member) { members.push_back(member); });
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return Order(a.name) < Order(b.name); });
  return members;
}

bool MembershipLink::Takes(const FrameHeader& header) { return header.kind == FrameKind::kMembers; }

void MembershipLink::Received(const std::string& task, absl::string_view meta) {
  MembershipMessage message;
  if (!message.ParseFromArray(meta.data(), static_cast<int>(meta.size()))) {
    WEFT_LOG_EVERY(WARNING, absl::Seconds(10))
        << "News of members from " << task << " is malformed";
    return;
  }
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    if (!swim_ || stopped_) return;
    swim_->Receive(task, message, clock_->Monotonic(), &actions);
    ScheduleTick();
  }
  Do(std::move(actions));
}

void MembershipLink::ConnectionLost(const std::string& task) {
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    if (!swim_ || stopped_) return;
    swim_->Unreachable(task, clock_->Monotonic(), &actions);
    ScheduleTick();
  }
  Do(std::move(actions));
}

void MembershipLink::Tick() {
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    if (!swim_ || stopped_) return;
    next_tick_ = absl::InfiniteDuration();
    swim_->Tick(clock_->Monotonic(), &actions);
    ScheduleTick();
  }
  Do(std::move(actions));
}

void MembershipLink::ScheduleTick() {
  const absl::Duration due = swim_->NextDue();
  if (due >= next_tick_ || !timers_) return;
  next_tick_ = due;
  timers_->Schedule(std::max(due - clock_->Monotonic(), absl::ZeroDuration()), [this] { Tick(); });
}

void MembershipLink::AskSeeds() {
  std::vector<std::string> unknown;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    for (const std::string& task : others_) {
      const Member* const member = swim_->roster().Find(task);
      if (task == swim_->self().name || (member != nullptr && member->is_alive())) continue;
      if (asked_.insert(task).second) unknown.push_back(task);
    }
    timers_->Schedule(kAskSeedsEvery, [this] { AskSeeds(); });
  }
  for (const std::string& task : unknown) setup_->Schedule([this, task] { AskSeed(task); });
}

void MembershipLink::AskSeed(const std::string& task) {
  const StatusOr<cluster::TaskAddress> found = find_(task);
  if (found.ok()) plane_->Know(*found);
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    asked_.erase(task);
    if (!found.ok() || stopped_) return;
    swim_->JoinThrough(task, &actions);
  }
  Do(std::move(actions));
}

void MembershipLink::Do(Actions actions) {
  for (const Event& event : actions.events) {
    const Member& member = event.member;
    switch (event.kind) {
      case Event::Kind::kJoined:
        if (!member.address.empty()) plane_->Know({member.name, member.address, member.process});
        WEFT_LOG(INFO) << member.name << " at " << member.address << " is a member";
        break;
      case Event::Kind::kLost:
        WEFT_LOG(WARNING) << "Lost the member " << member.name << ": " << event.why;
        listener_.lost(member.name, Unavailable("Lost ", member.name, ": ", event.why));
        break;
      case Event::Kind::kLeft:
        WEFT_LOG(INFO) << "The member " << member.name << " left";
        listener_.left(member.name);
        break;
      case Event::Kind::kSuperseded:
        WEFT_LOG(ERROR) << "This task's name is that of another process at " << member.address
                        << " now: it takes no part in the cluster any more";
        break;
      default:
        break;
    }
  }
  if (!actions.events.empty()) TellRanks();
  for (membership::Outgoing& outgoing : actions.messages) {
    FrameHeader header;
    header.kind = FrameKind::kMembers;
    plane_->Send(outgoing.to, header, outgoing.message.SerializeAsString(), {},
                 [this, task = outgoing.to](const Status& sent) {
                   if (sent.ok() || absl::IsCancelled(sent)) return;
                   setup_->Schedule([this, task] { ConnectionLost(task); });
                 });
  }
}

void MembershipLink::TellRanks() {
  absl::MutexLock telling(&telling_);
  std::vector<std::string> ranks;
  for (const Member& member : Members()) {
    if (member.is_rank && member.is_alive()) ranks.push_back(member.name);
  }
  if (ranks == told_) return;
  told_ = ranks;
  listener_.ranks(ranks);
}

}  // namespace weft::worker
