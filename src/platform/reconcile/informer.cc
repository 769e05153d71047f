// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/informer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"

#include "base/log.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(30);
// A watch that lived so long ends the row of failures.
constexpr absl::Duration kHealthyAge = absl::Minutes(1);
// So many copies are ready for use, as of objects that run: each changes a few times.
constexpr size_t kMostReady = 4096;
constexpr absl::Duration kBeliefInOldLists = absl::Minutes(5);

// Revisions of one store are numbers that grow; 0 when it says nothing.
int64_t RevisionNumber(const Json& object) {
  int64_t revision = 0;
  return absl::SimpleAtoi(RevisionOf(object), &revision) ? revision : 0;
}

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
    const absl::Duration now = clock_->Monotonic();
    const bool is_old = !is_broken_ && !is_listing_ && now >= began_ + options_.relist;
    if (!is_old && (!is_broken_ || now < not_before_)) return;
  }
  // Outside the lock, for which its sink may be waiting.
  watch_.reset();
  {
    absl::MutexLock lock(&mutex_);
    is_broken_ = false;
    is_listing_ = true;
    listed_.clear();
    began_ = clock_->Monotonic();
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
  absl::MutexLock lock(&mutex_);
  Break(watch.status());
}

absl::Duration Informer::NextMaintenance() const {
  absl::MutexLock lock(&mutex_);
  if (is_broken_) return not_before_;
  return is_listing_ ? absl::InfiniteDuration() : began_ + options_.relist;
}

void Informer::Break(const Status& why) {
  const absl::Duration now = clock_->Monotonic();
  if (now - began_ > kHealthyAge) failures_ = 0;
  absl::Duration pause = kFirstPause;
  for (int i = 0; i < failures_ && pause < kLongestPause; ++i) pause *= 2;
  ++failures_;
  is_broken_ = true;
  not_before_ = now + std::min(pause, kLongestPause);
  listed_.clear();
  WEFT_LOG(WARNING) << "The watch of " << type_.Id() << " broke and starts anew: " << why.message();
}

void Informer::OnEvent(uint64_t round, const WatchEvent& event) {
  absl::MutexLock lock(&mutex_);
  if (round != round_ || is_broken_) return;
  if (event.kind == WatchEvent::Kind::kError) return Break(event.error);
  if (event.kind == WatchEvent::Kind::kBookmark) {
    if (is_listing_) return FinishList(*event.object);
    revision_ = std::max(revision_, RevisionNumber(*event.object));
    return;
  }
  if (!is_listing_) return OnChange(event);
  const Key key(NamespaceOf(*event.object), NameOf(*event.object));
  listed_[key] = event.kind == WatchEvent::Kind::kDeleted ? Copy() : Pack(Keep(event.object));
}

// Servers tell changes in the order of their revisions, each once.
void Informer::OnChange(const WatchEvent& event) {
  const Key key(NamespaceOf(*event.object), NameOf(*event.object));
  const int64_t revision = RevisionNumber(*event.object);
  if (revision > 0 && revision <= revision_) {
    const auto held = objects_.find(key);
    if (held != objects_.end() && held->second.revision >= revision) return;
    return Break(
        Unavailable("An event of revision ", revision, " came after revision ", revision_));
  }
  revision_ = std::max(revision_, revision);
  if (event.kind == WatchEvent::Kind::kDeleted) {
    Release(key);
    return Store(key, nullptr, Copy());
  }
  const ObjectPtr kept = Keep(event.object);
  Store(key, kept, Hold(key, kept));
}

// What is not in the list has gone while nobody watched.
void Informer::FinishList(const Json& mark) {
  const int64_t revision = RevisionNumber(mark);
  if (revision > 0 && revision < revision_) {
    // A server that lags behind, or a store that was set back: that one stays as it is.
    const absl::Duration now = clock_->Monotonic();
    old_lists_since_ = std::min(old_lists_since_, now);
    if (now - old_lists_since_ < kBeliefInOldLists) {
      return Break(Unavailable("The list is of revision ", revision, ", but ", revision_,
                               " is known already"));
    }
  }
  old_lists_since_ = absl::InfiniteDuration();
  is_listing_ = false;
  has_synced_ = true;
  revision_ = revision;
  std::vector<Key> gone;
  for (const auto& [key, copy] : objects_) {
    const auto listed = listed_.find(key);
    if (listed == listed_.end() || listed->second.is_null()) gone.push_back(key);
  }
  for (const Key& key : gone) Store(key, nullptr, Copy());
  Copies listed = std::exchange(listed_, {});
  while (!listed.empty()) {
    auto first = listed.extract(listed.begin());
    if (first.mapped().is_null()) continue;
    const ObjectPtr object = Read(first.mapped());
    Store(first.key(), object, std::move(first.mapped()));
  }
}

