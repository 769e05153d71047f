// SPDX-License-Identifier: Apache-2.0
#include "platform/search/study.h"

#include <cmath>

namespace weft::platform {

StatusOr<std::unique_ptr<Study>> Study::Create(SearchSpace space, const StudyOptions& options) {
  std::unique_ptr<Study> study(new Study(std::move(space), options));
  WEFT_ASSIGN_OR_RETURN(study->sampler_,
                        MakeSampler(options.algorithm, study->space_, options.seed));
  return study;
}

Study::Study(SearchSpace space, const StudyOptions& options)
    : space_(std::move(space)), options_(options) {}

StatusOr<SearchTrial> Study::Ask() {
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<double> position,
      sampler_->Suggest(static_cast<int64_t>(trials_.size()), observations_, finished_));
  std::vector<double> values;
  for (size_t i = 0; i < position.size(); ++i) {
    values.push_back(space_.parameters[i].FromUnit(position[i]));
  }
  Add(std::move(values));
  return trials_.back();
}

Status Study::Replay(std::vector<double> values) {
  if (values.size() != space_.parameters.size()) {
    return InvalidArgument("a trial has ", values.size(), " values for ", space_.parameters.size(),
                           " parameters");
  }
  Add(std::move(values));
  return absl::OkStatus();
}

void Study::Add(std::vector<double> values) {
  TrialPoint observation;
  for (size_t i = 0; i < values.size(); ++i) {
    // Of what was run, not of what was suggested: grids and whole numbers round.
    observation.position.push_back(space_.parameters[i].ToUnit(values[i]));
  }
  observation_of_.push_back(static_cast<int>(observations_.size()));
  observations_.push_back(std::move(observation));
  trials_.push_back({static_cast<int64_t>(trials_.size()), std::move(values)});
}

StatusOr<SearchTrial*> Study::Running(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(trials_.size())) {
    return NotFound("there is no trial ", number, " among ", trials_.size());
  }
  SearchTrial& trial = trials_[static_cast<size_t>(number)];
  if (trial.state != SearchTrial::State::kRunning) {
    return FailedPrecondition("trial ", number, " has ended already");
  }
  return &trial;
}

Status Study::Tell(int64_t number, double objective) {
  if (std::isnan(objective)) return Fail(number);
  WEFT_ASSIGN_OR_RETURN(SearchTrial * trial, Running(number));
  trial->state = SearchTrial::State::kSucceeded;
  trial->objective = objective;
  const int index = observation_of_[static_cast<size_t>(number)];
  observations_[static_cast<size_t>(index)].is_finished = true;
  observations_[static_cast<size_t>(index)].loss = options_.maximize ? -objective : objective;
  finished_.push_back(index);
  return absl::OkStatus();
}

Status Study::Fail(int64_t number) {
  WEFT_ASSIGN_OR_RETURN(SearchTrial * trial, Running(number));
  trial->state = SearchTrial::State::kFailed;
  // Samplers do not see it any more; those behind it move up.
  const int gone = observation_of_[static_cast<size_t>(number)];
  observations_.erase(observations_.begin() + gone);
  for (int& index : observation_of_) index = index == gone ? -1 : index > gone ? index - 1 : index;
  for (int& index : finished_) index -= index > gone ? 1 : 0;
  return absl::OkStatus();
}

const SearchTrial* Study::best() const {
  const SearchTrial* best = nullptr;
  for (const SearchTrial& trial : trials_) {
    if (trial.state != SearchTrial::State::kSucceeded) continue;
    if (best == nullptr || (options_.maximize ? trial.objective > best->objective
                                              : trial.objective < best->objective)) {
      best = &trial;
    }
  }
  return best;
}

}  // namespace weft::platform
