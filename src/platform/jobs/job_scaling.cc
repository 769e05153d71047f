// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
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
#include "platform/placement/scale_law.h"

namespace weft::platform {
namespace {

constexpr char kScaling[] = "scaling";
constexpr char kWorkers[] = "workers";
constexpr char kServers[] = "servers";
constexpr char kWanted[] = "wanted";
constexpr char kWantedServers[] = "wantedServers";
constexpr char kSpent[] = "spent";
constexpr char kSpentTime[] = "spentTime";
// A rate is taken over no fewer steps and seconds than these.
constexpr int64_t kWindowSteps = 20;
constexpr double kWindowSeconds = 10;
// Of a window, in the rate of counts that were measured before.
constexpr double kNewsWeight = 0.25;
// Workers come and go without a restart of the others; those that come load their program. Servers
// go from pod to pod while steps go on.
constexpr double kChangeSeconds = 10;
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

struct MeasuredRate {
  double rate = 0;               // examples a second if the program tells them, else steps
  double examples_per_step = 1;  // in the same unit
};

// Of the window, once that is long enough; then another window begins.
std::optional<MeasuredRate> MeasureRate(const Json& progress, Json* scaling) {
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
  const double steps = static_cast<double>(step - first) / seconds;
  const Json* const told = FindField(progress, {"metrics", "examples_per_second"});
  const double rate = told == nullptr ? 0 : told->AsDouble().value_or(0);
  if (rate > 0) return MeasuredRate{rate, rate / steps};
  return MeasuredRate{steps, 1};
}

// Mostly what was measured of these counts before: windows are short.
void NoteRate(const std::string& name, double rate, Json* scaling) {
  const Json* const rates = scaling->Find("rates");
  const double before = rates == nullptr ? rate : NumberOf(*rates, name).value_or(rate);
  SetField(scaling, {"rates", name},
           absl::StrFormat("%.6g", before + kNewsWeight * (rate - before)));
}

// All counts that the job may have, and what is known of them.
class Choices {
 public:
  Choices(const TfJob& job, const TaskPrices& prices, const Json& scaling);

  const std::vector<ScaleOption>& options() const { return options_; }
  const JobCounts& counts(size_t option) const { return counts_[option]; }
  size_t current() const { return current_; }

