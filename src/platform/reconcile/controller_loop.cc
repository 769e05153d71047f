// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/controller_loop.h"

#include <algorithm>

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kMaintainPeriod = absl::Milliseconds(50);

bool HaveSynced(const std::vector<Informer*>& informers) {
  return std::all_of(informers.begin(), informers.end(),
                     [](Informer* informer) { return informer->HasSynced(); });
}

}  // namespace

bool ControllerLoop::Step(const std::string& name, WorkQueue* queue, const Reconcile& reconcile,
                          absl::Duration timeout) {
  const std::optional<std::string> key = queue->Take(timeout);
  if (!key.has_value()) return false;
  const StatusOr<absl::Duration> again = reconcile(*key);
  if (again.ok()) {
    queue->Forget(*key);
    if (*again < absl::InfiniteDuration()) queue->AddAfter(*key, *again);
  } else {
    // That others write too is daily life.
    if (!IsConflict(again.status()) && !absl::IsCancelled(again.status())) {
      WEFT_LOG(WARNING) << name << ": " << *key << " comes again: " << again.status().message();
    }
    IsRefused(again.status()) ? queue->AddRefused(*key) : queue->AddRateLimited(*key);
  }
  queue->Done(*key);
  return true;
}

ControllerLoop::ControllerLoop(const std::string& name, WorkQueue* queue,
                               std::vector<Informer*> informers, Reconcile reconcile, int threads)
    : queue_(queue) {
  threads_.push_back(std::make_unique<Thread>(name + "-watch", [this, queue, informers] {
    while (!stopping_.load()) {
      for (Informer* informer : informers) informer->Maintain();
      queue->Measure();
      absl::SleepFor(kMaintainPeriod);
    }
  }));
  for (int i = 0; i < threads; ++i) {
    threads_.push_back(std::make_unique<Thread>(name, [this, name, queue, informers, reconcile] {
      while (!stopping_.load()) {
        if (HaveSynced(informers)) {
          Step(name, queue, reconcile, absl::Seconds(1));
        } else {
          absl::SleepFor(absl::Milliseconds(5));
        }
      }
    }));
  }
}

ControllerLoop::~ControllerLoop() {
  stopping_.store(true);
  queue_->ShutDown();
  threads_.clear();
}

std::string KeyOfObject(const Json& object) {
  return absl::StrCat(NamespaceOf(object), "/", NameOf(object));
}

std::pair<std::string, std::string> SplitKey(const std::string& key) {
  const size_t slash = key.find('/');
  if (slash == std::string::npos) return {"", key};
  return {key.substr(0, slash), key.substr(slash + 1)};
}

}  // namespace weft::platform
