// SPDX-License-Identifier: Apache-2.0
#include "weft/master/local_masters.h"

#include <map>
#include <utility>

namespace weft::master {
namespace {

struct Registry {
  absl::Mutex mutex;
  std::map<std::string, std::shared_ptr<LocalMaster>> masters ABSL_GUARDED_BY(mutex);
};
Registry& TheRegistry() {
  static auto* const registry = new Registry();
  return *registry;
}

}  // namespace

Master* LocalMaster::Enter() {
  absl::MutexLock lock(&mutex_);
  if (master_ != nullptr) ++inside_;
  return master_;
}

void LocalMaster::Leave() {
  absl::MutexLock lock(&mutex_);
  --inside_;
}

void LocalMaster::Retire() {
  absl::MutexLock lock(&mutex_);
  master_ = nullptr;
  const auto empty = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return inside_ == 0; };
  mutex_.Await(absl::Condition(&empty));
}

LocalMasterRegistration::LocalMasterRegistration(std::string target, Master* master,
                                                 StepMetrics* metrics)
    : target_(std::move(target)), master_(std::make_shared<LocalMaster>(master, metrics)) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  registry.masters[target_] = master_;
}

LocalMasterRegistration::~LocalMasterRegistration() {
  {
    Registry& registry = TheRegistry();
    absl::MutexLock lock(&registry.mutex);
    const auto found = registry.masters.find(target_);
    if (found != registry.masters.end() && found->second == master_) registry.masters.erase(found);
  }
  master_->Retire();
}

std::shared_ptr<LocalMaster> FindLocalMaster(const std::string& target) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  const auto found = registry.masters.find(target);
  return found == registry.masters.end() ? nullptr : found->second;
}

}  // namespace weft::master
