// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/simulator.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/clock.h"

namespace weft::platform {
namespace {

// So many points a plot gets at most.
constexpr size_t kMostPoints = 600;
// Fewer than this are all looked at.
constexpr int kManyNodes = 256;

struct End {
  double at = 0;
  int job = 0;
  int generation = 0;
  bool operator>(const End& other) const {
    return at != other.at ? at > other.at : job > other.job;
  }
};

struct JobState {
  Dispatcher::Id id = -1;
  int generation = 0;  // of its starts
  double factor = 1;   // by which its place makes it longer
  double begun = -1;
  double ended = -1;
};

// The part of the pairs of pods that are on different nodes.
double PartApart(const std::vector<Place>& places) {
  const auto count = static_cast<double>(places.size());
  if (places.size() < 2) return 0;
  std::vector<int> nodes;
  for (const Place& place : places) nodes.push_back(place.node);
  std::sort(nodes.begin(), nodes.end());
  double together = 0;
  for (size_t i = 0; i < nodes.size();) {
    size_t end = i;
    while (end < nodes.size() && nodes[end] == nodes[i]) ++end;
    together += static_cast<double>((end - i) * (end - i - 1));
    i = end;
  }
  return 1 - together / (count * (count - 1));
}

double PartOf(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

class Simulation {
 public:
  Simulation(const std::vector<TraceJob>& jobs, const SimulationOptions& options,
             std::unique_ptr<Order> order, std::unique_ptr<PlacementPolicy> placement)
      : jobs_(jobs),
        options_(options),
        order_(std::move(order)),
        placement_(std::move(placement)),
        states_(jobs.size()) {}

  SimulationResult Run(const std::vector<NodeDescription>& nodes) {
    const RealClock clock;
    const absl::Duration begun = clock.Monotonic();
    for (const NodeDescription& node : nodes)
      state_.SetNode(std::make_shared<NodeDescription>(node));
    Dispatcher::Options options;
    options.order = order_.get();
    options.placement = placement_.get();
    options.state = &state_;
    options.quotas = &quotas_;
    options.backfill = options_.policy.backfill;
    options.spared = options_.spared;
    options.depth = 100;
    if (state_.node_count() > kManyNodes) options.most_candidates = options_.most_candidates;
    std::vector<std::shared_ptr<const PodNeeds>> expected;
    for (const TraceJob& job : jobs_) expected.push_back(job.needs);
    placement_->Expect(expected);
    Dispatcher dispatcher(options);
    dispatcher.CountCapacity();
    has_gpus_ = dispatcher.capacity().of[2] > 0;
    Loop(&dispatcher);
    SimulationResult result = Summarise(dispatcher);
    result.wall_seconds = absl::ToDoubleSeconds(clock.Monotonic() - begun);
    return result;
  }

 private:
  void Loop(Dispatcher* dispatcher) {
    size_t next = 0;
    double change = kForever;
    while (next < jobs_.size() || !ends_.empty()) {
      const double submit = next < jobs_.size() ? jobs_[next].submitted : kForever;
      const double end = ends_.empty() ? kForever : ends_.top().at;
      const double now = std::min({submit, end, change});
      Account(*dispatcher, now);
      // Everything of one moment before the decision.
      while (next < jobs_.size() && jobs_[next].submitted <= now) Submit(dispatcher, next++, now);
      while (!ends_.empty() && ends_.top().at <= now) {
        Finish(dispatcher, ends_.top(), now);
        ends_.pop();
      }
      Decide(dispatcher, now);
      change = order_->preempts() && dispatcher->waiting_count() > 0 ? dispatcher->NextChange(now)
                                                                     : kForever;
      if (change <= now) change = std::nextafter(now, kForever);
    }
  }

  void Submit(Dispatcher* dispatcher, size_t index, double now) {
    const TraceJob& job = jobs_[index];
    Workload workload;
    workload.queue = job.queue.empty() ? 0 : quotas_.Add(job.queue);
    workload.submitted = job.submitted;
    workload.left = job.duration;
    workload.pods.assign(static_cast<size_t>(job.pods), job.needs);
    JobState& state = states_[index];
    state.id = dispatcher->Add(std::move(workload), now);
    if (by_id_.size() <= static_cast<size_t>(state.id))
      by_id_.resize(static_cast<size_t>(state.id) + 1);
    by_id_[static_cast<size_t>(state.id)] = static_cast<int>(index);
    ++events_;
  }

  void Finish(Dispatcher* dispatcher, const End& end, double now) {
    JobState& state = states_[static_cast<size_t>(end.job)];
    if (state.generation != end.generation || state.id < 0) return;
    dispatcher->Remove(state.id, now);
    state.id = -1;
    state.ended = now;
    ++events_;
  }

  void Decide(Dispatcher* dispatcher, double now) {
    dispatcher->Decide(now, &outcome_);
    for (const Dispatcher::Id id : outcome_.displaced) {
      JobState& state = states_[static_cast<size_t>(by_id_[static_cast<size_t>(id)])];
      ++state.generation;
      const double left = dispatcher->workload(id).left;
      dispatcher->SetLeft(id, left / state.factor + options_.restart_cost, now);
      state.factor = 1;
      ++displaced_;
      ++events_;
    }
    for (const Dispatcher::Id id : outcome_.started) {
      const Workload& workload = dispatcher->workload(id);
      // Displaced again in the same decision.
      if (!workload.is_running()) continue;
      const int job = by_id_[static_cast<size_t>(id)];
      JobState& state = states_[static_cast<size_t>(job)];
      if (state.begun < 0) state.begun = now;
      last_start_ = now;
      if (options_.communication > 0 && workload.pods.size() > 1) {
        state.factor = 1 + options_.communication * PartApart(workload.places);
        dispatcher->SetLeft(id, workload.left * state.factor, now);
      }
      ends_.push({now + LeftAt(dispatcher->workload(id), now), job, ++state.generation});
      ++events_;
    }
  }

  // What was in use since the last event.
  void Account(const Dispatcher& dispatcher, double now) {
    if (first_ < 0) first_ = now;
    const size_t resource = has_gpus_ ? 2 : 0;
    const auto used = static_cast<double>(dispatcher.used().of[resource]);
    const double passed = now - last_;
    if (last_start_ == last_) used_until_start_ = used_time_;
    used_time_ += used * passed;
    if (dispatcher.waiting_count() > 0) {
      waiting_time_ += passed;
      free_while_waiting_ +=
          (static_cast<double>(dispatcher.capacity().of[resource]) - used) * passed;
    }
    const double part = used / std::max<double>(dispatcher.capacity().of[resource], 1);
    if (passed > 0 && (in_use_.empty() || in_use_.back().second != part))
      in_use_.emplace_back(last_, part);
    last_ = now;
  }

  SimulationResult Summarise(const Dispatcher& dispatcher) {
    SimulationResult result;
    result.policy = options_.policy.name;
    result.jobs = static_cast<int64_t>(jobs_.size());
    result.displaced = displaced_;
    result.events = events_;
    double waiting = 0;
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const JobState& state = states_[i];
      if (state.ended < 0) {
        ++result.never_ran;
        continue;
      }
      const double completion = state.ended - jobs_[i].submitted;
      result.completions.push_back(completion);
      waiting += completion - jobs_[i].duration;
      result.makespan = std::max(result.makespan, state.ended - first_);
      const double slowdown = completion / std::max(jobs_[i].duration, 1.0);
      sum += slowdown;
      squares += slowdown * slowdown;
    }
    std::sort(result.completions.begin(), result.completions.end());
    const auto count = static_cast<double>(result.completions.size());
    if (count > 0) {
      result.mean_completion =
          std::accumulate(result.completions.begin(), result.completions.end(), 0.0) / count;
      result.mean_waiting = waiting / count;
      result.fairness = squares > 0 ? sum * sum / (count * squares) : 1;
    }
    result.median_completion = PartOf(result.completions, 0.5);
    result.p95_completion = PartOf(result.completions, 0.95);
    const auto capacity = static_cast<double>(dispatcher.capacity().of[has_gpus_ ? 2 : 0]);
    const double until = last_start_ - first_;
    if (until > 0 && capacity > 0) result.utilisation = used_until_start_ / (capacity * until);
    if (waiting_time_ > 0 && capacity > 0)
      result.fragmentation = free_while_waiting_ / (capacity * waiting_time_);
    const size_t step = in_use_.size() / kMostPoints + 1;
    for (size_t i = 0; i < in_use_.size(); i += step) result.in_use.push_back(in_use_[i]);
    return result;
  }

  const std::vector<TraceJob>& jobs_;
  const SimulationOptions& options_;
  const std::unique_ptr<Order> order_;
  const std::unique_ptr<PlacementPolicy> placement_;
  ClusterState state_;
  Quotas quotas_;
  std::vector<JobState> states_;
  std::vector<int> by_id_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Dispatcher::Outcome outcome_;
  bool has_gpus_ = false;
  int64_t events_ = 0;
  int64_t displaced_ = 0;
  double first_ = -1;
  double last_ = 0;
  double last_start_ = 0;
  double used_time_ = 0;
  double used_until_start_ = 0;
  double waiting_time_ = 0;
  double free_while_waiting_ = 0;
  std::vector<std::pair<double, double>> in_use_;
};

StatusOr<std::unique_ptr<PlacementPolicy>> PlacementOf(const SimulationOptions& options) {
  if (options.policy.placement == "random") return MakeRandomPlacement(options.seed);
  return MakePlacement(options.policy.placement);
}

}  // namespace

StatusOr<SimulatedPolicy> ParsePolicy(absl::string_view text) {
  SimulatedPolicy policy;
  policy.name = std::string(text);
  const std::pair<std::string, std::string> plus = absl::StrSplit(text, absl::MaxSplits('+', 1));
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(plus.first, absl::MaxSplits('/', 1));
  policy.order = parts.first;
  if (!parts.second.empty()) policy.placement = parts.second;
  WEFT_RETURN_IF_ERROR(MakeOrder(policy.order).status());
  WEFT_RETURN_IF_ERROR(MakePlacement(policy.placement).status());
  policy.backfill = policy.order == "fifo" ? Backfill::kStrict : Backfill::kGreedy;
  if (plus.second == "strict") {
    policy.backfill = Backfill::kStrict;
  } else if (plus.second == "easy") {
    policy.backfill = Backfill::kEasy;
  } else if (plus.second == "greedy") {
    policy.backfill = Backfill::kGreedy;
  } else if (absl::StrContains(text, '+')) {
    return InvalidArgument("After + in '", text, "' strict, easy or greedy is allowed");
  }
  return policy;
}

StatusOr<SimulationResult> Simulate(const std::vector<NodeDescription>& nodes,
                                    const std::vector<TraceJob>& jobs,
                                    const SimulationOptions& options) {
  WEFT_ASSIGN_OR_RETURN(auto order, MakeOrder(options.policy.order));
  WEFT_ASSIGN_OR_RETURN(auto placement, PlacementOf(options));
  return Simulation(jobs, options, std::move(order), std::move(placement)).Run(nodes);
}

StatusOr<FillResult> Fill(const std::vector<NodeDescription>& nodes,
                          const std::vector<TraceJob>& jobs, double load,
                          const SimulationOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const auto placement, PlacementOf(options));
  ClusterState state;
  for (const NodeDescription& node : nodes) state.SetNode(std::make_shared<NodeDescription>(node));
  FillResult result;
  result.policy = options.policy.name;
  const auto all = static_cast<double>(state.gpu_thousandths());
  if (all <= 0 || jobs.empty()) return InvalidArgument("There are no GPUs to fill, or no jobs");
  std::vector<std::shared_ptr<const PodNeeds>> expected;
  int64_t offered = 0;
  for (const TraceJob& job : jobs) {
    expected.push_back(job.needs);
    offered += job.pods * job.needs->gpu.count;
  }
  if (offered == 0) return InvalidArgument("No job of the trace asks for GPUs");
  placement->Expect(expected);
  std::mt19937_64 random(options.seed);
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const PlaceOptions place = {placement.get(), 0};
  double asked = 0;
  size_t at = order.size();
  while (asked < load * all) {
    // All of them in random order, then again.
    if (at == order.size()) {
      std::shuffle(order.begin(), order.end(), random);
      at = 0;
    }
    const TraceJob& job = jobs[order[at++]];
    std::vector<Place> places;
    const std::vector<std::shared_ptr<const PodNeeds>> pods(static_cast<size_t>(job.pods),
                                                            job.needs);
    if (!PlaceGang(pods, place, &state, &places)) ++result.failed;
    asked += static_cast<double>(job.pods * job.needs->gpu.count * job.needs->gpu.thousandths);
    const double left = static_cast<double>(state.free_gpu_thousandths()) / all;
    if (result.unallocated.empty() || asked / all > result.unallocated.back().first + 0.005)
      result.unallocated.emplace_back(asked / all, left);
    result.at_end = left;
  }
  return result;
}

}  // namespace weft::platform
