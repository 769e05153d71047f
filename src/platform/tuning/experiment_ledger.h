// SPDX-License-Identifier: Apache-2.0
// What the trials of an experiment add up to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "platform/object/experiment.h"
#include "platform/search/early_stopping.h"
#include "platform/search/study.h"
#include "platform/store/object_store.h"
#include "platform/tuning/trial_view.h"

namespace weft::platform {

// A suggestion that has been given out, as a Suggestion's status holds it.
struct GivenSuggestion {
  std::string name;  // of its trial
  int64_t number = 0;
  int64_t parent = -1;
  Assignments assignments;
  std::vector<std::pair<std::string, std::string>> labels;  // that its trial gets, of a service
  bool is_created = false;  // there was a trial of it: one that has gone was deleted by somebody

  Json ToJson() const;
  static GivenSuggestion FromJson(const Json& json);
};

class ExperimentLedger {
 public:
  // `trials` are those of the experiment; those that terminate count as gone.
  ExperimentLedger(const Experiment& experiment, const std::vector<ObjectPtr>& trials);

  int64_t CountOf(TrialState state) const;
  int64_t all() const { return static_cast<int64_t>(by_number_.size()); }
  int64_t active() const;
  int64_t completed() const { return all() - active(); }
  int64_t failed() const;
  int64_t next_number() const { return by_number_.empty() ? 0 : by_number_.rbegin()->first + 1; }
  bool reaches_goal() const { return reaches_goal_; }
  bool Has(int64_t number) const { return by_number_.count(number) > 0; }
  const std::map<int64_t, ObjectPtr>& by_number() const { return by_number_; }

  // Lists, counts and the best trial, as Katib's status has them. Lists end with their first
  // thousand names.
  void WriteTo(Json* status) const;

  // The study as it stands: `count` suggestions were given, of which `pending` are no trials yet.
  StatusOr<std::unique_ptr<Study>> MakeStudy(int64_t count,
                                             const std::vector<GivenSuggestion>& pending) const;

  // For trials that run now.
  std::vector<StoppingRule> Rules() const;

 private:
  // With several objectives: those that no other one beats in all of them, by number.
  std::vector<int64_t> FindFront() const;

  const Experiment& experiment_;
  std::map<int64_t, ObjectPtr> by_number_;
  std::map<TrialState, std::vector<int64_t>> by_state_;
  const Json* best_ = nullptr;
  bool reaches_goal_ = false;
};

}  // namespace weft::platform
