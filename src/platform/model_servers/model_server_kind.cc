// SPDX-License-Identifier: Apache-2.0
#include "platform/model_servers/model_server_kind.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "net/http_client.h"
#include "net/socket_address.h"
#include "platform/model_servers/rollout.h"
#include "platform/model_servers/server_objects.h"
#include "platform/object/conditions.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_view.h"
#include "platform/object/workload_view.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kPageTimeout = absl::Seconds(2);
constexpr absl::Duration kRolloutReads = absl::Seconds(1);

RolloutState ReadState(const Json& object) {
  RolloutState state;
  state.trusted = StringField(object, {"status", "revision"});
  state.failed = StringField(object, {"status", "failedRevision"});
  state.candidate = StringField(object, {"status", "rollout", "revision"});
  state.step = std::max<int64_t>(1, IntField(object, {"status", "rollout", "step"}, 1)) - 1;
  const auto time = [&](const char* field) {
    const absl::Time read = TimeField(object, {"status", "rollout", field});
    return read == absl::InfinitePast() ? absl::InfiniteFuture() : read;
  };
  state.since = time("since");
  state.ready_since = time("readySince");
  return state;
}

void WriteState(const RolloutAnswer& answer, const ServerRollout& rollout, Json* status) {
  const RolloutState& state = answer.state;
  const auto set = [&](const char* field, const std::string& value) {
    value.empty() ? (void)status->Erase(field) : status->Set(field, value);
  };
  set("revision", state.trusted);
  set("failedRevision", state.failed);
  if (state.candidate.empty()) {
    status->Erase("rollout");
    return;
  }
  Json held;
  held.Set("revision", state.candidate);
  held.Set("step", state.step + 1);
  held.Set("percent", rollout.steps[static_cast<size_t>(state.step)]);
  held.Set("share", answer.share);
  if (state.since != absl::InfiniteFuture()) held.Set("since", FormatObjectTime(state.since));
  if (state.ready_since != absl::InfiniteFuture())
    held.Set("readySince", FormatObjectTime(state.ready_since));
  status->Set("rollout", std::move(held));
}

Plan RefusalOf(const Observation& observation, const Status& wrong) {
  Plan plan;
  const Json* const held = observation.object->Find("status");
  plan.status = held == nullptr ? Json::MakeObject() : *held;
  const Json before = plan.status;
  SetCondition("Progressing", false, "InvalidSpec", std::string(wrong.message()), observation.now,
               &plan.status);
  if (!SameJson(before, plan.status))
    plan.events.push_back({"Warning", "InvalidSpec", std::string(wrong.message())});
  return plan;
}

// Of the Deployments of each revision.
std::map<std::string, ObjectPtr> ByRevision(const std::vector<ObjectPtr>& deployments) {
  std::map<std::string, ObjectPtr> found;
  for (const ObjectPtr& deployment : deployments) {
    if (!IsTerminating(*deployment))
      found[StringField(*deployment, {"metadata", "labels", kRevisionLabel})] = deployment;
  }
  return found;
}

void PlanObjects(const Observation& observation, const ModelServerSpec& server,
                 const std::string& revision, const std::map<std::string, int64_t>& replicas,
                 Plan* plan) {
  const Json& object = *observation.object;
  const bool has_service =
      std::any_of(observation.owned[1].begin(), observation.owned[1].end(),
                  [&](const ObjectPtr& service) { return NameOf(*service) == NameOf(object); });
  if (!has_service) plan->creations.push_back({&Services(), MakeServerService(object)});
  const std::map<std::string, ObjectPtr> deployments = ByRevision(observation.owned[0]);
  for (const auto& [held, deployment] : deployments) {
    const auto wanted = replicas.find(held);
    if (wanted == replicas.end()) {
      plan->removals.push_back({&Deployments(), deployment});
    } else if (WorkloadView(*deployment).replicas() != wanted->second) {
      Json next = *deployment;
      SetField(&next, {"spec", "replicas"}, wanted->second);
      plan->changes.push_back({&Deployments(), std::move(next)});
    }
  }
  const auto own = replicas.find(revision);
  if (own != replicas.end() && !deployments.contains(revision)) {
    plan->creations.push_back(
        {&Deployments(), MakeServerDeployment(object, server, revision, own->second)});
  }
}

