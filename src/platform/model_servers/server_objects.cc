// SPDX-License-Identifier: Apache-2.0
#include "platform/model_servers/server_objects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "platform/object/fields.h"
#include "platform/object/own_address.h"
#include "platform/reconcile/owned_objects.h"

namespace weft::platform {
namespace {

constexpr char kTlsFolder[] = "/var/run/weft/tls";
constexpr char kTokenFolder[] = "/var/run/weft/tokens";
constexpr char kTokenKey[] = "tokens";
// Beyond the time that it drains: running requests end, then the process.
constexpr int64_t kGraceSeconds = 10;
constexpr int64_t kEndSeconds = 5;

// The same text for the same values, in whatever order they came.
std::string Canonical(const Json& value) {
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& item : value.items()) absl::StrAppend(&text, Canonical(item), ",");
    return text + "]";
  }
  if (!value.is_object()) return value.Dump();
  std::vector<std::string> members;
  for (const JsonMember& member : value.members())
    members.push_back(absl::StrCat(Json(member.name).Dump(), ":", Canonical(member.value), ","));
  std::sort(members.begin(), members.end());
  std::string text = "{";
  for (const std::string& member : members) text += member;
  return text + "}";
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string ConfigOf(const ServedModel& model) {
  std::string text =
      absl::StrCat("config { name: ", Quoted(model.name), " base_path: ", Quoted(model.base_path),
                   " model_platform: \"tensorflow\"");
  if (model.has_all_versions) {
    absl::StrAppend(&text, " model_version_policy { all {} }");
  } else if (!model.versions.empty()) {
    absl::StrAppend(&text, " model_version_policy { specific {");
    for (const int64_t version : model.versions) absl::StrAppend(&text, " versions: ", version);
    absl::StrAppend(&text, " } }");
  } else if (model.latest > 1) {
    absl::StrAppend(&text, " model_version_policy { latest { num_versions: ", model.latest, " } }");
  }
  for (const auto& [label, version] : model.labels)
    absl::StrAppend(&text, " version_labels { key: ", Quoted(label), " value: ", version, " }");
  return text + " }";
}

std::string ConfigOf(const ModelServerSpec& server) {
  std::string text = "model_config_list {";
  for (const ServedModel& model : server.models) absl::StrAppend(&text, " ", ConfigOf(model));
  return text + " }";
}

std::string ParametersOf(const ServerBatching& batching) {
  std::string text;
  for (const auto& [name, value] : {std::pair{"max_batch_size", batching.max_batch_size},
                                    std::pair{"batch_timeout_micros", batching.timeout_micros},
                                    std::pair{"max_enqueued_batches", batching.max_enqueued},
                                    std::pair{"num_batch_threads", batching.threads}}) {
    if (value > 0) absl::StrAppend(&text, name, " { value: ", value, " } ");
  }
  for (const int64_t size : batching.allowed_sizes)
    absl::StrAppend(&text, "allowed_batch_sizes: ", size, " ");
  return text;
}

Json ArgumentsOf(const ModelServerSpec& server) {
  std::vector<std::string> words = {absl::StrCat("--port=", kServerGrpcPort),
                                    absl::StrCat("--rest_api_port=", kServerRestPort),
                                    absl::StrCat("--metrics_port=", kServerMetricsPort),
                                    "--enable_grpc_healthcheck_service",
                                    absl::StrCat("--drain=", server.drain_seconds),
                                    absl::StrCat("--grace=", kGraceSeconds),
                                    absl::StrCat("--model_config=", ConfigOf(server))};
  // Labels come with the versions that they name.
  words.push_back("--allow_version_labels_for_unavailable_models");
  if (server.batching.has_value()) {
    words.push_back("--enable_batching");
    words.push_back(absl::StrCat("--batching_parameters=", ParametersOf(*server.batching)));
  }
  if (server.threads > 0)
    words.push_back(absl::StrCat("--tensorflow_session_parallelism=", server.threads));
  if (!server.memory_limit.empty())
    words.push_back(absl::StrCat("--memory_limit=", server.memory_limit));
  if (!server.tls_secret.empty()) words.push_back(absl::StrCat("--tls_folder=", kTlsFolder));
  if (!server.token_secret.empty())
    words.push_back(absl::StrCat("--token_file=", kTokenFolder, "/", kTokenKey));
  if (server.tls_secret.empty()) words.push_back("--insecure");
  words.insert(words.end(), server.flags.begin(), server.flags.end());
  Json arguments = Json::MakeArray();
  // What stands in the spec is no variable.
  for (const std::string& word : words)
    arguments.Append(absl::StrReplaceAll(word, {{"$(", "$$("}}));
  arguments.Append("--bind=$(POD_IP)");
  return arguments;
}

Json ProbeOf(const char* path, int64_t period, int64_t failures) {
  Json probe;
  SetField(&probe, {"httpGet", "path"}, path);
  SetField(&probe, {"httpGet", "port"}, "metrics");
  probe.Set("periodSeconds", period);
  probe.Set("timeoutSeconds", 5);
  probe.Set("failureThreshold", failures);
  return probe;
}

void AddSecret(const char* name, const std::string& secret, const char* folder, Json* container,
               Json* pod) {
  if (secret.empty()) return;
  Json volume;
  volume.Set("name", name);
  SetField(&volume, {"secret", "secretName"}, secret);
  Json mount;
  mount.Set("name", name);
  mount.Set("mountPath", folder);
  mount.Set("readOnly", true);
  const auto append = [](const char* field, Json item, Json* to) {
    Json list = to->Find(field) == nullptr ? Json::MakeArray() : *to->Find(field);
    list.Append(std::move(item));
    to->Set(field, std::move(list));
  };
  append("volumes", std::move(volume), pod);
  append("volumeMounts", std::move(mount), container);
}

Json ContainerOf(const ModelServerSpec& server) {
  Json container = server.container;
  if (container.Find("command") == nullptr)
    container.Set("command", Json(Json::Array{Json("weft"), Json("serve")}));
  container.Set("args", ArgumentsOf(server));
  Json address;
  address.Set("name", "POD_IP");
  SetField(&address, {"valueFrom", "fieldRef", "fieldPath"}, "status.podIP");
  Json variables = Json(Json::Array{std::move(address)});
  for (const Json& variable : ListField(container, {"env"})) variables.Append(variable);
  container.Set("env", std::move(variables));
  Json ports = Json::MakeArray();
  for (const auto& [name, number] :
       {std::pair{"grpc", kServerGrpcPort}, std::pair{"http", kServerRestPort},
        std::pair{"metrics", kServerMetricsPort}}) {
    Json port;
    port.Set("name", name);
    port.Set("containerPort", number);
    ports.Append(std::move(port));
  }
  container.Set("ports", std::move(ports));
  // It listens when its models are loaded, which may take minutes.
  container.Set("startupProbe", ProbeOf("/livez", 1, 900));
  container.Set("livenessProbe", ProbeOf("/livez", 10, 3));
  container.Set("readinessProbe", ProbeOf("/healthz", 1, 2));
  SetField(&container, {"securityContext", "allowPrivilegeEscalation"}, false);
  SetField(&container, {"securityContext", "capabilities", "drop"}, Json(Json::Array{Json("ALL")}));
  return container;
}

Json MakeOwned(const Json& object, const char* version, const char* kind, const std::string& name) {
  Json made;
  made.Set("apiVersion", version);
  made.Set("kind", kind);
  SetField(&made, {"metadata", "name"}, name);
  SetField(&made, {"metadata", "namespace"}, NamespaceOf(object));
  SetField(&made, {"metadata", "labels", kModelServerLabel}, NameOf(object));
  SetField(&made, {"metadata", "ownerReferences"}, Json(Json::Array{ControllerReference(object)}));
  return made;
}

}  // namespace

