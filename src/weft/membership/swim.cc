// SPDX-License-Identifier: Apache-2.0
#include "weft/membership/swim.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::membership {
namespace {

constexpr int kMostNews = 8;       // in one message
constexpr int kMostInAnswer = 64;  // in each message of the answer to a JOIN: less than a frame
constexpr size_t kLongestName = 256;
constexpr int kMostUnwell = 8;
constexpr size_t kMostRelays = 1024;
constexpr int kToldAtOnce = 3;
constexpr size_t kSmallGroup = 64;
constexpr int kToldOfLeaving = 8;
constexpr int kReconnectIntervals = 10;
// A process so young takes its name from an older one, instead of yielding to it.
constexpr int kYoungIntervals = 40;
// A tick that comes so late says that this process stood still, not the others.
constexpr int kLateIntervals = 2;

MemberNews NewsOf(const Member& member) {
  MemberNews news;
  news.set_task(member.name);
  news.set_address(member.address);
  news.set_process(member.process);
  news.set_incarnation(member.incarnation);
  news.set_is_rank(member.is_rank);
  switch (member.state) {
    case State::kAlive:
      news.set_state(MemberNews::ALIVE);
      break;
    case State::kSuspect:
      news.set_state(MemberNews::SUSPECT);
      break;
    case State::kDead:
      news.set_state(MemberNews::DEAD);
      break;
    case State::kLeft:
      news.set_state(MemberNews::LEFT);
      break;
  }
  return news;
}

Member MemberOf(const MemberNews& news, State state) {
  return {.name = news.task(),
          .address = news.address(),
          .process = news.process(),
          .incarnation = news.incarnation(),
          .state = state,
          .is_rank = news.is_rank()};
}

}  // namespace

Swim::Swim(SwimOptions options, Roster known)
    : options_(std::move(options)),
      self_(options_.self),
      roster_(std::move(known)),
      random_(options_.seed) {
  self_.state = State::kAlive;
}

void Swim::Feel(int points) {
  if (options_.lifeguard) unwell_ = std::clamp(unwell_ + points, 0, kMostUnwell);
}

const Member* Swim::RandomMember(const std::string& not_this) {
  if (roster_.num_alive() == 0) return nullptr;
  constexpr int kTries = 32;
  for (int i = 0; i < kTries; ++i) {
    const Member& member = roster_.at(Random() % roster_.size());
    if (member.is_alive() && member.name != not_this && member.name != self_.name) return &member;
  }
  return nullptr;
}

std::vector<std::string> Swim::RandomMembers(int count, const std::string& not_this) {
  std::set<std::string> chosen;
  for (int i = 0; i < 3 * count && static_cast<int>(chosen.size()) < count; ++i) {
    const Member* const member = RandomMember(not_this);
    if (member == nullptr) break;
    chosen.insert(member->name);
  }
  return {chosen.begin(), chosen.end()};
}

void Swim::Receive(const std::string& from, const MembershipMessage& message, absl::Duration now,
                   Actions* actions) {
  if (superseded_ || left_ || from == self_.name) return;
  if (message.has_sender() && message.sender().task() == from &&
      message.sender().state() == MemberNews::ALIVE) {
    Apply(message.sender(), now, actions);
  }
  for (const MemberNews& news : message.news()) Apply(news, now, actions);
  if (superseded_) return;
  switch (message.kind()) {
    case MembershipMessage::PING:
      return Send(MembershipMessage::ACK, from, message.sequence(), actions);
    case MembershipMessage::PING_REQUEST: {
      if (relays_.size() >= kMostRelays || message.target() == self_.name) return;
      if (roster_.Find(message.target()) == nullptr) return;
      const uint64_t sequence = next_sequence_++;
      relays_[sequence] = {.asker = from,
                           .sequence = message.sequence(),
                           .target = message.target(),
                           .nack_at = now + options_.timeout * 0.8};
      return Send(MembershipMessage::PING, message.target(), sequence, actions);
    }
    case MembershipMessage::ACK:
      return TakeAck(from, message, actions);
    case MembershipMessage::NACK:
      if (message.sequence() == probe_.sequence && probe_.missing_nacks > 0) --probe_.missing_nacks;
      return;
    case MembershipMessage::JOIN:
      return SendAll(from, actions);
    default:
      return;
  }
}

