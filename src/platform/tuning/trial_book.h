// SPDX-License-Identifier: Apache-2.0
// What the controller of experiments remembers of the trials of one: little of each, kept up to
// date by their changes, so that a look at a hundred thousand of them reads none anew.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

#include "platform/object/experiment.h"
#include "platform/search/study.h"
#include "platform/store/object_store.h"
#include "platform/tuning/trial_view.h"

namespace weft::platform {

// A trial, but for its number and name.
struct TrialRecord {
  // Names that all trials of an experiment have are held once.
  struct Assignment {
    const std::string* name = nullptr;
    std::string value;
    bool operator==(const Assignment& other) const = default;
  };
  struct Metric {
    const std::string* name = nullptr;
    std::string min, max, latest;
    bool operator==(const Metric& other) const = default;
  };
  TrialState state = TrialState::kPending;
  int64_t parent = -1;
  absl::Time completion = absl::InfinitePast();
  std::vector<Assignment> assignments;
  std::vector<Metric> observed;
  std::unique_ptr<MetricSeries> reported;  // where early stopping learns from it; else null
  Json rules;                              // of early stopping, as it has them; while it runs

  // By an objective that the book was asked about.
  std::optional<TrialResult> result;

  bool is_over() const { return state != TrialState::kPending && state != TrialState::kRunning; }
  Assignments ReadAssignments() const;
  Json ObservationJson() const;
};

// All that the objective asks for; none where something of it was not observed.
std::optional<TrialResult> ResultOf(const TrialRecord& record,
                                    const ExperimentObjective& objective);

// Note is thread-safe; all else is for one thread at a time.
class TrialBook {
 public:
  // By their numbers; of several with one number the first by its name counts.
  using Records = std::map<std::pair<int64_t, std::string>, TrialRecord>;
  using Entry = Records::value_type;
  struct ByNumber {
    bool operator()(const Entry* a, const Entry* b) const { return a->first < b->first; }
  };
  using Entries = std::set<const Entry*, ByNumber>;

  // A trial as it is now, or as it was before it went; one that terminates counts as gone.
  void Note(const Json& trial, bool is_gone);
  // What was noted until now counts from here on, by this objective.
  void CatchUp(const ExperimentObjective& objective);

  // Those that count, by their state.
  const std::map<TrialState, Entries>& by_state() const { return by_state_; }
  int64_t CountOf(TrialState state) const;
  int64_t count() const { return count_; }
  // The one behind the last that counts: 0 where there is none.
  int64_t next_number() const;
  // The one with the best objective, the first of several; null where none has a result.
  const Entry* FindBest();
  // Null when there is none.
  const Entry* Find(int64_t number) const;
  // In the order of their numbers.
  void ForEach(absl::FunctionRef<void(const Entry&)> visit) const;
  // There was once a trial of this number.
  bool HasSeen(int64_t number) const;

  // The study as it stands, once it is brought up to date; null where it has to be made anew since
  // what it was told is not so any more.
  struct LiveStudy {
    std::unique_ptr<Study> study;
    int64_t generation = -1;  // of the experiment
    absl::Time last_end = absl::InfinitePast();
    int64_t last_number = -1;  // that it was told, of those that ended then
  };
  LiveStudy& live_study() { return live_; }
  // Trials that came to their end since this was asked last.
  std::vector<int64_t> TakeEnded() { return std::exchange(ended_, {}); }

 private:
  struct Noted {
    std::pair<int64_t, std::string> key;
    std::optional<TrialRecord> record;  // none: it has gone
  };
  TrialRecord Read(const Json& trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const std::string* Shared(std::string name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Put(Noted noted);
  void PutRecord(Noted noted);
  // The one of this number that counts comes, or goes; null: nothing happens.
  void Count(const Entry* entry);
  void Uncount(const Entry* entry);
  bool IsBetter(const Entry& a, const Entry& b) const;

  absl::Mutex mutex_;
  std::vector<Noted> noted_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  Records records_;
  std::vector<bool> seen_;  // by number
  std::set<int64_t> seen_far_;
  std::vector<int64_t> ended_;
  std::map<TrialState, Entries> by_state_;
  int64_t count_ = 0;
  const Entry* best_ = nullptr;
  bool knows_best_ = true;
  ExperimentObjective objective_;  // that the results are by
  std::string objective_text_;
  LiveStudy live_;
};

}  // namespace weft::platform
