// SPDX-License-Identifier: Apache-2.0
#include "weft/membership/roster.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft::membership {

absl::string_view StateName(State state) {
  switch (state) {
    case State::kAlive:
      return "alive";
    case State::kSuspect:
      return "suspected";
    case State::kDead:
      return "dead";
    case State::kLeft:
      return "left";
  }
  return "unknown";
}

Roster::Roster(std::shared_ptr<const std::vector<Member>> shared) : shared_(std::move(shared)) {
  for (const Member& member : *shared_) num_alive_ += member.is_alive() ? 1 : 0;
}

const Member* Roster::FindShared(absl::string_view name) const {
  if (shared_ == nullptr) return nullptr;
  const auto found = std::lower_bound(
      shared_->begin(), shared_->end(), name,
      [](const Member& member, absl::string_view key) { return member.name < key; });
  return found != shared_->end() && found->name == name ? &*found : nullptr;
}

const Member* Roster::Find(absl::string_view name) const {
  if (const auto changed = changed_.find(name); changed != changed_.end()) return &changed->second;
  if (const auto added = added_index_.find(name); added != added_index_.end())
    return &added_[added->second];
  return FindShared(name);
}

bool Roster::Put(Member member) {
  const Member* const known = Find(member.name);
  if (known == nullptr && size() >= kMostMembers) return false;
  if (known != nullptr && known->is_alive()) --num_alive_;
  if (member.is_alive()) ++num_alive_;
  if (FindShared(member.name) != nullptr) {
    changed_[member.name] = std::move(member);
  } else if (const auto added = added_index_.find(member.name); added != added_index_.end()) {
    added_[added->second] = std::move(member);
  } else {
    added_index_[member.name] = added_.size();
    added_.push_back(std::move(member));
  }
  return true;
}

const Member& Roster::at(size_t index) const {
  if (index >= shared_size()) return added_[index - shared_size()];
  const Member& member = (*shared_)[index];
  if (changed_.empty()) return member;
  const auto changed = changed_.find(member.name);
  return changed == changed_.end() ? member : changed->second;
}

void Roster::ForEach(absl::FunctionRef<void(const Member&)> visit) const {
  for (size_t i = 0; i < size(); ++i) visit(at(i));
}

size_t RoundRobin::Next(size_t size, absl::FunctionRef<uint64_t()> random) {
  if (size != size_ || left_ == 0) {
    // A step without a divisor in common with the size comes everywhere.
    size_ = size;
    left_ = size;
    at_ = random() % size;
    step_ = size == 1 ? 1 : 1 + random() % (size - 1);
    while (std::gcd(step_, size) != 1) step_ = step_ % size + 1;
  }
  --left_;
  at_ = (at_ + step_) % size_;
  return at_;
}

}  // namespace weft::membership