void Swim::TakeAck(const std::string& from, const MembershipMessage& message, Actions* actions) {
  broken_.erase(from);
  const auto relay = relays_.find(message.sequence());
  if (relay != relays_.end() && relay->second.target == from) {
    Send(MembershipMessage::ACK, relay->second.asker, relay->second.sequence, actions, from);
    relays_.erase(relay);
    return;
  }
  if (message.sequence() != probe_.sequence || probe_.target.empty()) return;
  if (from == probe_.target || message.target() == probe_.target) probe_.answered = true;
}

// --- News ------------------------------------------------------------------------------------

void Swim::Apply(const MemberNews& news, absl::Duration now, Actions* actions) {
  if (news.task().empty() || news.task().size() > kLongestName ||
      news.address().size() > kLongestName || news.from().size() > kLongestName)
    return;
  if (news.task() == self_.name) return ApplyToSelf(news, now, actions);
  const Member* const known = roster_.Find(news.task());
  switch (news.state()) {
    case MemberNews::ALIVE:
      return TakeAlive(known, news, actions);
    case MemberNews::SUSPECT:
      if (known == nullptr) {
        MemberNews alive = news;
        alive.set_state(MemberNews::ALIVE);
        TakeAlive(nullptr, alive, actions);
        if (const Member* const added = roster_.Find(news.task()); added != nullptr)
          TakeSuspect(*added, news, now, actions);
        return;
      }
      return TakeSuspect(*known, news, now, actions);
    case MemberNews::DEAD:
    case MemberNews::LEFT:
      if (known == nullptr) {
        // Kept, so that older news of its life is not believed.
        if (roster_.Put(
                MemberOf(news, news.state() == MemberNews::LEFT ? State::kLeft : State::kDead)) &&
            news.state() == MemberNews::DEAD) {
          dead_.insert(news.task());
        }
        return;
      }
      return TakeDeath(*known, news, actions);
    default:
      return;
  }
}

void Swim::ApplyToSelf(const MemberNews& news, absl::Duration now, Actions* actions) {
  const bool is_other = news.process() != self_.process;
  if (news.incarnation() < self_.incarnation) return;
  if (news.state() == MemberNews::ALIVE) {
    if (!is_other || news.incarnation() == self_.incarnation) return;
    if (now > started_ + options_.interval * kYoungIntervals) {
      superseded_ = true;
      actions->events.push_back({Event::Kind::kSuperseded, MemberOf(news, State::kAlive),
                                 "another process has this task's name"});
      return;
    }
  } else if (!is_other) {
    Feel(1);
  }
  self_.incarnation = news.incarnation() + 1;
  Tell(NewsOf(self_));
}

void Swim::TakeAlive(const Member* known, const MemberNews& news, Actions* actions) {
  if (known != nullptr && news.incarnation() <= known->incarnation) return;
  const Member before = known == nullptr ? MemberOf(news, State::kDead) : *known;
  const Member member = MemberOf(news, State::kAlive);
  if (!roster_.Put(member)) return;
  suspicions_.erase(member.name);
  broken_.erase(member.name);
  dead_.erase(member.name);
  Tell(news);
  if (before.is_alive() && before.process != member.process) {
    actions->events.push_back({Event::Kind::kLost, before, "it was started again"});
  }
  if (!before.is_alive() || before.process != member.process) {
    actions->events.push_back({Event::Kind::kJoined, member, ""});
    return;
  }
  if (before.state == State::kSuspect)
    actions->events.push_back({Event::Kind::kCleared, member, ""});
  if (before.is_rank != member.is_rank)
    actions->events.push_back({Event::Kind::kChanged, member, ""});
}

