// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "platform/jobs/job_status.h"
#include "platform/jobs/task_objects.h"
#include "platform/jobs/worker_room.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_view.h"
#include "platform/placement/scale.h"

namespace weft::platform {
namespace {

constexpr char kScaling[] = "scaling";
constexpr char kWanted[] = "wanted";
// A rate is taken over no fewer steps and seconds than these.
constexpr int64_t kWindowSteps = 20;
constexpr double kWindowSeconds = 10;
// Workers come and go without a restart of the others; those that come load their program.
constexpr double kChangeSeconds = 10;
// What a worker takes from the others (Gunther's law) until two counts were measured, and how much
// that may be.
constexpr double kContention = 0.03;
constexpr double kMostContention = 1;
constexpr double kContentionStep = 0.01;
// Of jobs that do not tell how many steps they have.
constexpr double kManySteps = 1e12;

std::optional<double> NumberOf(const Json& object, absl::string_view name) {
  double number = 0;
  if (!absl::SimpleAtod(StringField(object, {name}), &number) || number <= 0) return std::nullopt;
  return number;
}

std::optional<absl::Time> TimeOf(const Json& object, absl::string_view name) {
  const absl::Time time = ParseObjectTime(StringField(object, {name}));
  if (time == absl::InfinitePast()) return std::nullopt;
  return time;
}

void BeginWindow(const Json& progress, Json* scaling) {
  scaling->Set("sinceStep", IntField(progress, {"step"}));
  scaling->Set("sinceTime", StringField(progress, {"time"}));
}

// Steps a second of the window, or what the program says itself, once that is long enough; then
// another window begins.
std::optional<double> MeasuredRate(const Json& progress, Json* scaling) {
  const std::optional<absl::Time> since = TimeOf(*scaling, "sinceTime");
  const std::optional<absl::Time> now = TimeOf(progress, "time");
  const int64_t first = IntField(*scaling, {"sinceStep"}, -1);
  const int64_t step = IntField(progress, {"step"}, -1);
  if (!now.has_value() || step < 0) return std::nullopt;
  if (!since.has_value() || first < 0 || step < first) {
    BeginWindow(progress, scaling);
    return std::nullopt;
  }
  const double seconds = absl::ToDoubleSeconds(*now - *since);
  if (step - first < kWindowSteps || seconds < kWindowSeconds) return std::nullopt;
  BeginWindow(progress, scaling);
  const Json* const told = FindField(progress, {"metrics", "examples_per_second"});
  const double rate = told == nullptr ? 0 : told->AsDouble().value_or(0);
  return rate > 0 ? rate : static_cast<double>(step - first) / seconds;
}

double RateByLaw(int64_t workers, double contention) {
  const auto n = static_cast<double>(workers);
  return n / (1 + contention * (n - 1));
}

// That by which the law is nearest to all rates that were measured, whatever one worker's is.
double FitContention(const std::map<int64_t, double>& rates) {
  if (rates.size() < 2) return kContention;
  double best = kContention, least = std::numeric_limits<double>::infinity();
  for (double contention = 0; contention <= kMostContention; contention += kContentionStep) {
    double sum = 0, squares = 0;
    for (const auto& [workers, rate] : rates) {
      const double off = std::log(rate / RateByLaw(workers, contention));
      sum += off;
      squares += off * off;
    }
    const double error = squares - sum * sum / static_cast<double>(rates.size());
    if (error < least) std::tie(best, least) = std::pair(contention, error);
  }
  return best;
}

std::vector<ScaleOption> OptionsOf(const TfJob& job, const TaskPrices& prices, const Json& rates) {
  int servers = 0;
  for (const ReplicaSpec& replica : job.replicas) {
    if (replica.type == ReplicaType::kWorker) continue;
    // A pod is paid for, however many parameter servers share it.
    servers += static_cast<int>(replica.server_pods.has_value() ? replica.server_pods->count
                                                                : replica.replicas);
  }
  std::map<int64_t, double> measured;
  for (int64_t n = job.elastic->min_replicas; n <= job.elastic->max_replicas; ++n) {
    if (const std::optional<double> rate = NumberOf(rates, absl::StrCat(n))) measured[n] = *rate;
  }
  const double contention = FitContention(measured);
  std::vector<ScaleOption> options;
  for (int64_t n = job.elastic->min_replicas; n <= job.elastic->max_replicas; ++n) {
    const auto known = measured.find(n);
    options.push_back(
        {.workers = static_cast<int>(n),
         .servers = servers,
         .dollars_per_hour = static_cast<double>(n) * prices.worker + servers * prices.server,
         .predicted = RateByLaw(n, contention),
         .measured = known == measured.end() ? 0 : known->second});
  }
  return options;
}

ScaleState StateOf(const TfJob& job, const Json& scaling, int64_t workers, absl::Time now) {
  ScaleState state{.current = static_cast<size_t>(workers - job.elastic->min_replicas),
                   .savings = static_cast<int>(IntField(scaling, {"changes"})),
                   .changes = static_cast<int>(IntField(scaling, {"changes"}))};
  if (const std::optional<absl::Time> changed = TimeOf(scaling, "changedTime"))
    state.since_change = absl::ToDoubleSeconds(now - *changed);
  return state;
}

// The count that is worth more than the one that runs.
std::optional<int64_t> BetterCount(const TfJob& job, const std::vector<ScaleOption>& options,
                                   const Json& progress, const ScaleState& state) {
  const int64_t steps = IntField(progress, {"steps"});
  const double left = static_cast<double>(steps - IntField(progress, {"step"}));
  ScaleRules rules;
  rules.restart_seconds = kChangeSeconds;
  rules.settle_seconds = static_cast<double>(job.elastic->settle_seconds);
  rules.most_savings = rules.most_changes;
  const ScaleGoal goal{.examples = steps > 0 ? std::max(left, 0.0) : kManySteps,
                       .objective = ScaleGoal::Objective::kTime,
                       .least_gain = *job.elastic->least_gain};
  const StatusOr<ScaleDecision> decision = DecideScale(options, goal, state, rules);
  if (!decision.ok() || !decision->is_change) return std::nullopt;
  return job.elastic->min_replicas + static_cast<int64_t>(decision->option);
}

// `counter` counts the decisions of a kind.
void Want(int64_t workers, const char* counter, const std::string& why, absl::Time now,
          Json* scaling) {
  scaling->Set(kWanted, workers);
  scaling->Set(counter, IntField(*scaling, {counter}) + 1);
  scaling->Set("changedTime", FormatObjectTime(now));
  scaling->Set("reason", why);
}

}  // namespace

bool IsScaled(const TfJob& job) {
  return job.elastic.has_value() && job.elastic->least_gain.has_value() &&
         job.Find(ReplicaType::kWorker) != nullptr;
}

std::optional<int64_t> WantedWorkers(const TfJob& job, const Json& object) {
  if (!IsScaled(job) || FindField(object, {"status", "completionTime"}) != nullptr)
    return std::nullopt;
  const int64_t wanted = IntField(object, {"status", kScaling, kWanted}, -1);
  const bool is_allowed =
      wanted >= job.elastic->min_replicas && wanted <= job.elastic->max_replicas;
  if (!is_allowed || wanted == job.Find(ReplicaType::kWorker)->replicas) return std::nullopt;
  return wanted;
}

Json WithWorkers(const TfJob& job, const Json& object, int64_t workers) {
  const std::string& path = job.Find(ReplicaType::kWorker)->path;
  Json changed = object;
  SetField(&changed, {"spec", "tfReplicaSpecs", path.substr(path.rfind('.') + 1), "replicas"},
           workers);
  return changed;
}

TaskPrices PricesOfTasks(const std::vector<ObjectPtr>& pods,
                         const std::map<std::string, double>& prices, PackingNodes* nodes) {
  if (prices.empty()) return {};
  std::optional<double> worker, server;
  bool has_servers = false;
  for (const ObjectPtr& pod : pods) {
    const bool is_worker = PodView(*pod).label(kTypeLabel) == ReplicaTypeName(ReplicaType::kWorker);
    has_servers = has_servers || !is_worker;
    std::optional<double>* const known = is_worker ? &worker : &server;
    if (!known->has_value()) *known = PriceOfPlace(*pod, prices, nodes);
  }
  if (!worker.has_value() || (has_servers && !server.has_value())) return {};
  return {.worker = *worker, .server = server.value_or(0)};
}

std::string DecideWorkers(const TfJob& job, const std::function<ScaleSurroundings()>& surroundings,
                          absl::Time now, Json* status) {
  const Json* const progress = status->Find("progress");
  if (!IsScaled(job) || progress == nullptr || status->Find("completionTime") != nullptr) return "";
  const int64_t workers = job.Find(ReplicaType::kWorker)->replicas;
  const Json* const known = status->Find(kScaling);
  Json scaling = known == nullptr ? Json::MakeObject() : *known;
  const int64_t active =
      IntField(*status, {"replicaStatuses", TypeSpelling(ReplicaType::kWorker), "active"});
  std::string told;
  if (IntField(scaling, {"workers"}, -1) != workers || active != workers) {
    // Others than those that were measured, or not all of them: a new window.
    scaling.Set("workers", workers);
    for (const char* name : {kWanted, "sinceStep", "sinceTime"}) scaling.Erase(name);
  } else if (const std::optional<double> rate = MeasuredRate(*progress, &scaling)) {
    SetField(&scaling, {"rates", absl::StrCat(workers)}, absl::StrFormat("%.6g", *rate));
    const ScaleSurroundings around = surroundings();
    const ScaleState state = StateOf(job, scaling, workers, now);
    const bool has_just_changed =
        scaling.Find("changedTime") != nullptr &&
        state.since_change < static_cast<double>(job.elastic->settle_seconds);
    const int64_t wanted = has_just_changed ? workers : workers - around.wanted_by_others;
    if (wanted < workers) {
      told = absl::StrFormat("Others wait for the places of %d of %d workers; there are %d now.",
                             workers - wanted, workers, wanted);
      Want(wanted, "yields", told, now, &scaling);
    } else if (const std::optional<int64_t> better = BetterCount(
                   job, OptionsOf(job, around.prices, *scaling.Find("rates")), *progress, state)) {
      told = absl::StrFormat("%d workers bring %.4g a second; from now on there are %d.", workers,
                             *rate, *better);
      Want(*better, "changes", told, now, &scaling);
    }
  }
  status->Set(kScaling, std::move(scaling));
  return told;
}

}  // namespace weft::platform