 private:
  std::vector<JobCounts> counts_;
  std::vector<ScaleOption> options_;
  size_t current_ = 0;
};

// The part of the parameter servers that the busiest pod has.
double LoadOf(const TfJob& job, int64_t pods) {
  const ReplicaSpec* const servers = job.Find(ReplicaType::kPs);
  if (servers == nullptr || servers->replicas == 0 || pods == 0) return 0;
  const int64_t most = (servers->replicas + pods - 1) / pods;
  return static_cast<double>(most) / static_cast<double>(servers->replicas);
}

// With a given number of tasks in the busiest pod, the fewest pods; and those that there are.
std::vector<int64_t> ServerCounts(const TfJob& job) {
  const int64_t now = CountsOf(job).servers;
  if (!ScalesServers(job)) return {now};
  const ReplicaSpec& servers = *job.ElasticServers();
  std::vector<int64_t> counts;
  for (int64_t n = servers.server_pods->least; n <= servers.replicas; ++n) {
    if (n == now || counts.empty() || LoadOf(job, n) < LoadOf(job, counts.back()))
      counts.push_back(n);
  }
  return counts;
}

// How status.scaling.rates calls counts.
std::string NameOfCounts(const TfJob& job, const JobCounts& counts) {
  return job.ElasticServers() == nullptr ? absl::StrCat(counts.workers)
                                         : absl::StrCat(counts.workers, "+", counts.servers);
}

std::optional<JobCounts> CountsOfName(const TfJob& job, const std::string& name) {
  const size_t plus = name.find('+');
  JobCounts counts = CountsOf(job);
  if (!absl::SimpleAtoi(name.substr(0, plus), &counts.workers)) return std::nullopt;
  if (job.ElasticServers() == nullptr) return counts;
  if (plus == std::string::npos || !absl::SimpleAtoi(name.substr(plus + 1), &counts.servers))
    return std::nullopt;
  return counts;
}

Choices::Choices(const TfJob& job, const TaskPrices& prices, const Json& scaling) {
  const JobCounts now = CountsOf(job);
  int64_t others = 0;
  for (const ReplicaSpec& replica : job.replicas) {
    if (replica.type != ReplicaType::kWorker && replica.type != ReplicaType::kPs)
      others += replica.replicas;
  }
  std::vector<MeasuredScale> measured;
  static const Json* const kNone = new Json(Json::MakeObject());
  const Json* const found = scaling.Find("rates");
  const Json& rates = found == nullptr ? *kNone : *found;
  for (const JsonMember& member : rates.members()) {
    const std::optional<JobCounts> counts = CountsOfName(job, member.name);
    const std::optional<double> rate = NumberOf(rates, member.name);
    if (counts.has_value() && rate.has_value()) {
      measured.push_back({.workers = static_cast<double>(counts->workers),
                          .load = LoadOf(job, counts->servers),
                          .rate = *rate});
    }
  }
  const ScaleLaw law(measured, LoadOf(job, now.servers));
  const int64_t least = ScalesWorkers(job) ? job.elastic->min_replicas : now.workers;
  const int64_t most = ScalesWorkers(job) ? job.elastic->max_replicas : now.workers;
  for (const int64_t servers : ServerCounts(job)) {
    for (int64_t workers = least; workers <= most; ++workers) {
      const JobCounts counts = {.workers = workers, .servers = servers};
      if (counts == now) current_ = counts_.size();
      counts_.push_back(counts);
      const double beside = static_cast<double>(others + servers);
      const double hourly = static_cast<double>(workers) * prices.worker + beside * prices.server;
      options_.push_back({.workers = static_cast<int>(workers),
                          .servers = static_cast<int>(others + servers),
                          .dollars_per_hour = hourly,
                          .predicted = law.Rate(static_cast<double>(workers), LoadOf(job, servers)),
                          .measured = NumberOf(rates, NameOfCounts(job, counts)).value_or(0)});
    }
  }
}

const ChosenByGain& GainOf(const TfJob& job) {
  return ScalesWorkers(job) ? *job.elastic->chosen : *job.ElasticServers()->server_pods->chosen;
}

// The longer one, where both are chosen.
double SettleSeconds(const TfJob& job) {
  int64_t seconds = GainOf(job).settle_seconds;
  if (ScalesServers(job))
    seconds = std::max(seconds, job.ElasticServers()->server_pods->chosen->settle_seconds);
  return static_cast<double>(seconds);
}

// What is left to do, by when and for how much, in the unit of the rate.
ScaleGoal GoalOf(const TfJob& job, const Json& status, const Json& scaling,
                 double examples_per_step, absl::Time now) {
  const DistributionPolicy& policy = job.distribution;
  const auto step = static_cast<double>(IntField(status, {"progress", "step"}));
  auto steps = static_cast<double>(IntField(status, {"progress", "steps"}));
  if (steps <= 0 && policy.examples > 0 && examples_per_step > 0)
    steps = static_cast<double>(policy.examples) / examples_per_step;
  ScaleGoal goal{
      .examples = (steps > 0 ? std::max(steps - step, 0.0) : kManySteps) * examples_per_step,
      .objective = ScaleGoal::Objective::kTime,
      .least_gain = GainOf(job).least_gain};
  const std::optional<absl::Time> start = TimeOf(status, "startTime");
  if (steps > 0 && policy.deadline_seconds > 0 && start.has_value()) {
    goal.objective = ScaleGoal::Objective::kCost;
    goal.seconds =
        static_cast<double>(policy.deadline_seconds) - absl::ToDoubleSeconds(now - *start);
  }
  if (steps > 0 && policy.budget > 0 && scaling.Find(kSpent) != nullptr) {
    goal.objective = ScaleGoal::Objective::kCost;
    goal.dollars = policy.budget - NumberOf(scaling, kSpent).value_or(0);
  }
  return goal;
}

// Since the last look the job has paid for the counts that it has.
void Pay(const Json& status, double dollars_per_hour, absl::Time now, Json* scaling) {
  const absl::Time last =
      TimeOf(*scaling, kSpentTime).value_or(TimeOf(status, "startTime").value_or(now));
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - last));
  const double spent =
      NumberOf(*scaling, kSpent).value_or(0) + seconds * dollars_per_hour / kSecondsAnHour;
  scaling->Set(kSpent, absl::StrFormat("%.6g", spent));
  scaling->Set(kSpentTime, FormatObjectTime(now));
}