void Swim::TakeSuspect(const Member& known, const MemberNews& news, absl::Duration now,
                       Actions* actions) {
  if (!known.is_alive() || news.incarnation() < known.incarnation) return;
  const bool is_new = known.state != State::kSuspect || news.incarnation() > known.incarnation;
  if (is_new) {
    Member suspect = known;
    suspect.state = State::kSuspect;
    suspect.incarnation = news.incarnation();
    roster_.Put(suspect);
    Suspicion& suspicion = suspicions_[suspect.name];
    suspicion = {.since = now, .from = {news.from()}};
    // In a small group all look for themselves before they believe it: the suspect's contradiction
    // may not have come to them.
    if (options_.lifeguard && num_alive() <= kSmallGroup)
      suspicion.ask_again = now + options_.interval * 2;
    Tell(news);
    actions->events.push_back(
        {Event::Kind::kSuspected, suspect, absl::StrCat("it did not answer ", news.from())});
    return;
  }
  // Every further accuser makes the end come sooner, and is told on.
  Suspicion& suspicion = suspicions_[known.name];
  if (options_.lifeguard && static_cast<int>(suspicion.from.size()) < options_.suspicion &&
      suspicion.from.insert(news.from()).second) {
    Tell(news);
  }
}

void Swim::TakeDeath(const Member& known, const MemberNews& news, Actions* actions) {
  if (news.incarnation() < known.incarnation) return;
  Member gone = known;
  gone.incarnation = news.incarnation();
  gone.state = news.state() == MemberNews::LEFT ? State::kLeft : State::kDead;
  if (!known.is_alive()) {
    if (news.incarnation() > known.incarnation) roster_.Put(gone);
    return;
  }
  suspicions_.erase(gone.name);
  broken_.erase(gone.name);
  if (gone.state == State::kDead) dead_.insert(gone.name);
  roster_.Put(gone);
  Tell(NewsOf(gone));
  if (gone.state == State::kLeft) {
    actions->events.push_back({Event::Kind::kLeft, gone, "it left"});
  } else {
    actions->events.push_back({Event::Kind::kLost, gone,
                               news.from().empty() ? "others say that it is dead"
                                                   : absl::StrCat(news.from(), " says so")});
  }
  TellAtOnce(actions);
}

void Swim::Suspect(const std::string& name, absl::Duration now, Actions* actions) {
  const Member* const member = roster_.Find(name);
  if (member == nullptr || !member->is_alive()) return;
  MemberNews news = NewsOf(*member);
  news.set_state(MemberNews::SUSPECT);
  news.set_from(self_.name);
  TakeSuspect(*member, news, now, actions);
  if (!options_.lifeguard) return;
  Suspicion& suspicion = suspicions_[name];
  suspicion.ask_again = std::min(suspicion.ask_again, now + options_.timeout);
}

void Swim::Bury(const Member& member, const std::string& why, Actions* actions) {
  Member gone = member;
  gone.state = State::kDead;
  suspicions_.erase(gone.name);
  broken_.erase(gone.name);
  dead_.insert(gone.name);
  roster_.Put(gone);
  MemberNews news = NewsOf(gone);
  news.set_from(self_.name);
  Tell(news);
  actions->events.push_back({Event::Kind::kLost, gone, why});
  TellAtOnce(actions);
}

void Swim::Tell(const MemberNews& news) { rumours_[news.task()] = {news, 0}; }

// A death stops others' work: it does not wait for the next probe.
void Swim::TellAtOnce(Actions* actions) {
  for (const std::string& to : RandomMembers(kToldAtOnce, ""))
    Send(MembershipMessage::NEWS, to, 0, actions);
}

absl::Duration Swim::Deadline(const Suspicion& suspicion) const {
  const auto members = static_cast<double>(num_alive());
  const absl::Duration least =
      options_.interval * options_.suspicion * std::max(1.0, std::log10(members));
  const int wanted = std::min(options_.suspicion - 2, static_cast<int>(num_alive()) - 2);
  if (!options_.lifeguard || wanted < 1) return suspicion.since + least;
  const auto confirmed =
      static_cast<double>(suspicion.from.size());  // the first is no confirmation
  const double share = std::log(confirmed) / std::log(wanted + 1.0);
  const absl::Duration most = least * options_.patience;
  return suspicion.since + std::max(least, most - (most - least) * share);
}

