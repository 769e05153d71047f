// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/expectations.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(5);

}  // namespace

void Expectations::Expect(const std::string& owner, const std::string& what) {
  absl::MutexLock lock(&mutex_);
  open_[owner][what] = clock_->Monotonic() + kPatience;
}

void Expectations::Meet(const std::string& owner, const std::string& what) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(owner);
  if (found == open_.end()) return;
  found->second.erase(what);
  if (found->second.empty()) open_.erase(found);
}

bool Expectations::AreMet(const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(owner);
  if (found == open_.end()) return true;
  const absl::Duration now = clock_->Monotonic();
  std::erase_if(found->second, [&](const auto& entry) { return entry.second <= now; });
  if (!found->second.empty()) return false;
  open_.erase(found);
  return true;
}

void Expectations::Forget(const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  open_.erase(owner);
}

}  // namespace weft::platform
