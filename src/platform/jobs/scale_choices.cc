// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/scale_choices.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/placement/scale_law.h"

namespace weft::platform {
namespace {

// Workers come and go without a restart of the others; those that come load their program. Servers
// go from pod to pod while steps go on.
constexpr double kChangeSeconds = 10;
// Of jobs that do not tell how many steps they have.
constexpr double kManySteps = 1e12;

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

std::optional<JobCounts> CountsOfName(const TfJob& job, const std::string& name) {
  const size_t plus = name.find('+');
  JobCounts counts = CountsOf(job);
  if (!absl::SimpleAtoi(name.substr(0, plus), &counts.workers)) return std::nullopt;
  if (job.ElasticServers() == nullptr) return counts;
  if (plus == std::string::npos || !absl::SimpleAtoi(name.substr(plus + 1), &counts.servers))
    return std::nullopt;
  return counts;
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
ScaleGoal GoalOf(const TfJob& job, const Json& status, const Json& scaling, absl::Time now) {
  const double examples_per_step = ScalingNumber(scaling, kExamplesPerStep).value_or(1);
  const DistributionPolicy& policy = job.distribution;
  const auto step = static_cast<double>(IntField(status, {"progress", "step"}));
  auto steps = static_cast<double>(IntField(status, {"progress", "steps"}));
  if (steps <= 0 && policy.examples > 0 && examples_per_step > 0)
    steps = static_cast<double>(policy.examples) / examples_per_step;
  ScaleGoal goal{
      .examples = (steps > 0 ? std::max(steps - step, 0.0) : kManySteps) * examples_per_step,
      .objective = ScaleGoal::Objective::kTime,
      .least_gain = GainOf(job).least_gain};
  const std::optional<absl::Time> start = ScalingTime(status, "startTime");
  if (steps > 0 && policy.deadline_seconds > 0 && start.has_value()) {
    goal.objective = ScaleGoal::Objective::kCost;
    goal.seconds =
        static_cast<double>(policy.deadline_seconds) - absl::ToDoubleSeconds(now - *start);
  }
  if (steps > 0 && policy.budget > 0 && scaling.Find(kSpent) != nullptr) {
    goal.objective = ScaleGoal::Objective::kCost;
    goal.dollars = policy.budget - ScalingNumber(scaling, kSpent).value_or(0);
  }
  return goal;
}

ScaleState StateOf(const Json& scaling, size_t current, absl::Time now) {
  ScaleState state{.current = current,
                   .savings = static_cast<int>(IntField(scaling, {"changes"})),
                   .changes = static_cast<int>(IntField(scaling, {"changes"}))};
  if (const std::optional<absl::Time> changed = ScalingTime(scaling, "changedTime"))
    state.since_change = absl::ToDoubleSeconds(now - *changed);
  return state;
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

std::optional<double> ScalingNumber(const Json& object, absl::string_view name) {
  double number = 0;
  if (!absl::SimpleAtod(StringField(object, {name}), &number) || number <= 0) return std::nullopt;
  return number;
}

std::optional<absl::Time> ScalingTime(const Json& object, absl::string_view name) {
  const absl::Time time = ParseObjectTime(StringField(object, {name}));
  if (time == absl::InfinitePast()) return std::nullopt;
  return time;
}

std::string NameOfRate(const TfJob& job, const JobCounts& counts) {
  return job.ElasticServers() == nullptr ? absl::StrCat(counts.workers)
                                         : absl::StrCat(counts.workers, "+", counts.servers);
}

std::string InWords(const TfJob& job, const JobCounts& counts) {
  std::string words = absl::StrCat(counts.workers, counts.workers == 1 ? " worker" : " workers");
  if (job.ElasticServers() == nullptr) return words;
  return absl::StrCat(words, " and ", counts.servers, counts.servers == 1 ? " pod" : " pods",
                      " of parameter servers");
}

ScaleChoices::ScaleChoices(const TfJob& job, const TaskPrices& prices, const Json& scaling) {
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
    const std::optional<double> rate = ScalingNumber(rates, member.name);
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
                          .measured = ScalingNumber(rates, NameOfRate(job, counts)).value_or(0)});
    }
  }
}

ScaleQuestion QuestionOf(const TfJob& job, const Json& status, const Json& scaling, size_t current,
                         absl::Time now) {
  ScaleQuestion question{.goal = GoalOf(job, status, scaling, now),
                         .state = StateOf(scaling, current, now)};
  question.rules.restart_seconds = kChangeSeconds;
  question.rules.settle_seconds = SettleSeconds(job);
  question.rules.most_savings = question.rules.most_changes;
  return question;
}

}  // namespace weft::platform
