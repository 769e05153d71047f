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

namespace weft::platform {
namespace {

constexpr char kWorkers[] = "workers";
constexpr char kServers[] = "servers";
constexpr char kWanted[] = "wanted";
constexpr char kWantedServers[] = "wantedServers";
constexpr char kSpentTime[] = "spentTime";
// A rate is taken over no fewer steps and seconds than these.
constexpr int64_t kWindowSteps = 20;
constexpr double kWindowSeconds = 10;
// Of a window, in the rate of counts that were measured before.
constexpr double kNewsWeight = 0.25;
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
  const std::optional<absl::Time> since = ScalingTime(*scaling, "sinceTime");
  const std::optional<absl::Time> now = ScalingTime(progress, "time");
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
  const double before = rates == nullptr ? rate : ScalingNumber(*rates, name).value_or(rate);
  SetField(scaling, {"rates", name},
           absl::StrFormat("%.6g", before + kNewsWeight * (rate - before)));
}

// Since the last look the job has paid for the counts that it has.
void Pay(const Json& status, double dollars_per_hour, absl::Time now, Json* scaling) {
  const absl::Time last =
      ScalingTime(*scaling, kSpentTime).value_or(ScalingTime(status, "startTime").value_or(now));
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - last));
  const double spent =
      ScalingNumber(*scaling, kSpent).value_or(0) + seconds * dollars_per_hour / kSecondsAnHour;
  scaling->Set(kSpent, absl::StrFormat("%.6g", spent));
  scaling->Set(kSpentTime, FormatObjectTime(now));
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
  const ScaleChoices choices(job, around.prices, *scaling);
  if (around.prices.are_dollars)
    Pay(status, choices.options()[choices.current()].dollars_per_hour, now, scaling);
  scaling->Set(kExamplesPerStep, absl::StrFormat("%.6g", measured.examples_per_step));
  const ScaleQuestion question = QuestionOf(job, status, *scaling, choices.current(), now);
  const bool has_just_changed = question.state.since_change < question.rules.settle_seconds;
  if (around.wanted_by_others > 0 && !has_just_changed) {
    const JobCounts fewer = {counts.workers - around.wanted_by_others, counts.servers};
    const std::string told =
        absl::StrFormat("Others wait for the places of %d of %d workers; there are %d now.",
                        around.wanted_by_others, counts.workers, fewer.workers);
    Want(job, fewer, "yields", told, now, scaling);
    return told;
  }
  const StatusOr<ScaleDecision> decision =
      DecideScale(choices.options(), question.goal, question.state, question.rules);
  if (!decision.ok() || !decision->is_change) return "";
  const JobCounts better = choices.counts(decision->option);
  const std::string told = absl::StrFormat(
      "%s brought %.4g a second; from now on there are %s.", InWords(job, counts), measured.rate,
      job.ElasticServers() == nullptr ? absl::StrCat(better.workers) : InWords(job, better));
  Want(job, better, "changes", told, now, scaling);
  return told;
}

}  // namespace

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

ScaleSurroundings SurroundingsOfJob(const TfJob& job, const std::vector<ObjectPtr>& pods,
                                    const std::map<std::string, double>& prices,
                                    PackingNodes* nodes) {
  std::vector<ObjectPtr> own;
  std::map<int64_t, ObjectPtr> may_go;
  for (const ObjectPtr& pod : pods) {
    const PodView view(*pod);
    if (view.label(kJobLabel) != job.metadata.name ||
        NamespaceOf(*pod) != job.metadata.namespace_name || IsFinishedPod(*pod))
      continue;
    own.push_back(pod);
    int64_t index = 0;
    if (ScalesWorkers(job) && view.label(kTypeLabel) == ReplicaTypeName(ReplicaType::kWorker) &&
        absl::SimpleAtoi(view.label(kIndexLabel), &index) && index >= job.elastic->min_replicas)
      may_go[index] = pod;
  }
  std::vector<ObjectPtr> workers;
  for (const auto& [index, pod] : may_go) workers.push_back(pod);
  return {.prices = PricesOfTasks(own, prices, nodes),
          .wanted_by_others = WorkersThatOthersWant(workers, job.metadata.name, pods, nodes)};
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
    NoteRate(NameOfRate(job, counts), measured->rate, &scaling);
    told = Decide(job, surroundings(), *measured, *status, now, &scaling);
  }
  status->Set(kScaling, std::move(scaling));
  return told;
}

}  // namespace weft::platform
