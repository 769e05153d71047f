// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_distribution.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "platform/object/fields.h"
#include "platform/object/training_job_view.h"
#include "platform/placement/cost_file.h"
#include "platform/placement/plan.h"
#include "platform/placement/price_file.h"
#include "platform/resources/node_shape.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {
namespace {

// More workers of one job than these on a node are not planned for.
constexpr int64_t kMostWorkersOfNode = 16;
// Of status.distribution: seconds, over no fewer steps and seconds than these.
constexpr char kMeasuredStep[] = "measuredStepSeconds";
constexpr int64_t kLeastSteps = 20;
constexpr double kLeastSeconds = 10;
// A step that takes so many times as long as expected, or as little, is told.
constexpr double kMuchMore = 1.5;

const ReplicaSpec* TrainingReplica(const TfJob& job) {
  for (const ReplicaType type : {ReplicaType::kWorker, ReplicaType::kChief, ReplicaType::kMaster}) {
    if (const ReplicaSpec* const replica = job.Find(type)) return replica;
  }
  return nullptr;
}

bool HasChief(const TfJob& job) {
  return job.Find(ReplicaType::kChief) != nullptr || job.Find(ReplicaType::kMaster) != nullptr;
}

// A node as so many equal ones as it has room for workers that ask for `needs`.
void AddShapes(const NodeShape& node, const PodNeeds& needs, std::vector<NodeShape>* shapes) {
  const double processors = static_cast<double>(AmountOf(needs.amounts, kCpu)) / 1000;
  const int64_t memory = AmountOf(needs.amounts, kMemory);
  int64_t room = kMostWorkersOfNode;
  if (processors > 0) room = std::min(room, static_cast<int64_t>(node.processors / processors));
  if (memory > 0) room = std::min(room, node.memory / memory);
  if (needs.gpu.count > 0) room = std::min(room, node.gpus / needs.gpu.count);
  if (processors <= 0 && memory <= 0 && needs.gpu.count <= 0) room = 1;
  for (int64_t i = 0; i < room; ++i) {
    NodeShape share = node;
    share.name = absl::StrCat(node.name, "/", i);
    share.processors = processors > 0 ? processors : node.processors / static_cast<double>(room);
    share.memory = memory > 0 ? memory : node.memory / room;
    share.gpus = static_cast<int>(needs.gpu.count);
    share.price = node.price / static_cast<double>(room);
    shapes->push_back(std::move(share));
  }
}

StatusOr<Cluster> RoomFor(const TfJob& job, const std::vector<ObjectPtr>& nodes,
                          const std::map<std::string, double>& prices) {
  ResourceNames names;
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const PodNeeds> needs,
                        ReadPodNeeds(TrainingReplica(job)->pod.written, &names));
  std::vector<NodeShape> shapes;
  for (const ObjectPtr& node : nodes) {
    const StatusOr<NodeDescription> description = ReadNode(*node, &names);
    if (!description.ok() || description->is_unschedulable) continue;
    NodeShape shape = ShapeOfNode(*description);
    const auto type = description->labels.find(kInstanceTypeLabel);
    const auto price = type == description->labels.end() ? prices.end() : prices.find(type->second);
    if (price != prices.end()) shape.price = price->second;
    AddShapes(shape, *needs, &shapes);
  }
  if (shapes.empty()) return NotFound("no node has room for one worker");
  return MakeCluster(shapes);
}

StatusOr<DistributionPlan> PlanFor(const TfJob& job, const StepGraph& step, const Cluster& cluster,
                                   double factor) {
  PlanOptions options;
  options.measured_factor = factor;
  options.all_reduces = false;
  options.splits = false;
  options.spreads_batch = true;
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
  const CostModel model = CostModel::Fit({&step}, cluster.devices.front().profile);
  return MakePlan(step, cluster, model, options);
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
                                      const std::vector<ObjectPtr>& nodes, double factor) {
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
  const StatusOr<Cluster> cluster = RoomFor(job, nodes, by_kind);
  if (!cluster.ok()) return AsWritten(std::string(cluster.status().message()));
  const StatusOr<DistributionPlan> plan = PlanFor(job, *step, *cluster, factor);
  if (!plan.ok()) return AsWritten(std::string(plan.status().message()));
  const PlanChoice& best = plan->choice();
  DistributionChoice choice{.is_planned = true,
                            .workers = static_cast<int64_t>(best.workers.size()),
                            .servers = static_cast<int64_t>(best.servers.size()),
                            .step_seconds = best.seconds,
                            .form = FormName(best.form),
                            .graph = plan->fingerprint};
  if (job.elastic.has_value()) choice.workers = std::max(choice.workers, job.elastic->min_replicas);
  choice.reason = absl::StrFormat(
      "%s, %.3g ms a step expected, one worker alone would take %.3g ms; limit: %s.",
      best.Describe(), best.seconds * 1e3, plan->predicted_single * 1e3, best.limit);
  if (factor != 1) {
    absl::StrAppend(&choice.reason, absl::StrFormat(" Steps of several tasks took %.2f times as "
                                                    "long as expected, which is reckoned with.",
                                                    factor));
  }
  if (!plan->goal.empty()) absl::StrAppend(&choice.reason, " Goal: ", plan->goal, ".");
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
  }
  status.Set("reason", choice.reason);
  return status;
}

}  // namespace weft::platform