void SetCount(const char* field, int64_t count, Json* status) { status->Set(field, count); }

void WriteStatus(const Observation& observation, const ModelServerSpec& server, int64_t replicas,
                 const RolloutAnswer& answer, Plan* plan) {
  const Json& object = *observation.object;
  Json& status = plan->status;
  int64_t there = 0, ready = 0, available = 0;
  for (const ObjectPtr& deployment : observation.owned[0]) {
    there += WorkloadView(*deployment).status_replicas();
    ready += WorkloadView(*deployment).ready_replicas();
    available += WorkloadView(*deployment).available_replicas();
  }
  SetCount("observedGeneration", IntField(object, {"metadata", "generation"}), &status);
  SetCount("replicas", there, &status);
  SetCount("readyReplicas", ready, &status);
  SetCount("desiredReplicas", replicas, &status);
  status.Set("selector", absl::StrCat(kModelServerLabel, "=", NameOf(object)));
  status.Set("address",
             absl::StrCat(NameOf(object), ".", NamespaceOf(object), ".svc:", kServerGrpcPort));
  WriteState(answer, server.rollout, &status);
  const bool is_available = replicas == 0 || available > 0;
  SetCondition("Available", is_available, is_available ? "ServersReady" : "NoServerReady",
               is_available ? "Servers answer." : "No server is ready.", observation.now, &status);
  const bool rolls = !answer.state.candidate.empty();
  SetCondition("Progressing", rolls, rolls ? "RollingOut" : "Settled",
               rolls ? absl::StrCat("Revision ", answer.state.candidate, " takes over from ",
                                    answer.state.trusted, ".")
                     : absl::StrCat("Revision ", answer.state.trusted, " serves."),
               observation.now, &status);
  if (!answer.problem.empty()) {
    SetCondition("RolledBack", true, "WorseThanBefore", answer.problem, observation.now, &status);
  } else if (answer.state.failed.empty() && FindCondition(status, "RolledBack") != nullptr) {
    SetCondition("RolledBack", false, "AnotherRevision", "The spec is another since.",
                 observation.now, &status);
  }
}

}  // namespace

const ResourceType& ModelServers() {
  static const ResourceType& type = *FindKind("weft.dev", "ModelServer");
  return type;
}

StatusOr<std::string> FetchServerPage(const Json& pod) {
  const std::string address = StringField(pod, {"status", "podIP"});
  if (address.empty()) return Unavailable("pod '", NameOf(pod), "' has no address yet");
  WEFT_ASSIGN_OR_RETURN(
      const auto client,
      HttpClient::Create("http://" + SocketAddress{address, kServerMetricsPort}.ToString(), {}));
  HttpCall call;
  call.path = kServerMetricsPath;
  call.timeout = kPageTimeout;
  WEFT_ASSIGN_OR_RETURN(HttpAnswer answer, client->Send(call));
  if (answer.status != 200)
    return Unavailable("the metrics of pod '", NameOf(pod), "' answer ", answer.status);
  return std::move(answer.body);
}

ModelServerKind::ModelServerKind(ObjectStore* store, ServerPageReader read_page)
    : store_(store), read_page_(std::move(read_page)) {}

std::vector<Kind::Owned> ModelServerKind::Owns() const {
  return {{&Deployments(), kModelServerLabel, nullptr}, {&Services(), kModelServerLabel, nullptr}};
}

std::shared_ptr<ModelServerKind::Sight> ModelServerKind::SightOf(const std::string& uid) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Sight>& sight = sights_[uid];
  if (sight == nullptr) sight = std::make_shared<Sight>();
  return sight;
}

void ModelServerKind::OnChange(const ObjectPtr& previous, const ObjectPtr& object) {
  if (object != nullptr) return;
  absl::MutexLock lock(&mutex_);
  sights_.erase(UidOf(*previous));
}

