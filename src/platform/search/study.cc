// SPDX-License-Identifier: Apache-2.0
#include "platform/search/study.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"

namespace weft::platform {
namespace {

// True when `a` is nowhere worse than `b` and somewhere better.
bool Beats(const std::vector<double>& a, const std::vector<double>& b) {
  bool is_better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    is_better = is_better || a[i] < b[i];
  }
  return is_better;
}

}  // namespace

StatusOr<std::unique_ptr<Study>> Study::Create(SearchSpace space, const StudyOptions& options) {
  for (const std::vector<double>& point : options.first_points) {
    if (point.size() != space.parameters.size()) {
      return InvalidArgument("a first point has ", point.size(), " values for ",
                             space.parameters.size(), " parameters");
    }
  }
  std::unique_ptr<Study> study(new Study(std::move(space), options));
  WEFT_ASSIGN_OR_RETURN(study->sampler_, MakeSampler(options.algorithm, study->space_,
                                                     {options.seed, options.settings}));
  return study;
}

Study::Study(SearchSpace space, const StudyOptions& options)
    : space_(std::move(space)), options_(options) {}

StatusOr<SearchTrial> Study::Ask() {
  if (trials_.size() < options_.first_points.size()) {
    std::vector<double> values = options_.first_points[trials_.size()];
    space_.DropInactive(&values);
    Add(std::move(values), -1);
    return trials_.back();
  }
  if (has_violations_) WEFT_RETURN_IF_ERROR(RankViolations());
  WEFT_ASSIGN_OR_RETURN(
      const NextPoint next,
      sampler_->Suggest(static_cast<int64_t>(trials_.size()), observations_, finished_));
  Add(space_.At(next.position), next.parent);
  return trials_.back();
}

Status Study::Replay(std::vector<double> values, int64_t parent) {
  if (values.size() != space_.parameters.size()) {
    return InvalidArgument("a trial has ", values.size(), " values for ", space_.parameters.size(),
                           " parameters");
  }
  Add(std::move(values), parent);
  return absl::OkStatus();
}

void Study::ReplayLost() {
  Add(std::vector<double>(space_.parameters.size(), std::nan("")), -1);
  trials_.back().state = SearchTrial::State::kFailed;
  observations_.back().has_failed = true;
}

