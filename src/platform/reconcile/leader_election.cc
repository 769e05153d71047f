// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/leader_election.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// Of the lease's time, for clocks that do not run at one rate.
constexpr double kMargin = 0.05;
constexpr absl::Duration kWorkPeriod = absl::Milliseconds(50);

// metav1.MicroTime.
std::string FormatMicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

}  // namespace

Status LeaderElector::CheckTimes(absl::Duration lease_duration, absl::Duration renew_deadline,
                                 absl::Duration retry_period) {
  if (lease_duration < absl::Seconds(1) || retry_period <= absl::ZeroDuration()) {
    return InvalidArgument("The lease duration is ", absl::FormatDuration(lease_duration),
                           " and the retry period ", absl::FormatDuration(retry_period),
                           ": at least a second, and more than none, are needed");
  }
  if (renew_deadline > 0.9 * lease_duration) {
    return InvalidArgument("The renew deadline is ", absl::FormatDuration(renew_deadline),
                           ": at most nine tenths of ", "the lease duration of ",
                           absl::FormatDuration(lease_duration), " are allowed");
  }
  if (2 * retry_period > renew_deadline) {
    return InvalidArgument("The retry period is ", absl::FormatDuration(retry_period),
                           ": at most half of the renew ", "deadline of ",
                           absl::FormatDuration(renew_deadline), " is allowed");
  }
  return absl::OkStatus();
}

LeaderElector::Record LeaderElector::RecordOf(const Json& lease) {
  Record record;
  record.holder = StringField(lease, {"spec", "holderIdentity"});
  record.renewed = StringField(lease, {"spec", "renewTime"});
  record.transitions = IntField(lease, {"spec", "leaseTransitions"});
  record.duration = absl::Seconds(IntField(lease, {"spec", "leaseDurationSeconds"}));
  return record;
}

void LeaderElector::Step() {
  // Who stood still leads no more by the time that it looks.
  const bool was_leader = has_led_;
  const Status status = Try();
  if (!status.ok() && was_leader)
    WEFT_LOG(WARNING) << "The lease was not renewed: " << status.message();
  const bool is_leader = IsLeader();
  if (options_.metrics != nullptr) {
    options_.metrics
        ->GetGauge("leader_election_master_status", "1: this process leads",
                   {{"name", options_.name}})
        .Set(is_leader ? 1 : 0);
  }
  has_led_ = is_leader;
  if (is_leader == was_leader) return;
  WEFT_LOG(INFO) << options_.identity << (is_leader ? " leads, " : " leads no more, ")
                 << options_.namespace_name << "/" << options_.name << " changed hands "
                 << transitions() << " times";
}

Status LeaderElector::Try() {
  StatusOr<ObjectPtr> found =
      options_.store->Get(Leases(), {options_.namespace_name, options_.name});
  if (!found.ok() && !IsObjectNotFound(found.status())) return found.status();
  if (!found.ok()) {
    Json lease;
    lease.Set("apiVersion", "coordination.k8s.io/v1");
    lease.Set("kind", "Lease");
    SetField(&lease, {"metadata", "name"}, options_.name);
    SetField(&lease, {"metadata", "namespace"}, options_.namespace_name);
    return Write(std::move(lease), Record(), true);
  }
  const Record held = RecordOf(**found);
  const absl::Duration now = options_.clock->Monotonic();
  if (held != seen_) {
    seen_ = held;
    seen_at_ = now;
  }
  const bool is_ours = held.holder == options_.identity;
  if (!is_ours) {
    absl::MutexLock lock(&mutex_);
    is_holder_ = false;
  }
  const bool is_free =
      held.holder.empty() || now >= seen_at_ + std::max(held.duration, options_.lease_duration);
  if (!is_ours && !is_free) return absl::OkStatus();
  return Write(**found, held, false);
}

Json LeaderElector::Fill(Json lease, const Record& held) const {
  const std::string now = FormatMicroTime(options_.clock->Now());
  const bool is_taken = held.holder != options_.identity;
  SetField(&lease, {"spec", "holderIdentity"}, options_.identity);
  SetField(&lease, {"spec", "leaseDurationSeconds"},
           absl::ToInt64Seconds(absl::Ceil(options_.lease_duration, absl::Seconds(1))));
  SetField(&lease, {"spec", "renewTime"}, now);
  if (is_taken) {
    SetField(&lease, {"spec", "acquireTime"}, now);
    SetField(&lease, {"spec", "leaseTransitions"},
             held.holder.empty() && held.renewed.empty() ? 0 : held.transitions + 1);
  }
  return lease;
}

// With the revision that was read: of two who try, one succeeds.
Status LeaderElector::Write(Json lease, const Record& held, bool is_new) {
  lease = Fill(std::move(lease), held);
  const absl::Duration asked = options_.clock->Monotonic();
  WriteOptions options;
  options.is_strict = false;
  options.deadline = asked + options_.renew_deadline;
  const StatusOr<ObjectPtr> written =
      is_new ? options_.store->Create(Leases(), options_.namespace_name, std::move(lease), options)
             : options_.store->Update(Leases(), std::move(lease), options);
  if (!written.ok()) return written.status();
  seen_ = RecordOf(**written);
  seen_at_ = options_.clock->Monotonic();
  absl::MutexLock lock(&mutex_);
  is_holder_ = true;
  renewed_ = asked;
  transitions_ = seen_.transitions;
  return absl::OkStatus();
}