ObjectPtr Informer::Read(const Copy& copy) const {
  if (copy.object != nullptr || copy.packed.empty()) return copy.object;
  return texts_.UnpackJson(copy.packed);
}

ObjectPtr Informer::Keep(const ObjectPtr& object) const {
  if (options_.keep == nullptr) return object;
  return std::make_shared<const Json>(options_.keep(*object));
}

Informer::Copy Informer::Pack(const ObjectPtr& kept) {
  Copy copy;
  copy.revision = RevisionNumber(*kept);
  if (options_.keep == nullptr || !options_.packs) {
    copy.object = kept;
  } else {
    copy.packed = texts_.Pack(kept->Dump());
  }
  return copy;
}

void Informer::Release(const Key& key) {
  const auto held = objects_.find(key);
  if (held != objects_.end() && held->second.change != 0) ready_.erase(held->second.change);
}

Informer::Copy Informer::Hold(const Key& key, const ObjectPtr& kept) {
  if (options_.keep == nullptr || !options_.packs) return Pack(kept);
  Copy copy;
  copy.object = kept;
  copy.revision = RevisionNumber(*kept);
  copy.change = ++changes_;
  Release(key);
  ready_.emplace(copy.change, key);
  if (ready_.size() <= kMostReady) return copy;
  const auto oldest = ready_.begin();
  const auto found = objects_.find(oldest->second);
  // A list may have replaced it.
  if (found != objects_.end() && found->second.change == oldest->first)
    found->second = Pack(found->second.object);
  ready_.erase(oldest);
  return copy;
}

void Informer::Disown(const std::string& owner, const Key& key) {
  const auto owned = by_owner_.find(owner);
  if (owned == by_owner_.end()) return;
  auto& copies = owned->second;
  const auto at =
      std::lower_bound(copies.begin(), copies.end(), key,
                       [](const auto* entry, const Key& k) { return entry->first < k; });
  if (at != copies.end() && (*at)->first == key) copies.erase(at);
  if (copies.empty()) by_owner_.erase(owned);
}

void Informer::Store(const Key& key, const ObjectPtr& object, Copy copy) {
  const auto found = objects_.find(key);
  const bool was_there = found != objects_.end();
  if (!was_there && object == nullptr) return;
  const ObjectPtr previous = was_there ? Read(found->second) : nullptr;
  const bool is_same =
      was_there && object != nullptr && RevisionOf(*previous) == RevisionOf(*object);
  const std::string former = OwnerUid(previous);
  const std::string owner = OwnerUid(object);
  if (!former.empty() && former != owner) Disown(former, key);
  if (object == nullptr) {
    objects_.erase(found);
  } else {
    const auto at = objects_.insert_or_assign(key, std::move(copy)).first;
    if (!owner.empty() && former != owner) {
      auto& copies = by_owner_[owner];
      const auto is_before = [](const auto* a, const auto* b) { return a->first < b->first; };
      copies.insert(std::upper_bound(copies.begin(), copies.end(), &*at, is_before), &*at);
    }
  }
  if (is_same && !options_.tells_unchanged) return;
  for (const Handler& handler : handlers_) handler(previous, object);
}

bool Informer::HasSynced() const {
  absl::MutexLock lock(&mutex_);
  return has_synced_;
}

ObjectPtr Informer::Get(const std::string& namespace_name, const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find({namespace_name, name});
  return found == objects_.end() ? nullptr : Read(found->second);
}

std::vector<ObjectPtr> Informer::List(const std::string& namespace_name) const {
  absl::MutexLock lock(&mutex_);
  std::vector<ObjectPtr> objects;
  for (const auto& [key, copy] : objects_) {
    if (namespace_name.empty() || key.first == namespace_name) objects.push_back(Read(copy));
  }
  return objects;
}

std::vector<ObjectPtr> Informer::OwnedBy(const std::string& uid) const {
  absl::MutexLock lock(&mutex_);
  std::vector<ObjectPtr> objects;
  const auto owned = by_owner_.find(uid);
  if (owned == by_owner_.end()) return objects;
  for (const auto* const entry : owned->second) objects.push_back(Read(entry->second));
  return objects;
}

}  // namespace weft::platform
