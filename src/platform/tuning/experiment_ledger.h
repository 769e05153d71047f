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
#include "platform/tuning/trial_book.h"

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

// Borrows both arguments.
class ExperimentLedger {
 public:
  ExperimentLedger(const Experiment& experiment, TrialBook* book);

  int64_t CountOf(TrialState state) const { return book_->CountOf(state); }
  int64_t all() const { return book_->count(); }
  int64_t active() const;
  int64_t completed() const { return all() - active(); }
  int64_t failed() const;
  int64_t next_number() const { return book_->next_number(); }
  bool reaches_goal() const { return reaches_goal_; }
  bool Has(int64_t number) const { return book_->Find(number) != nullptr; }
  // There was once a trial of this number.
  bool HasSeen(int64_t number) const { return book_->HasSeen(number); }

  using Entry = TrialBook::Entry;
  // Trials that run now and do not have these rules yet.
  std::vector<std::string> Outdated(const Json& rules) const;

  // Lists, counts and the best trial, as Katib's status has them. Lists end with their first
  // thousand names.
  void WriteTo(Json* status) const;

  // The study as it stands: `count` suggestions were given, of which `pending` are no trials yet.
  // `generation` is the experiment's. The book keeps the study, and goes on with it the next time
  // if what was asked of it meanwhile became trials.
  StatusOr<Study*> MakeStudy(int64_t count, const std::vector<GivenSuggestion>& pending,
                             int64_t generation) const;

  // For trials that run now.
  std::vector<StoppingRule> Rules() const;

 private:
  // With several objectives: those that no other one beats in all of them, by number.
  std::vector<const Entry*> FindFront() const;
  // Trials that the study does not know yet, up to `count`.
  Status ReplayUpTo(int64_t count, const std::vector<GivenSuggestion>& pending, Study* study) const;
  // What came of these trials, in the order of their ends. False: the study was told of a later
  // end already.
  StatusOr<bool> TellEnds(const std::vector<int64_t>& numbers) const;

  const Experiment& experiment_;
  TrialBook* const book_;
  const Entry* best_ = nullptr;
  bool reaches_goal_ = false;
};

}  // namespace weft::platform
