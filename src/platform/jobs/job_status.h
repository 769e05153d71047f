// SPDX-License-Identifier: Apache-2.0
// The status of a job, as the reference operator writes it: conditions and counts by type.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

// Of a job that had begun when it was changed into one that cannot be read.
inline constexpr char kInvalidCondition[] = "Invalid";

// Works on a copy of the object's status. Not thread-safe.
class JobStatus {
 public:
  // `kind` goes into reasons: "TFJobRunning".
  JobStatus(Json status, std::string kind, absl::Time now)
      : json_(std::move(status)), kind_(std::move(kind)), now_(now) {}

  bool IsTrue(absl::string_view type) const;
  bool IsFinished() const { return IsTrue("Succeeded") || IsTrue("Failed"); }
  bool HasCondition(absl::string_view type) const { return FindCondition(type) != nullptr; }
  // The condition that says so, or null.
  const Json* FindCondition(absl::string_view type) const;

  // Nothing changes after Failed, nor when status and reason are the same. Running and Restarting
  // replace each other; Succeeded and Failed make Running false. The reason is kind + `word`.
  void SetCondition(absl::string_view type, bool is_true, absl::string_view word,
                    absl::string_view message);
  void RemoveCondition(absl::string_view type);

  void SetTimeOnce(absl::string_view field);  // "startTime", "completionTime"
  void SetTime(absl::string_view field);
  absl::Time Time(absl::string_view field) const;  // InfinitePast when missing

  // Of one type, in its spelling ("Worker"). Zeros are left out.
  void SetCounts(const std::string& type, int64_t active, int64_t succeeded, int64_t failed,
                 const std::string& selector);
  // Of a type that the job no longer has.
  void DropCounts(const std::string& type);
  int64_t Count(const std::string& type, absl::string_view field) const;

  // Of ProgressOf and StalenessOf. No progress leaves what was known, with staleness added.
  void SetProgress(Json progress, Json staleness);

  // How often a task ("worker-1") was started again with a new pod. `uid` is the pod that failed:
  // told twice, counted once. A failure that comes `steady_after` or later after the one before it
  // begins a new row.
  void CountRestart(const std::string& task, const std::string& uid, absl::Duration steady_after);
  int64_t RestartsInARow(const std::string& task) const;
  int64_t Restarts(const std::string& task) const;
  int64_t AllRestarts() const;
  bool HasCounted(const std::string& task, const std::string& uid) const;
  // When the task's next pod may be made: one that has failed before waits, twice as long each
  // time, but for the first in a row.
  absl::Time NextStart(const std::string& task, absl::Duration first_wait,
                       absl::Duration longest_wait) const;

  // The limit of the run policy that ended the job.
  void SetExceeded(absl::string_view limit) { json_.Set("exceeded", limit); }
  bool HasExceeded() const { return json_.Find("exceeded") != nullptr; }

  const Json& json() const { return json_; }
  const std::string& kind() const { return kind_; }

 private:
  absl::Time LastRestart(const std::string& task) const;

  Json json_;
  const std::string kind_;
  const absl::Time now_;
};

}  // namespace weft::platform