std::string ServerRevisionOf(const Json& object) {
  Json spec = object.Find("spec") == nullptr ? Json::MakeObject() : *object.Find("spec");
  for (const char* field : {"replicas", "autoscaling", "rollout"}) spec.Erase(field);
  uint64_t hash = 14695981039346656037u;
  for (const char c : Canonical(spec))
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return absl::StrFormat("%010x", (hash ^ (hash >> 40)) & 0xffffffffffu);
}

Json MakeServerDeployment(const Json& object, const ModelServerSpec& server,
                          const std::string& revision, int64_t replicas) {
  Json container = ContainerOf(server);
  Json pod = server.pod;
  AddSecret("weft-tls", server.tls_secret, kTlsFolder, &container, &pod);
  AddSecret("weft-tokens", server.token_secret, kTokenFolder, &container, &pod);
  pod.Set("containers", Json(Json::Array{std::move(container)}));
  pod.Set("terminationGracePeriodSeconds", server.drain_seconds + kGraceSeconds + kEndSeconds);
  Json made =
      MakeOwned(object, "apps/v1", "Deployment", absl::StrCat(NameOf(object), "-", revision));
  SetField(&made, {"metadata", "labels", kRevisionLabel}, revision);
  SetField(&made, {"spec", "replicas"}, replicas);
  for (const auto& [label, value] :
       {std::pair{kModelServerLabel, NameOf(object)}, std::pair{kRevisionLabel, revision}}) {
    SetField(&made, {"spec", "selector", "matchLabels", label}, value);
    SetField(&made, {"spec", "template", "metadata", "labels", label}, value);
  }
  SetField(&made, {"spec", "template", "metadata", "annotations", kOwnAddressAnnotation}, "true");
  SetField(&made, {"spec", "template", "spec"}, std::move(pod));
  return made;
}

Json MakeServerService(const Json& object) {
  Json made = MakeOwned(object, "v1", "Service", NameOf(object));
  SetField(&made, {"metadata", "annotations", kOwnAddressAnnotation}, "true");
  SetField(&made, {"spec", "selector", kModelServerLabel}, NameOf(object));
  Json ports = Json::MakeArray();
  for (const auto& [name, number] :
       {std::pair{"grpc", kServerGrpcPort}, std::pair{"http", kServerRestPort}}) {
    Json port;
    port.Set("name", name);
    port.Set("port", number);
    port.Set("targetPort", name);
    ports.Append(std::move(port));
  }
  SetField(&made, {"spec", "ports"}, std::move(ports));
  return made;
}

StatusOr<std::vector<Json>> RenderModelServer(const Json& document, const std::string& file,
                                              const std::string& namespace_name) {
  Json object = document;
  if (NamespaceOf(object).empty()) SetField(&object, {"metadata", "namespace"}, namespace_name);
  Problems problems(file);
  const ModelServerSpec server = ParseModelServer(object, &problems);
  if (NameOf(object).empty()) problems.Required(object, "metadata.name");
  WEFT_RETURN_IF_ERROR(problems.ToStatus());
  std::vector<Json> made = {
      MakeServerService(object),
      MakeServerDeployment(
          object, server, ServerRevisionOf(object),
          server.scaling.has_value()
              ? std::clamp(server.replicas, server.scaling->least, server.scaling->most)
              : server.replicas)};
  for (Json& one : made) EraseField(&one, {"metadata", "ownerReferences"});
  return made;
}

}  // namespace weft::platform
