// SPDX-License-Identifier: Apache-2.0
// Who is known: members by name, in an order in which all are probed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace weft::membership {

enum class State : uint8_t { kAlive, kSuspect, kDead, kLeft };
absl::string_view StateName(State state);

struct Member {
  std::string name;          // "/job:worker/replica:0/task:0"
  std::string address;       // of its data connection
  uint64_t process = 0;      // tells apart processes of one name
  uint64_t incarnation = 0;  // see Swim
  State state = State::kAlive;
  bool is_rank = false;

  bool is_alive() const { return state == State::kAlive || state == State::kSuspect; }
};

// Not thread-safe. Members are never forgotten: a name that came back must not lose to old news.
class Roster {
 public:
  static constexpr size_t kMostMembers = 1 << 16;

  Roster() = default;
  // Begins with members that many rosters share; sorted by name.
  explicit Roster(std::shared_ptr<const std::vector<Member>> shared);

  const Member* Find(absl::string_view name) const;
  // False if there are too many already.
  bool Put(Member member);
  size_t size() const { return shared_size() + added_.size(); }
  size_t num_alive() const { return num_alive_; }
  const Member& at(size_t index) const;  // in no order that means anything
  void ForEach(absl::FunctionRef<void(const Member&)> visit) const;

 private:
  size_t shared_size() const { return shared_ == nullptr ? 0 : shared_->size(); }
  const Member* FindShared(absl::string_view name) const;

  std::shared_ptr<const std::vector<Member>> shared_;       // shared by the members of a simulation
  std::map<std::string, Member, std::less<>> changed_;      // of the shared ones
  std::map<std::string, size_t, std::less<>> added_index_;  // of the others
  std::vector<Member> added_;
  size_t num_alive_ = 0;
};

// Visits every index below `size` once in each round, in another order each time.
class RoundRobin {
 public:
  // `random` chooses the order of a round that begins.
  size_t Next(size_t size, absl::FunctionRef<uint64_t()> random);

 private:
  size_t size_ = 0;
  size_t step_ = 1;
  size_t at_ = 0;
  size_t left_ = 0;
};

}  // namespace weft::membership