ScaleState StateOf(const Json& scaling, size_t current, absl::Time now) {
  ScaleState state{.current = current,
                   .savings = static_cast<int>(IntField(scaling, {"changes"})),
                   .changes = static_cast<int>(IntField(scaling, {"changes"}))};
  if (const std::optional<absl::Time> changed = TimeOf(scaling, "changedTime"))
    state.since_change = absl::ToDoubleSeconds(now - *changed);
  return state;
}

std::string InWords(const TfJob& job, const JobCounts& counts) {
  std::string words = absl::StrCat(counts.workers, counts.workers == 1 ? " worker" : " workers");
  if (job.ElasticServers() == nullptr) return words;
  return absl::StrCat(words, " and ", counts.servers, counts.servers == 1 ? " pod" : " pods",
                      " of parameter servers");
}

// `counter` counts the decisions of a kind.
void Want(const TfJob& job, const JobCounts& counts, const char* counter, const std::string& why,
          absl::Time now, Json* scaling) {
  scaling->Set(kWanted, counts.workers);
  if (job.ElasticServers() != nullptr) scaling->Set(kWantedServers, counts.servers);
  scaling->Set(counter, IntField(*scaling, {counter}) + 1);
  scaling->Set("changedTime", FormatObjectTime(now));
  scaling->Set("reason", why);
}

// The status tells of the job's counts, and all of their pods run.
bool AreThere(const TfJob& job, const Json& status, const JobCounts& counts) {
  const auto active = [&](ReplicaType type) {
    return IntField(status, {"replicaStatuses", TypeSpelling(type), "active"});
  };
  if (active(ReplicaType::kWorker) != counts.workers) return false;
  return job.ElasticServers() == nullptr ||
         (active(ReplicaType::kPs) == counts.servers &&
          IntField(status, {kServers, "pods"}) == counts.servers &&
          FindField(status, {kServers, "moving"}) == nullptr);
}

// The decision about what was just measured.
std::string Decide(const TfJob& job, const ScaleSurroundings& around, const MeasuredRate& measured,
                   const Json& status, absl::Time now, Json* scaling) {
  const JobCounts counts = CountsOf(job);
  const Choices choices(job, around.prices, *scaling);
  if (around.prices.are_dollars)
    Pay(status, choices.options()[choices.current()].dollars_per_hour, now, scaling);
  const ScaleState state = StateOf(*scaling, choices.current(), now);
  ScaleRules rules;
  rules.restart_seconds = kChangeSeconds;
  rules.settle_seconds = SettleSeconds(job);
  rules.most_savings = rules.most_changes;
  const bool has_just_changed =
      scaling->Find("changedTime") != nullptr && state.since_change < rules.settle_seconds;
  if (around.wanted_by_others > 0 && !has_just_changed) {
    const JobCounts fewer = {counts.workers - around.wanted_by_others, counts.servers};
    const std::string told =
        absl::StrFormat("Others wait for the places of %d of %d workers; there are %d now.",
                        around.wanted_by_others, counts.workers, fewer.workers);
    Want(job, fewer, "yields", told, now, scaling);
    return told;
  }
  const StatusOr<ScaleDecision> decision =
      DecideScale(choices.options(), GoalOf(job, status, *scaling, measured.examples_per_step, now),
                  state, rules);
  if (!decision.ok() || !decision->is_change) return "";
  const JobCounts better = choices.counts(decision->option);
  const std::string told = absl::StrFormat(
      "%s bring %.4g a second; from now on there are %s.", InWords(job, counts), measured.rate,
      job.ElasticServers() == nullptr ? absl::StrCat(better.workers) : InWords(job, better));
  Want(job, better, "changes", told, now, scaling);
  return told;
}

}  // namespace