// --- Messages --------------------------------------------------------------------------------

MembershipMessage Swim::Make(MembershipMessage::Kind kind, const std::string& to) {
  MembershipMessage message;
  message.set_kind(kind);
  *message.mutable_sender() = NewsOf(self_);
  // Who is accused hears it first from whoever talks to it, and can contradict.
  const Member* const peer = roster_.Find(to);
  if (peer != nullptr && peer->state != State::kAlive) *message.add_news() = NewsOf(*peer);
  if (rumours_.empty()) return message;
  const int most_sent =
      options_.spread *
      static_cast<int>(std::ceil(std::log10(static_cast<double>(num_alive()) + 1)));
  std::vector<std::pair<int, const std::string*>> least_sent;
  for (const auto& [name, rumour] : rumours_) least_sent.emplace_back(rumour.sent, &name);
  const size_t count = std::min<size_t>(kMostNews, least_sent.size());
  std::partial_sort(least_sent.begin(), least_sent.begin() + static_cast<int64_t>(count),
                    least_sent.end());
  for (size_t i = 0; i < count; ++i) {
    const auto rumour = rumours_.find(*least_sent[i].second);
    *message.add_news() = rumour->second.news;
    if (++rumour->second.sent >= most_sent) rumours_.erase(rumour);
  }
  return message;
}

void Swim::Send(MembershipMessage::Kind kind, const std::string& to, uint64_t sequence,
                Actions* actions, const std::string& target) {
  MembershipMessage message = Make(kind, to);
  message.set_sequence(sequence);
  message.set_target(target);
  actions->messages.push_back({to, std::move(message)});
}

void Swim::SendAll(const std::string& to, Actions* actions) {
  MembershipMessage message = Make(MembershipMessage::NEWS, to);
  roster_.ForEach([&](const Member& member) {
    if (member.name == to) return;
    *message.add_news() = NewsOf(member);
    if (message.news_size() < kMostInAnswer) return;
    actions->messages.push_back({to, std::move(message)});
    message = Make(MembershipMessage::NEWS, to);
  });
  actions->messages.push_back({to, std::move(message)});
}

void Swim::JoinThrough(const std::string& name, Actions* actions) {
  if (name != self_.name && !left_ && !superseded_) Send(MembershipMessage::JOIN, name, 0, actions);
}

void Swim::BeRank(Actions* actions) {
  if (self_.is_rank) return;
  self_.is_rank = true;
  ++self_.incarnation;
  Tell(NewsOf(self_));
  TellAtOnce(actions);
}

void Swim::Leave(Actions* actions) {
  if (left_) return;
  self_.state = State::kLeft;
  Tell(NewsOf(self_));
  for (const std::string& to : RandomMembers(kToldOfLeaving, ""))
    Send(MembershipMessage::NEWS, to, 0, actions);
  left_ = true;
}

// --- Time ------------------------------------------------------------------------------------

absl::Duration Swim::NextDue() const {
  if (left_ || superseded_) return absl::InfiniteDuration();
  absl::Duration due = next_probe_;
  if (!probe_.target.empty() && !probe_.answered && !probe_.asked)
    due = std::min(due, probe_.ask_others);
  for (const auto& [sequence, relay] : relays_) due = std::min(due, relay.nack_at);
  for (const auto& [name, suspicion] : suspicions_)
    due = std::min({due, Deadline(suspicion), suspicion.ask_again});
  return due;
}

void Swim::Tick(absl::Duration now, Actions* actions) {
  if (left_ || superseded_) return;
  const bool is_first = last_tick_ == -absl::InfiniteDuration();
  if (is_first) {
    started_ = now;
    next_probe_ = now;
    next_reconnect_ = now + options_.interval * kReconnectIntervals;
  }
  const absl::Duration stood_still = is_first ? absl::ZeroDuration() : now - last_tick_;
  last_tick_ = now;
  if (options_.lifeguard &&
      stood_still > Slow(options_.interval) + options_.interval * kLateIntervals) {
    // Nobody's silence in this time says anything.
    Feel(1);
    probe_ = Probe();
    next_probe_ = now;
    for (auto& [name, suspicion] : suspicions_) suspicion.since += stood_still;
  }
  TickRelays(now, actions);
  TickProbe(now, actions);
  TickSuspicions(now, actions);
  Reconnect(now, actions);
}