Status ModelServerKind::ReadPages(const Json& object, absl::Time now, Sight* sight) const {
  ListOptions options;
  options.namespace_name = NamespaceOf(object);
  options.label_selector = absl::StrCat(kModelServerLabel, "=", NameOf(object));
  WEFT_ASSIGN_OR_RETURN(const ObjectList pods, store_->List(Pods(), options));
  std::set<std::string> known;
  sight->loads.clear();
  for (const ObjectPtr& pod : pods.items) {
    known.insert(UidOf(*pod));
    if (!PodView(*pod).is_ready() || IsTerminating(*pod)) continue;
    const StatusOr<std::string> page = read_page_(*pod);
    std::optional<ServerCounts> counts;
    if (page.ok()) counts = ReadServerPage(*page);
    if (!counts.has_value()) {
      sight->loads.push_back(std::nullopt);
      continue;
    }
    sight->book.Note(UidOf(*pod), PodView(*pod).label(kRevisionLabel), *std::move(counts), now);
    sight->loads.push_back(sight->book.RequestsAt(UidOf(*pod)));
  }
  sight->book.Keep(known);
  sight->read = now;
  return absl::OkStatus();
}

Status ModelServerKind::Scale(const Observation& observation, const ModelServerSpec& server,
                              int64_t* replicas, Sight* sight, Plan* plan) const {
  const Json& object = *observation.object;
  *replicas = server.replicas;
  if (!server.scaling.has_value()) return absl::OkStatus();
  const ServerScaling& scaling = *server.scaling;
  // How many there were to be before the controller began stands in the status.
  *replicas = IntField(object, {"status", "desiredReplicas"}, server.replicas);
  const absl::Duration passed = observation.now - sight->scaled;
  plan->look_again =
      std::min(plan->look_again, std::max(absl::Seconds(1), scaling.period - passed));
  const bool is_allowed = *replicas >= scaling.least && *replicas <= scaling.most;
  if (is_allowed && passed < scaling.period) return absl::OkStatus();
  plan->look_again = scaling.period;
  if (sight->read != observation.now)
    WEFT_RETURN_IF_ERROR(ReadPages(object, observation.now, sight));
  sight->scaled = observation.now;
  const ScalingAnswer next =
      NextReplicas(scaling, *replicas, sight->loads, observation.now, &sight->scaling);
  if (next.replicas != *replicas) {
    plan->events.push_back(
        {"Normal", "Scaled",
         absl::StrCat("From ", *replicas, " servers to ", next.replicas, ": ", next.why)});
  }
  *replicas = next.replicas;
  return absl::OkStatus();
}

StatusOr<Plan> ModelServerKind::MakePlan(const Observation& observation) {
  const Json& object = *observation.object;
  Problems problems("");
  const ModelServerSpec server = ParseModelServer(object, &problems);
  if (const Status wrong = problems.ToStatus(); !wrong.ok()) return RefusalOf(observation, wrong);
  const std::shared_ptr<Sight> sight = SightOf(UidOf(object));
  Plan plan;
  const Json* const held = object.Find("status");
  plan.status = held == nullptr ? Json::MakeObject() : *held;
  RolloutQuestion question;
  question.state = ReadState(object);
  const bool is_watched = question.state.ready_since != absl::InfiniteFuture();
  if (is_watched && observation.now - sight->read >= kRolloutReads)
    WEFT_RETURN_IF_ERROR(ReadPages(object, observation.now, sight.get()));
  WEFT_RETURN_IF_ERROR(Scale(observation, server, &question.replicas, sight.get(), &plan));
  question.revision = ServerRevisionOf(object);
  question.now = observation.now;
  for (const auto& [revision, deployment] : ByRevision(observation.owned[0])) {
    const WorkloadView view(*deployment);
    question.revisions[revision] = {view.replicas(), view.available_replicas()};
  }
  if (is_watched)
    sight->book.BeginWatch(absl::StrCat(question.state.candidate, "/", question.state.step));
  question.counts = [&](const std::string& revision) { return sight->book.Watched(revision); };
  RolloutAnswer answer = DecideRollout(server.rollout, question);
  plan.look_again = std::min(plan.look_again, answer.look_again);
  plan.events.insert(plan.events.end(), answer.events.begin(), answer.events.end());
  PlanObjects(observation, server, question.revision, answer.replicas, &plan);
  WriteStatus(observation, server, question.replicas, answer, &plan);
  return plan;
}

}  // namespace weft::platform
