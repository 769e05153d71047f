// SPDX-License-Identifier: Apache-2.0
// What a controller has done that its informers have not seen yet.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"

namespace weft::platform {

// For each owner the objects that it has created or deleted, until they are seen: whoever plans
// before that plans on a stale copy. Expectations that are not met in five minutes are given up:
// the watch has lost them. Thread-safe.
class Expectations {
 public:
  explicit Expectations(const Clock* clock) : clock_(clock) {}

  // Before the call to the store. `name` is unique among what the owner makes: "pods/x"; a deletion
  // has the uid.
  void ExpectCreation(const std::string& owner, const std::string& name) {
    Expect(owner, "+" + name);
  }
  void ExpectDeletion(const std::string& owner, const std::string& uid) {
    Expect(owner, "-" + uid);
  }
  // Seen, or the call failed so that nothing will be.
  void Created(const std::string& owner, const std::string& name) { Meet(owner, "+" + name); }
  void Deleted(const std::string& owner, const std::string& uid) { Meet(owner, "-" + uid); }

  bool AreMet(const std::string& owner);
  void Forget(const std::string& owner);

 private:
  void Expect(const std::string& owner, const std::string& what);
  void Meet(const std::string& owner, const std::string& what);

  const Clock* const clock_;
  absl::Mutex mutex_;
  std::map<std::string, std::map<std::string, absl::Duration>> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::platform