void Swim::TickProbe(absl::Duration now, Actions* actions) {
  if (!probe_.target.empty() && !probe_.answered && !probe_.asked && now >= probe_.ask_others) {
    probe_.asked = true;
    for (const std::string& helper : RandomMembers(options_.indirect, probe_.target)) {
      Send(MembershipMessage::PING_REQUEST, helper, probe_.sequence, actions, probe_.target);
      ++probe_.missing_nacks;
    }
  }
  if (now < next_probe_) return;
  EndProbe(now, actions);
  StartProbe(now, actions);
}

void Swim::EndProbe(absl::Duration now, Actions* actions) {
  if (probe_.target.empty()) return;
  const Probe ended = std::exchange(probe_, Probe());
  if (ended.answered) return Feel(-1);
  // Where those who were asked for help are silent as well, it may be our own connection.
  Feel(ended.asked && ended.missing_nacks == 0 ? 0 : 1);
  Suspect(ended.target, now, actions);
}

void Swim::StartProbe(absl::Duration now, Actions* actions) {
  const absl::Duration interval = Slow(options_.interval);
  next_probe_ = now + interval;
  const auto random = [this] { return Random(); };
  for (size_t i = 0; i < roster_.size(); ++i) {
    const Member& member = roster_.at(order_.Next(roster_.size(), random));
    if (!member.is_alive() || member.name == self_.name) continue;
    probe_ = {.target = member.name,
              .sequence = next_sequence_++,
              .ask_others = now + Slow(options_.timeout)};
    return Send(MembershipMessage::PING, probe_.target, probe_.sequence, actions);
  }
}

void Swim::TickRelays(absl::Duration now, Actions* actions) {
  for (auto it = relays_.begin(); it != relays_.end();) {
    Relay& relay = it->second;
    if (now < relay.nack_at) {
      ++it;
    } else if (!relay.nacked) {
      relay.nacked = true;
      relay.nack_at = now + options_.interval * kMostUnwell;  // an ACK may still come
      Send(MembershipMessage::NACK, relay.asker, relay.sequence, actions, relay.target);
      ++it;
    } else {
      it = relays_.erase(it);
    }
  }
}

void Swim::TickSuspicions(absl::Duration now, Actions* actions) {
  std::vector<std::string> over;
  for (auto& [name, suspicion] : suspicions_) {
    if (now >= Deadline(suspicion)) {
      over.push_back(name);
    } else if (now >= suspicion.ask_again) {
      // One lost message must not cost a life.
      suspicion.ask_again = now + options_.timeout;
      Send(MembershipMessage::PING, name, next_sequence_++, actions);
    }
  }
  for (const std::string& name : over) {
    const Member* const member = roster_.Find(name);
    if (member == nullptr || !member->is_alive()) {
      suspicions_.erase(name);
      continue;
    }
    Bury(*member, "it did not answer, and nobody heard from it", actions);
  }
}

void Swim::Unreachable(const std::string& name, absl::Duration now, Actions* actions) {
  const Member* const member = roster_.Find(name);
  if (left_ || superseded_ || member == nullptr || !member->is_alive()) return;
  if (!broken_.insert(name).second) {
    return Bury(*member, "its connection broke, and no other could be made", actions);
  }
  Suspect(name, now, actions);
  Send(MembershipMessage::PING, name, next_sequence_++, actions);
}

// Two halves of a network that was cut find each other again: somebody asks the dead.
void Swim::Reconnect(absl::Duration now, Actions* actions) {
  if (now < next_reconnect_) return;
  next_reconnect_ = now + options_.interval * kReconnectIntervals;
  if (dead_.empty()) return;
  auto chosen = dead_.begin();
  std::advance(chosen, static_cast<int64_t>(Random() % dead_.size()));
  JoinThrough(*chosen, actions);
}

}  // namespace weft::membership