void Study::Add(std::vector<double> values, int64_t parent) {
  TrialPoint observation;
  observation.number = static_cast<int64_t>(trials_.size());
  observation.parent = parent;
  for (size_t i = 0; i < values.size(); ++i) {
    // Of what was run, not of what was suggested: grids and whole numbers round.
    observation.position.push_back(std::isnan(values[i]) ? 0.5
                                                         : space_.parameters[i].ToUnit(values[i]));
  }
  observations_.push_back(std::move(observation));
  SearchTrial trial;
  trial.number = static_cast<int64_t>(trials_.size());
  trial.values = std::move(values);
  trial.parent = parent;
  trials_.push_back(std::move(trial));
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

Status Study::Tell(int64_t number, const TrialResult& result) {
  if (result.objectives.size() != 1 + options_.also_maximize.size()) {
    return InvalidArgument("trial ", number, " has ", result.objectives.size(), " results for ",
                           1 + options_.also_maximize.size(), " objectives");
  }
  for (const double objective : result.objectives) {
    if (!std::isfinite(objective)) return Fail(number);
  }
  WEFT_ASSIGN_OR_RETURN(SearchTrial * trial, Running(number));
  trial->state = SearchTrial::State::kSucceeded;
  trial->objective = result.objectives[0];
  trial->more_objectives.assign(result.objectives.begin() + 1, result.objectives.end());
  trial->violation = std::max(0.0, result.violation);
  TrialPoint* const found = &observations_[static_cast<size_t>(number)];
  found->is_finished = true;
  found->violation = trial->violation;
  for (size_t i = 0; i < result.objectives.size(); ++i) {
    const bool maximizes = i == 0 ? options_.maximize : options_.also_maximize[i - 1];
    found->losses.push_back(maximizes ? -result.objectives[i] : result.objectives[i]);
  }
  found->loss = found->losses[0];
  has_violations_ = has_violations_ || found->violation > 0;
  finished_.push_back(static_cast<int>(number));
  return absl::OkStatus();
}

Status Study::Fail(int64_t number) {
  WEFT_ASSIGN_OR_RETURN(SearchTrial * trial, Running(number));
  trial->state = SearchTrial::State::kFailed;
  observations_[static_cast<size_t>(number)].has_failed = true;
  return absl::OkStatus();
}

// For samplers that compare one number: what breaks a constraint is worse than all that do not,
// and the worse the more it does. A sampler that has learned from other losses begins anew.
Status Study::RankViolations() {
  double worst = -HUGE_VAL, best = HUGE_VAL;
  for (const TrialPoint& point : observations_) {
    if (!point.is_finished || point.violation > 0) continue;
    worst = std::max(worst, point.losses[0]);
    best = std::min(best, point.losses[0]);
  }
  if (worst < best) worst = best = 0;
  const double scale = worst > best ? worst - best : 1;
  for (TrialPoint& point : observations_) {
    if (!point.is_finished || point.violation <= 0) continue;
    point.loss = worst + scale * (0.1 + point.violation / (1 + point.violation));
  }
  WEFT_ASSIGN_OR_RETURN(
      sampler_, MakeSampler(options_.algorithm, space_, {options_.seed, options_.settings}));
  return absl::OkStatus();
}

const SearchTrial* Study::best() const {
  const SearchTrial* best = nullptr;
  const auto is_better = [&](const SearchTrial& a, const SearchTrial& b) {
    if (a.violation != b.violation) return a.violation < b.violation;
    return options_.maximize ? a.objective > b.objective : a.objective < b.objective;
  };
  for (const SearchTrial& trial : trials_) {
    if (trial.state != SearchTrial::State::kSucceeded) continue;
    if (best == nullptr || is_better(trial, *best)) best = &trial;
  }
  return best;
}

std::vector<int64_t> Study::ParetoFront() const {
  std::vector<int64_t> front;
  for (const int at : finished_) {
    const TrialPoint& point = observations_[static_cast<size_t>(at)];
    if (point.violation > 0) continue;
    const bool is_beaten = absl::c_any_of(finished_, [&](int other) {
      const TrialPoint& rival = observations_[static_cast<size_t>(other)];
      return rival.violation <= 0 && Beats(rival.losses, point.losses);
    });
    if (!is_beaten) front.push_back(point.number);
  }
  absl::c_sort(front);
  return front;
}

// Slices along the last objective: While, Hingston, Barone and Huband, "A faster algorithm for
// calculating hypervolume", 2006, without its ordering.
double Hypervolume(std::vector<std::vector<double>> points, const std::vector<double>& reference) {
  const size_t n = reference.size();
  points.erase(std::remove_if(points.begin(), points.end(),
                              [&](const std::vector<double>& p) {
                                for (size_t i = 0; i < n; ++i) {
                                  if (p.size() != n || !(p[i] < reference[i])) return true;
                                }
                                return false;
                              }),
               points.end());
  if (points.empty() || n == 0) return 0;
  absl::c_sort(points, [](const auto& a, const auto& b) { return a.back() < b.back(); });
  if (n == 1) return reference[0] - points.front()[0];
  const std::vector<double> rest(reference.begin(), reference.end() - 1);
  std::vector<std::vector<double>> slice;
  double volume = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double upper = i + 1 < points.size() ? points[i + 1].back() : reference.back();
    slice.emplace_back(points[i].begin(), points[i].end() - 1);
    if (upper > points[i].back()) volume += (upper - points[i].back()) * Hypervolume(slice, rest);
  }
  return volume;
}

}  // namespace weft::platform
