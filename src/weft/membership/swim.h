// SPDX-License-Identifier: Apache-2.0
// Who is alive, by SWIM: A. Das, I. Gupta, A. Motivala, "SWIM: Scalable Weakly-consistent
// Infection-style Process Group Membership Protocol", DSN 2002, with what "Lifeguard: Local Health
// Awareness for More Accurate Failure Detection" (Dadgar et al., 2018) adds to it.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "proto/weft/membership.pb.h"
#include "weft/membership/roster.h"

namespace weft::membership {

using wire::MemberNews;
using wire::MembershipMessage;

struct SwimOptions {
  // This task. Its incarnation is higher than that of any earlier process of the name, as is the
  // time of its start; were it not, it would be raised when others say what they know.
  Member self;
  absl::Duration interval = absl::Milliseconds(250);  // one member is probed in each
  absl::Duration timeout = absl::Milliseconds(100);   // then others are asked to probe it as well
  int indirect = 3;                                   // so many others
  // A suspect is dead after this many intervals, times log10 of the members' number where that is
  // more than one, if several suspect it; at most `patience` times that if nobody else does.
  int suspicion = 5;
  int patience = 3;
  int spread = 4;         // each news is sent `spread` times log10 of the members' number, plus one
  bool lifeguard = true;  // false: the protocol of the SWIM paper
  uint64_t seed = 0;      // of whom it probes and tells
};

// What became of a member, as this task sees it.
struct Event {
  enum class Kind : uint8_t {
    kJoined,      // new, or another process of a name
    kChanged,     // is a rank now
    kSuspected,   //
    kCleared,     // is no suspect any more
    kLost,        // dead, or replaced by another process
    kLeft,        // said so
    kSuperseded,  // this process: a later one of its name is there; it takes part no more
  };
  Kind kind = Kind::kJoined;
  Member member;
  std::string why;
};

struct Outgoing {
  std::string to;
  MembershipMessage message;
};

// What has to be done, in order: events first.
struct Actions {
  std::vector<Event> events;
  std::vector<Outgoing> messages;
};

// One task's part in the protocol. Pure: times and messages in, messages and events out. Not
// thread-safe. `now` never goes back.
class Swim {
 public:
  explicit Swim(SwimOptions options, Roster known = Roster());

  // A message of task `from`, whatever is in it.
  void Receive(const std::string& from, const MembershipMessage& message, absl::Duration now,
               Actions* actions);
  // Does what is due; to be called again at NextDue.
  void Tick(absl::Duration now, Actions* actions);
  absl::Duration NextDue() const;
  // The network says that the last connection to a task broke, or that none can be made. Once is
  // a reason to look, twice is a death.
  void Unreachable(const std::string& name, absl::Duration now, Actions* actions);
  // Asks a task that may be there for all that it knows.
  void JoinThrough(const std::string& name, Actions* actions);
  void BeRank(Actions* actions);
  void Leave(Actions* actions);

  const Member& self() const { return self_; }
  const Roster& roster() const { return roster_; }  // without this task
  // Members that are alive, and this one.
  size_t num_alive() const { return roster_.num_alive() + 1; }
  // 0: well; each point makes it an interval slower to accuse others.
  int unwell() const { return unwell_; }
  bool is_superseded() const { return superseded_; }

 private:
  struct Probe {
    std::string target;  // empty: none
    uint64_t sequence = 0;
    absl::Duration ask_others;
    bool asked = false;
    bool answered = false;
    int missing_nacks = 0;
  };
  struct Relay {
    std::string asker;
    uint64_t sequence = 0;
    std::string target;
    absl::Duration nack_at;
    bool nacked = false;
  };
  struct Suspicion {
    absl::Duration since;
    std::set<std::string> from;
    absl::Duration ask_again = absl::InfiniteDuration();  // who accuses keeps asking
  };
  struct Rumour {
    MemberNews news;
    int sent = 0;
  };

  uint64_t Random() { return random_(); }
  absl::Duration Slow(absl::Duration healthy) const { return healthy * (unwell_ + 1); }
  void Feel(int points);
  // A random member that is alive, but `not_this`; null: none was found.
  const Member* RandomMember(const std::string& not_this);
  std::vector<std::string> RandomMembers(int count, const std::string& not_this);

  void Apply(const MemberNews& news, absl::Duration now, Actions* actions);
  void ApplyToSelf(const MemberNews& news, absl::Duration now, Actions* actions);
  void TakeAlive(const Member* known, const MemberNews& news, Actions* actions);
  void TakeSuspect(const Member& known, const MemberNews& news, absl::Duration now,
                   Actions* actions);
  void TakeDeath(const Member& known, const MemberNews& news, Actions* actions);
  void Suspect(const std::string& name, absl::Duration now, Actions* actions);
  void Bury(const Member& member, const std::string& why, Actions* actions);
  void Tell(const MemberNews& news);
  void TellAtOnce(Actions* actions);
  absl::Duration Deadline(const Suspicion& suspicion) const;

  MembershipMessage Make(MembershipMessage::Kind kind, const std::string& to);
  void Send(MembershipMessage::Kind kind, const std::string& to, uint64_t sequence,
            Actions* actions, const std::string& target = "");
  void SendAll(const std::string& to, Actions* actions);
  void StartProbe(absl::Duration now, Actions* actions);
  void EndProbe(absl::Duration now, Actions* actions);
  void TickProbe(absl::Duration now, Actions* actions);
  void TickRelays(absl::Duration now, Actions* actions);
  void TickSuspicions(absl::Duration now, Actions* actions);
  void Reconnect(absl::Duration now, Actions* actions);
  void TakeAck(const std::string& from, const MembershipMessage& message, Actions* actions);

  const SwimOptions options_;
  Member self_;
  Roster roster_;
  std::mt19937_64 random_;
  RoundRobin order_;
  Probe probe_;
  uint64_t next_sequence_ = 1;
  std::map<uint64_t, Relay> relays_;  // by our sequence
  std::map<std::string, Suspicion> suspicions_;
  std::set<std::string> broken_;  // looked at since their connection broke
  std::set<std::string> dead_;
  std::map<std::string, Rumour> rumours_;
  absl::Duration started_ = -absl::InfiniteDuration();
  absl::Duration next_probe_;
  absl::Duration next_reconnect_;
  absl::Duration last_tick_ = -absl::InfiniteDuration();
  int unwell_ = 0;
  bool superseded_ = false;
  bool left_ = false;
};

}  // namespace weft::membership