void LeaderElector::Release() {
  {
    absl::MutexLock lock(&mutex_);
    if (!is_holder_) return;
    is_holder_ = false;
  }
  const StatusOr<ObjectPtr> found =
      options_.store->Get(Leases(), {options_.namespace_name, options_.name});
  if (!found.ok() || StringField(**found, {"spec", "holderIdentity"}) != options_.identity) return;
  Json lease = **found;
  SetField(&lease, {"spec", "holderIdentity"}, "");
  SetField(&lease, {"spec", "leaseDurationSeconds"}, 1);
  WriteOptions options;
  options.is_strict = false;
  const Status status = options_.store->Update(Leases(), std::move(lease), options).status();
  if (!status.ok()) WEFT_LOG(WARNING) << "The lease is left to expire: " << status.message();
}

bool LeaderElector::IsLeader() const {
  absl::MutexLock lock(&mutex_);
  return is_holder_ && options_.clock->Monotonic() < renewed_ + options_.renew_deadline;
}

absl::Duration LeaderElector::WriteDeadline() const {
  absl::MutexLock lock(&mutex_);
  const bool may_begin =
      is_holder_ && options_.clock->Monotonic() < renewed_ + options_.renew_deadline;
  return may_begin ? renewed_ + (1 - kMargin) * options_.lease_duration : -absl::InfiniteDuration();
}

int64_t LeaderElector::transitions() const {
  absl::MutexLock lock(&mutex_);
  return transitions_;
}

Status FencedStore::Admit(absl::Duration* deadline) const {
  const absl::Duration ours = elector_->WriteDeadline();
  if (ours == -absl::InfiniteDuration())
    return FailedPrecondition("Nothing is written: another process may lead");
  *deadline = std::min(*deadline, ours);
  return absl::OkStatus();
}

StatusOr<ObjectPtr> FencedStore::Get(const ResourceType& type, const ObjectName& name) {
  return store_->Get(type, name);
}

StatusOr<ObjectList> FencedStore::List(const ResourceType& type, const ListOptions& options) {
  return store_->List(type, options);
}

StatusOr<std::unique_ptr<Watch>> FencedStore::StartWatch(const ResourceType& type,
                                                         const WatchOptions& options,
                                                         WatchSink sink) {
  return store_->StartWatch(type, options, std::move(sink));
}

StatusOr<ObjectPtr> FencedStore::Create(const ResourceType& type, const std::string& namespace_name,
                                        Json object, const WriteOptions& options) {
  WriteOptions bounded = options;
  WEFT_RETURN_IF_ERROR(Admit(&bounded.deadline));
  return store_->Create(type, namespace_name, std::move(object), bounded);
}

StatusOr<ObjectPtr> FencedStore::Update(const ResourceType& type, Json object,
                                        const WriteOptions& options) {
  WriteOptions bounded = options;
  WEFT_RETURN_IF_ERROR(Admit(&bounded.deadline));
  return store_->Update(type, std::move(object), bounded);
}

StatusOr<ObjectPtr> FencedStore::Patch(const ResourceType& type, const ObjectName& name,
                                       PatchKind kind, const Json& patch,
                                       const WriteOptions& options) {
  WriteOptions bounded = options;
  WEFT_RETURN_IF_ERROR(Admit(&bounded.deadline));
  return store_->Patch(type, name, kind, patch, bounded);
}

StatusOr<ObjectPtr> FencedStore::Delete(const ResourceType& type, const ObjectName& name,
                                        const DeleteOptions& options) {
  DeleteOptions bounded = options;
  WEFT_RETURN_IF_ERROR(Admit(&bounded.deadline));
  return store_->Delete(type, name, bounded);
}

LeaderLoop::LeaderLoop(LeaderElector* elector, absl::Duration period, std::function<Work()> start)
    : elector_(elector) {
  elects_ = std::make_unique<Thread>("elects", [this, period] {
    do elector_->Step();
    while (!stopping_.WaitForNotificationWithTimeout(period));
  });
  works_ = std::make_unique<Thread>("leads", [this, start = std::move(start)] {
    Work work;
    int64_t term = 0;
    do {
      // Another may have led for a moment.
      if (work != nullptr && (!elector_->IsLeader() || elector_->transitions() != term))
        work = nullptr;
      if (work == nullptr && elector_->IsLeader()) {
        term = elector_->transitions();
        work = start();
      }
    } while (!stopping_.WaitForNotificationWithTimeout(kWorkPeriod));
  });
}

LeaderLoop::~LeaderLoop() {
  stopping_.Notify();
  works_.reset();
  elects_.reset();
  elector_->Release();
}

}  // namespace weft::platform
