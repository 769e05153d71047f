// SPDX-License-Identifier: Apache-2.0
// Where the data of PersistentVolumeClaims lie.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/status.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/reconcile/informer.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// On one machine each claim is a folder <folder>/<namespace>/<claim>, made when a pod first wants
// it and gone with the claim. On a cluster (`folder` is empty) it is what its volume says, a folder
// of the node. Not thread-safe. Borrows all.
class VolumeClaims {
 public:
  using Key = std::pair<std::string, std::string>;  // namespace and name
  VolumeClaims(ObjectStore* store, const Clock* clock, EventRecorder* events, std::string folder);

  // NotFound and FailedPrecondition say what the pod waits for.
  StatusOr<std::string> FolderOf(const Key& claim);
  // The claim of an `ephemeral` volume, made when it is not there.
  StatusOr<std::string> FolderOfPod(const Json& pod, const Json& volume);
  // Removes the folders of claims that were deleted, once nobody uses them.
  void Tidy(const std::function<bool(const Key&)>& is_used);

 private:
  StatusOr<std::string> LocalFolder(const Json& claim);
  StatusOr<std::string> ClusterFolder(const Json& claim);
  std::string PathOf(const Key& claim) const;

  ObjectStore* const store_;
  EventRecorder* const events_;
  const std::string folder_;
  absl::Mutex mutex_;
  std::set<Key> gone_ ABSL_GUARDED_BY(mutex_);  // deleted, with their data still there
  std::unique_ptr<Informer> claims_;            // null on a cluster; last: it calls into the above
};

}  // namespace weft::platform
