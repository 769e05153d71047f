// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/informer.h"

#include <algorithm>

#include "base/log.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(30);

std::string OwnerUid(const ObjectPtr& object) {
  if (object == nullptr) return "";
  const Json* const owner = ControllerOf(*object);
  return owner == nullptr ? "" : StringField(*owner, {"uid"});
}

}  // namespace

Informer::Informer(ObjectStore* store, const ResourceType& type, Options options,
                   const Clock* clock)
    : store_(store), type_(type), options_(std::move(options)), clock_(clock) {}

Informer::~Informer() { watch_.reset(); }

void Informer::AddHandler(Handler handler) { handlers_.push_back(std::move(handler)); }

void Informer::Maintain() {
  uint64_t round = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!is_broken_ || clock_->Monotonic() < not_before_) return;
  }
  // Outside the lock, for which its sink may be waiting.
  watch_.reset();
  {
    absl::MutexLock lock(&mutex_);
    is_broken_ = false;
    is_listing_ = true;
    seen_.clear();
    round = ++round_;
  }
  WatchOptions options;
  options.namespace_name = options_.namespace_name;
  options.label_selector = options_.label_selector;
  options.marks_initial_end = true;
  StatusOr<std::unique_ptr<Watch>> watch = store_->StartWatch(
      type_, options, [this, round](const WatchEvent& event) { OnEvent(round, event); });
  if (watch.ok()) {
    watch_ = *std::move(watch);
    return;
  }
  WatchEvent failure;
  failure.kind = WatchEvent::Kind::kError;
  failure.error = watch.status();
  OnEvent(round, failure);
}

void Informer::OnEvent(uint64_t round, const WatchEvent& event) {
  absl::MutexLock lock(&mutex_);
  if (round != round_) return;
  if (event.kind == WatchEvent::Kind::kError) {
    is_broken_ = true;
    absl::Duration pause = kFirstPause;
    for (int i = 0; i < failures_ && pause < kLongestPause; ++i) pause *= 2;
    ++failures_;
    not_before_ = clock_->Monotonic() + std::min(pause, kLongestPause);
    WEFT_LOG(WARNING) << "The watch of " << type_.Id()
                      << " broke and starts anew: " << event.error.message();
    return;
  }
  if (event.kind == WatchEvent::Kind::kBookmark) {
    if (is_listing_) FinishInitialList();
    return;
  }
  const Key key(NamespaceOf(*event.object), NameOf(*event.object));
  if (event.kind == WatchEvent::Kind::kDeleted) {
    Store(key, nullptr);
    return;
  }
  if (is_listing_) seen_.insert(key);
  Store(key, event.object);
}

// What was not told again has gone while nobody watched.
void Informer::FinishInitialList() {
  is_listing_ = false;
  has_synced_ = true;
  failures_ = 0;
  std::vector<Key> gone;
  for (const auto& [key, object] : objects_) {
    if (seen_.count(key) == 0) gone.push_back(key);
  }
  for (const Key& key : gone) Store(key, nullptr);
  seen_.clear();
}

void Informer::Store(const Key& key, const ObjectPtr& object) {
  const auto found = objects_.find(key);
  const ObjectPtr previous = found == objects_.end() ? nullptr : found->second;
  if (previous == nullptr && object == nullptr) return;
  if (const std::string uid = OwnerUid(previous); !uid.empty()) {
    by_owner_[uid].erase(key);
    if (by_owner_[uid].empty()) by_owner_.erase(uid);
  }
  if (object == nullptr) {
    objects_.erase(key);
  } else {
    objects_[key] = object;
    if (const std::string uid = OwnerUid(object); !uid.empty()) by_owner_[uid][key] = object;
  }
  if (previous != nullptr && object != nullptr && RevisionOf(*previous) == RevisionOf(*object))
    return;
  for (const Handler& handler : handlers_) handler(previous, object);
}

bool Informer::HasSynced() const {
  absl::MutexLock lock(&mutex_);
  return has_synced_;
}

ObjectPtr Informer::Get(const std::string& namespace_name, const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find({namespace_name, name});
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<ObjectPtr> Informer::List(const std::string& namespace_name) const {
  absl::MutexLock lock(&mutex_);
  std::vector<ObjectPtr> objects;
  for (const auto& [key, object] : objects_) {
    if (namespace_name.empty() || key.first == namespace_name) objects.push_back(object);
  }
  return objects;
}

std::vector<ObjectPtr> Informer::OwnedBy(const std::string& uid) const {
  absl::MutexLock lock(&mutex_);
  std::vector<ObjectPtr> objects;
  const auto owned = by_owner_.find(uid);
  if (owned == by_owner_.end()) return objects;
  for (const auto& [key, object] : owned->second) objects.push_back(object);
  return objects;
}

}  // namespace weft::platform
