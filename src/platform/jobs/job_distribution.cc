// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_distribution.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "platform/jobs/worker_room.h"
#include "platform/object/fields.h"
#include "platform/object/training_job_view.h"
#include "platform/placement/cost_file.h"
#include "platform/placement/plan.h"
#include "platform/placement/price_file.h"

namespace weft::platform {
namespace {

// Of status.distribution: seconds, over no fewer steps and seconds than these.
constexpr char kMeasuredStep[] = "measuredStepSeconds";
constexpr int64_t kLeastSteps = 20;
constexpr double kLeastSeconds = 10;
// A step that takes so many times as long as expected, or as little, is told.
constexpr double kMuchMore = 1.5;

bool HasChief(const TfJob& job) {
  return job.Find(ReplicaType::kChief) != nullptr || job.Find(ReplicaType::kMaster) != nullptr;
}

StatusOr<DistributionPlan> PlanFor(const TfJob& job, const StepGraph& step, const Cluster& cluster,
                                   const DeviceProfile& measured_on, double factor) {
  PlanOptions options;
  options.measured_factor = factor;
  options.all_reduces = false;
  options.splits = false;
  options.spreads_batch = true;
  const ReplicaSpec* const servers = job.Find(ReplicaType::kPs);
  options.servers_apart =
      AsksForPlace(servers != nullptr ? servers->pod.written : TrainingReplica(job)->pod.written);
  options.most_workers = static_cast<int>(job.distribution.most_workers);
  options.most_servers = static_cast<int>(job.distribution.most_servers);
  options.goal.examples = static_cast<double>(job.distribution.examples);
  if (job.distribution.deadline_seconds > 0)
    options.goal.seconds = static_cast<double>(job.distribution.deadline_seconds);
  if (job.distribution.budget > 0) options.goal.dollars = job.distribution.budget;
  if (job.distribution.wants_least_cost) options.objective = PlanOptions::Objective::kCost;
  if (job.elastic.has_value()) {
    options.most_workers =
        static_cast<int>(std::min<int64_t>(options.most_workers, job.elastic->max_replicas));
  }
  const CostModel model = CostModel::Fit({&step}, measured_on);
  return MakePlan(step, cluster, model, options);
}

// The job with workers of one of the alternatives.
struct Way {
  std::string name;
  DistributionPlan plan;
};

// Of the whole training; infinite where that is not known.
double SecondsOf(const DistributionPolicy& policy, const PlanChoice& choice) {
  if (choice.examples_per_second <= 0) return HUGE_VAL;
  return static_cast<double>(std::max<int64_t>(policy.examples, 1)) / choice.examples_per_second;
}
double DollarsOf(const DistributionPolicy& policy, const PlanChoice& choice) {
  return choice.price <= 0 ? HUGE_VAL : choice.price / 3600 * SecondsOf(policy, choice);
}

bool IsBetter(const DistributionPolicy& policy, const PlanChoice& one, const PlanChoice& other) {
  const auto keeps_goal = [&](const PlanChoice& choice) {
    return (policy.deadline_seconds == 0 ||
            SecondsOf(policy, choice) <= static_cast<double>(policy.deadline_seconds)) &&
           (policy.budget == 0 || DollarsOf(policy, choice) <= policy.budget);
  };
  if (policy.examples > 0 && keeps_goal(one) != keeps_goal(other)) return keeps_goal(one);
  const bool wants_cheap = policy.wants_least_cost || (policy.examples > 0 && keeps_goal(one));
  const double dollars = DollarsOf(policy, one), other_dollars = DollarsOf(policy, other);
  if (wants_cheap && dollars != other_dollars) return dollars < other_dollars;
  return SecondsOf(policy, one) < SecondsOf(policy, other);
}

std::string PriceInWords(const PlanChoice& choice) {
  return choice.price > 0 ? absl::StrFormat(", $%.2f an hour", choice.price) : "";
}

DistributionChoice AsWritten(const std::string& why) {
  return {.reason = absl::StrCat("The counts stay as they are written: ", why, ".")};
}

}  // namespace

bool NeedsDistribution(const TfJob& job, const Json& object) {
  if (!job.distribution.is_automatic || job.distribution.costs.empty() || job.run_policy.suspend)
    return false;
  const Json* const status = object.Find("status");
  return FindField(object, {"status", "distribution"}) == nullptr &&
         (status == nullptr || FindField(object, {"status", "completionTime"}) == nullptr);
}

DistributionChoice ChooseDistribution(const TfJob& job, const std::string& costs,
                                      const std::string& prices,
                                      const std::vector<ObjectPtr>& nodes,
                                      const std::vector<ObjectPtr>& pods, double factor) {
  if (TrainingReplica(job) == nullptr) return AsWritten("the job has no workers");
  const std::string file = absl::StrCat("ConfigMap ", job.distribution.costs, ", ", kCostsKey);
  const StatusOr<CostFile> read = ParseCostFile(costs, file);
  if (!read.ok()) return AsWritten(std::string(read.status().message()));
  const StatusOr<StepGraph> step = MakeStepGraph(*read, file, OpTime::kMean);
  if (!step.ok()) return AsWritten(std::string(step.status().message()));
  std::map<std::string, double> by_kind;
  if (!prices.empty()) {
    auto parsed =
        ParsePrices(prices, absl::StrCat("ConfigMap ", job.distribution.costs, ", ", kPricesKey));
    if (!parsed.ok()) return AsWritten(std::string(parsed.status().message()));
    by_kind = *std::move(parsed);
  }
  PackingNodes room = ReadPackingNodes(nodes, pods);
  std::optional<DeviceProfile> measured_on;
  std::vector<Way> ways;
  std::vector<std::string> misfits;
  const auto try_with = [&](const std::string& name, const Json& pod) {
    StatusOr<Cluster> cluster = RoomForWorkers(pod, by_kind, &room);
    if (cluster.ok() && !measured_on) measured_on = cluster->devices.front().profile;
    StatusOr<DistributionPlan> plan =
        cluster.ok() ? PlanFor(job, *step, *cluster, *measured_on, factor) : cluster.status();
    if (!plan.ok()) {
      misfits.push_back(job.distribution.alternatives.empty()
                            ? std::string(plan.status().message())
                            : absl::StrCat(name, ": ", plan.status().message()));
      return;
    }
    ways.push_back({name, *std::move(plan)});
  };
  const Json& written = TrainingReplica(job)->pod.written;
  try_with(kWrittenAlternative, written);
  for (const WorkerAlternative& alternative : job.distribution.alternatives)
    try_with(alternative.name, WithAlternative(written, alternative));
  if (ways.empty()) return AsWritten(absl::StrJoin(misfits, "; "));
  const Way* way = &ways.front();
  for (const Way& other : ways) {
    if (IsBetter(job.distribution, other.plan.choice(), way->plan.choice())) way = &other;
  }
  const DistributionPlan& plan = way->plan;
  const PlanChoice& best = plan.choice();
  DistributionChoice choice{.is_planned = true,
                            .workers = static_cast<int64_t>(best.workers.size()),
                            .servers = static_cast<int64_t>(best.servers.size()),
                            .step_seconds = best.seconds,
                            .form = FormName(best.form),
                            .graph = plan.fingerprint};
  if (!job.distribution.alternatives.empty()) choice.alternative = way->name;
  if (job.elastic.has_value()) choice.workers = std::max(choice.workers, job.elastic->min_replicas);
  choice.reason = absl::StrFormat(
      "%s, %.3g ms a step expected, one worker alone would take %.3g ms; limit: %s.",
      best.Describe(), best.seconds * 1e3, plan.predicted_single * 1e3, best.limit);
  if (factor != 1) {
    absl::StrAppend(&choice.reason, absl::StrFormat(" Steps of several tasks took %.2f times as "
                                                    "long as expected, which is reckoned with.",
                                                    factor));
  }
  if (!plan.goal.empty()) absl::StrAppend(&choice.reason, " Goal: ", plan.goal, ".");
  if (choice.alternative.empty()) return choice;
  absl::StrAppend(&choice.reason, " Workers ask for what '", way->name, "' says; others: ");
  for (const Way& other : ways) {
    if (&other == way) continue;
    misfits.push_back(absl::StrFormat(
        "%s: %s, %.3g examples a second%s", other.name, other.plan.choice().Describe(),
        other.plan.choice().examples_per_second, PriceInWords(other.plan.choice())));
  }
  absl::StrAppend(&choice.reason, absl::StrJoin(misfits, "; "), ".");
  return choice;
}

std::string NoteStepTime(Json* status) {
  Json* const distribution = status->FindMutable("distribution");
  double expected = 0;
  absl::Time now;
  const int64_t step = IntField(*status, {"progress", "step"}, -1);
  if (distribution == nullptr || step < 0 || distribution->Find(kMeasuredStep) != nullptr ||
      !absl::SimpleAtod(StringField(*distribution, {"stepSeconds"}), &expected) || expected <= 0 ||
      !absl::ParseTime(absl::RFC3339_full, StringField(*status, {"progress", "time"}), &now,
                       nullptr)) {
    return "";
  }
  absl::Time since;
  const int64_t first = IntField(*distribution, {"sinceStep"}, -1);
  if (first < 0 || step < first ||
      !absl::ParseTime(absl::RFC3339_full, StringField(*distribution, {"sinceTime"}), &since,
                       nullptr)) {
    distribution->Set("sinceStep", step);
    distribution->Set("sinceTime", StringField(*status, {"progress", "time"}));
    return "";
  }
  const double seconds = absl::ToDoubleSeconds(now - since);
  if (step - first < kLeastSteps || seconds < kLeastSeconds) return "";
  const double measured = seconds / static_cast<double>(step - first);
  distribution->Set(kMeasuredStep, absl::StrFormat("%.6g", measured));
  if (measured < kMuchMore * expected && measured > expected / kMuchMore) return "";
  return absl::StrFormat(
      "A step takes %.3g ms, %.3g ms were expected; a job that is suspended and goes on is planned "
      "with that.",
      measured * 1e3, expected * 1e3);
}

void ForgetDistribution(Json* status) {
  const Json* const distribution = status->Find("distribution");
  if (distribution == nullptr) return;
  double expected = 0, measured = 0;
  const std::string form = StringField(*distribution, {"form"});
  if (form == FormName(Form::kServers) &&
      absl::SimpleAtod(StringField(*distribution, {"stepSeconds"}), &expected) &&
      absl::SimpleAtod(StringField(*distribution, {kMeasuredStep}), &measured) && expected > 0) {
    double before = 1;  // is in what was expected
    if (!absl::SimpleAtod(StringField(*status, {kMeasuredFactor}), &before)) before = 1;
    status->Set(kMeasuredFactor, absl::StrFormat("%.4g", before * measured / expected));
  }
  status->Erase("distribution");
}

Json WithCounts(const TfJob& job, const Json& object, const DistributionChoice& choice) {
  Json changed = object;
  const ReplicaSpec* const workers = job.Find(ReplicaType::kWorker);
  const ReplicaSpec* const servers = job.Find(ReplicaType::kPs);
  const auto key = [](const ReplicaSpec& replica) {
    return replica.path.substr(replica.path.rfind('.') + 1);
  };
  if (workers != nullptr) {
    SetField(&changed, {"spec", "tfReplicaSpecs", key(*workers), "replicas"},
             choice.workers - (HasChief(job) ? 1 : 0));
  }
  if (servers != nullptr) {
    SetField(&changed, {"spec", "tfReplicaSpecs", key(*servers), "replicas"}, choice.servers);
  } else if (choice.servers > 0) {
    const ReplicaSpec& like = *TrainingReplica(job);
    Json copy = *FindField(object, {"spec", "tfReplicaSpecs", key(like)});
    copy.Set("replicas", choice.servers);
    SetField(&changed, {"spec", "tfReplicaSpecs", "PS"}, std::move(copy));
  }
  for (const WorkerAlternative& alternative : job.distribution.alternatives) {
    if (alternative.name != choice.alternative) continue;
    for (const ReplicaType type :
         {ReplicaType::kWorker, ReplicaType::kChief, ReplicaType::kMaster}) {
      const ReplicaSpec* const replica = job.Find(type);
      if (replica == nullptr) continue;
      const Json* const pod =
          FindField(changed, {"spec", "tfReplicaSpecs", key(*replica), "template"});
      if (pod == nullptr) continue;
      SetField(&changed, {"spec", "tfReplicaSpecs", key(*replica), "template"},
               WithAlternative(*pod, alternative));
    }
  }
  return changed;
}

Json DistributionStatus(const DistributionChoice& choice) {
  Json status = Json::MakeObject();
  status.Set("form", choice.is_planned ? choice.form : "written");
  if (choice.is_planned) {
    status.Set("workers", choice.workers);
    status.Set("servers", choice.servers);
    status.Set("stepSeconds", absl::StrFormat("%.6g", choice.step_seconds));
    status.Set("graph", choice.graph);
    if (!choice.alternative.empty()) status.Set("alternative", choice.alternative);
  }
  status.Set("reason", choice.reason);
  return status;
}

}  // namespace weft::platform
