// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/task_security.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"

#include "net/job_identity.h"
#include "platform/jobs/tensorboard_objects.h"
#include "platform/object/fields.h"
#include "platform/object/runs_weft.h"

namespace weft::platform {
namespace {

constexpr char kVolume[] = "weft-task-tls";
constexpr char kFolder[] = "/var/run/secrets/weft/task-tls";
// Whoever the container runs as reads it; other containers do not have it.
constexpr int64_t kMode = 0444;
// Longer than any job; it is deleted with the job.
constexpr absl::Duration kValidity = absl::Hours(24 * 3650);

// Another job of that name, of before or after, has an object of its own.
std::string NameFor(const JobView& view, const char* what) {
  return absl::StrCat(view.job.metadata.name, "-", what, "-", UidOf(*view.object).substr(0, 8));
}

Json MakeOwned(const JobView& view, const char* api_version, const char* kind, const char* what) {
  Json object;
  object.Set("apiVersion", api_version);
  object.Set("kind", kind);
  SetField(&object, {"metadata", "name"}, NameFor(view, what));
  SetField(&object, {"metadata", "namespace"}, NamespaceOf(*view.object));
  for (const auto& [name, value] : JobLabels(view))
    SetField(&object, {"metadata", "labels", name}, value);
  SetField(&object, {"metadata", "ownerReferences"}, Json(Json::Array{OwnerReference(view)}));
  return object;
}

Json* ListIn(Json* object, const char* name) {
  if (object->Find(name) == nullptr) object->Set(name, Json::MakeArray());
  return object->FindMutable(name);
}

Json PodsWith(const std::vector<std::pair<std::string, std::string>>& labels) {
  Json peer;
  for (const auto& [name, value] : labels)
    SetField(&peer, {"podSelector", "matchLabels", name}, value);
  return peer;
}

}  // namespace

const ResourceType& NetworkPolicies() {
  static const auto* const type = new ResourceType(MakeResourceType(
      "networking.k8s.io", "v1", "networkpolicies", "networkpolicy", "NetworkPolicy", true));
  return *type;
}

TaskSecurity SecurityOf(const JobView& view) {
  if (!view.has_network) return TaskSecurity::kNone;
  if (view.job.extras.security != TaskSecurity::kNone) return view.job.extras.security;
  const bool runs_weft = std::any_of(
      view.job.replicas.begin(), view.job.replicas.end(), [](const ReplicaSpec& replica) {
        const Container* const container = replica.TensorFlowContainer();
        return container != nullptr && RunsWeft(*container);
      });
  return runs_weft ? TaskSecurity::kTls : TaskSecurity::kNone;
}

void SecurePod(const JobView& view, Json* pod) {
  const TaskSecurity security = SecurityOf(view);
  if (security == TaskSecurity::kNone) return;
  Json* const spec = pod->FindMutable("spec");
  Json* const containers = spec == nullptr ? nullptr : spec->FindMutable("containers");
  if (containers == nullptr || !containers->is_array()) return;
  const bool is_tls = security == TaskSecurity::kTls;
  for (Json& container : *containers->mutable_items()) {
    if (StringField(container, {"name"}) != "tensorflow") continue;
    Json variable;
    variable.Set("name", is_tls ? "WEFT_TASK_TLS" : "WEFT_INSECURE");
    variable.Set("value", is_tls ? kFolder : "1");
    ListIn(&container, "env")->Append(std::move(variable));
    if (!is_tls) continue;
    Json mount;
    mount.Set("name", kVolume);
    mount.Set("mountPath", kFolder);
    mount.Set("readOnly", true);
    ListIn(&container, "volumeMounts")->Append(std::move(mount));
  }
  if (!is_tls) return;
  Json volume;
  volume.Set("name", kVolume);
  SetField(&volume, {"secret", "secretName"}, NameFor(view, "task-tls"));
  SetField(&volume, {"secret", "defaultMode"}, kMode);
  ListIn(spec, "volumes")->Append(std::move(volume));
}

Json MakeTaskSecret(const JobView& view) {
  if (SecurityOf(view) != TaskSecurity::kTls) return Json();
  Json secret = MakeOwned(view, "v1", "Secret", "task-tls");
  secret.Set("type", "kubernetes.io/tls");
  secret.Set("immutable", true);
  return secret;
}

Status FillTaskSecret(absl::Time now, Json* secret) {
  WEFT_ASSIGN_OR_RETURN(
      const JobIdentity identity,
      MakeJobIdentity(absl::StrCat(NameOf(*secret), ".", NamespaceOf(*secret), ".weft-job"), now,
                      kValidity));
  for (const auto& [file, text] : {std::pair{kJobAuthorityFile, &identity.authority_pem},
                                   std::pair{kJobCertificateFile, &identity.certificate_pem},
                                   std::pair{kJobKeyFile, &identity.key_pem}}) {
    SetField(secret, {"data", file}, absl::Base64Escape(*text));
  }
  return absl::OkStatus();
}

Json MakeTaskNetworkPolicy(const JobView& view) {
  if (SecurityOf(view) != TaskSecurity::kInsecure) return Json();
  Json policy = MakeOwned(view, "networking.k8s.io/v1", "NetworkPolicy", "insecure");
  for (const auto& [name, value] : JobLabels(view))
    SetField(&policy, {"spec", "podSelector", "matchLabels", name}, value);
  // People look at it, and it runs no graphs.
  Json others;
  others.Set("key", kTypeLabel);
  others.Set("operator", "NotIn");
  others.Set("values", Json(Json::Array{Json(kTensorBoardType)}));
  SetField(&policy, {"spec", "podSelector", "matchExpressions"},
           Json(Json::Array{std::move(others)}));
  SetField(&policy, {"spec", "policyTypes"}, Json(Json::Array{Json("Ingress")}));
  Json from = Json::MakeArray();
  from.Append(PodsWith(JobLabels(view)));
  if (!view.job.extras.insecure_clients.empty())
    from.Append(PodsWith(view.job.extras.insecure_clients));
  Json rule;
  rule.Set("from", std::move(from));
  SetField(&policy, {"spec", "ingress"}, Json(Json::Array{std::move(rule)}));
  return policy;
}

}  // namespace weft::platform