bool ScalesWorkers(const TfJob& job) {
  return job.elastic.has_value() && job.elastic->chosen.has_value() &&
         job.Find(ReplicaType::kWorker) != nullptr;
}

bool ScalesServers(const TfJob& job) {
  const ReplicaSpec* const servers = job.ElasticServers();
  return servers != nullptr && servers->server_pods->chosen.has_value() &&
         job.Find(ReplicaType::kWorker) != nullptr;
}

bool IsScaled(const TfJob& job) { return ScalesWorkers(job) || ScalesServers(job); }

JobCounts CountsOf(const TfJob& job) {
  const ReplicaSpec* const workers = job.Find(ReplicaType::kWorker);
  const ReplicaSpec* const servers = job.Find(ReplicaType::kPs);
  JobCounts counts;
  if (workers != nullptr) counts.workers = workers->replicas;
  if (servers != nullptr)
    counts.servers = servers->server_pods ? servers->server_pods->count : servers->replicas;
  return counts;
}

std::optional<JobCounts> WantedCounts(const TfJob& job, const Json& object) {
  if (!IsScaled(job) || FindField(object, {"status", "completionTime"}) != nullptr)
    return std::nullopt;
  const JobCounts now = CountsOf(job);
  JobCounts wanted = now;
  if (ScalesWorkers(job)) {
    const int64_t told = IntField(object, {"status", kScaling, kWanted}, now.workers);
    if (told >= job.elastic->min_replicas && told <= job.elastic->max_replicas)
      wanted.workers = told;
  }
  if (ScalesServers(job)) {
    const ReplicaSpec& servers = *job.ElasticServers();
    const int64_t told = IntField(object, {"status", kScaling, kWantedServers}, now.servers);
    if (told >= servers.server_pods->least && told <= servers.replicas) wanted.servers = told;
  }
  if (wanted == now) return std::nullopt;
  return wanted;
}

Json WithScale(const TfJob& job, const Json& object, const JobCounts& counts) {
  const JobCounts now = CountsOf(job);
  Json changed = object;
  const auto set = [&](ReplicaType type, int64_t count) {
    const std::string& path = job.Find(type)->path;
    SetField(&changed, {"spec", "tfReplicaSpecs", path.substr(path.rfind('.') + 1), "replicas"},
             count);
  };
  if (counts.workers != now.workers) set(ReplicaType::kWorker, counts.workers);
  if (counts.servers != now.servers) set(ReplicaType::kPs, counts.servers);
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
  return {.worker = *worker, .server = server.value_or(0), .are_dollars = true};
}

std::string DecideCounts(const TfJob& job, const std::function<ScaleSurroundings()>& surroundings,
                         absl::Time now, Json* status) {
  const Json* const progress = status->Find("progress");
  if (!IsScaled(job) || progress == nullptr || status->Find("completionTime") != nullptr) return "";
  const JobCounts counts = CountsOf(job);
  const Json* const known = status->Find(kScaling);
  Json scaling = known == nullptr ? Json::MakeObject() : *known;
  std::string told;
  const bool has_servers = job.ElasticServers() != nullptr;
  if (IntField(scaling, {kWorkers}, -1) != counts.workers ||
      (has_servers && IntField(scaling, {kServers}, -1) != counts.servers) ||
      !AreThere(job, *status, counts)) {
    // Others than those that were measured, or not all of them: a new window.
    scaling.Set(kWorkers, counts.workers);
    if (has_servers) scaling.Set(kServers, counts.servers);
    for (const char* name : {kWanted, kWantedServers, "sinceStep", "sinceTime"})
      scaling.Erase(name);
  } else if (const std::optional<MeasuredRate> measured = MeasureRate(*progress, &scaling)) {
    NoteRate(NameOfCounts(job, counts), measured->rate, &scaling);
    told = Decide(job, surroundings(), *measured, *status, now, &scaling);
  }
  status->Set(kScaling, std::move(scaling));
  return told;
}

}  // namespace weft::platform
