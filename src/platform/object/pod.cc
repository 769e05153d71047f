// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/object/pod_volume.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

// Fields of core/v1 that mean nothing to a process: right, but for others to read.
const std::vector<std::string>& OtherPodFields() {
  static const auto* const names = new std::vector<std::string>{"activeDeadlineSeconds",
                                                                "affinity",
                                                                "automountServiceAccountToken",
                                                                "dnsConfig",
                                                                "dnsPolicy",
                                                                "enableServiceLinks",
                                                                "ephemeralContainers",
                                                                "hostAliases",
                                                                "hostIPC",
                                                                "hostNetwork",
                                                                "hostPID",
                                                                "hostUsers",
                                                                "hostname",
                                                                "hostnameOverride",
                                                                "imagePullSecrets",
                                                                "nodeName",
                                                                "nodeSelector",
                                                                "os",
                                                                "overhead",
                                                                "preemptionPolicy",
                                                                "priority",
                                                                "priorityClassName",
                                                                "readinessGates",
                                                                "resourceClaims",
                                                                "resources",
                                                                "restartPolicy",
                                                                "runtimeClassName",
                                                                "schedulerName",
                                                                "schedulingGates",
                                                                "securityContext",
                                                                "serviceAccount",
                                                                "serviceAccountName",
                                                                "setHostnameAsFQDN",
                                                                "shareProcessNamespace",
                                                                "subdomain",
                                                                "terminationGracePeriodSeconds",
                                                                "tolerations",
                                                                "topologySpreadConstraints"};
  return *names;
}

const std::vector<std::string>& OtherContainerFields() {
  static const auto* const names = new std::vector<std::string>{"imagePullPolicy",
                                                                "lifecycle",
                                                                "livenessProbe",
                                                                "readinessProbe",
                                                                "resizePolicy",
                                                                "restartPolicy",
                                                                "restartPolicyRules",
                                                                "securityContext",
                                                                "startupProbe",
                                                                "stdin",
                                                                "stdinOnce",
                                                                "terminationMessagePath",
                                                                "terminationMessagePolicy",
                                                                "tty",
                                                                "volumeDevices"};
  return *names;
}

void ParseSource(const Json& value, const std::string& path, Problems* problems,
                 EnvironmentVariable* variable) {
  FieldReader reader(value, path, problems);
  for (const auto& [field, words] :
       {std::pair{"configMapKeyRef", "config map"}, {"secretKeyRef", "secret"}}) {
    if (const Json* const reference = reader.Find(field)) {
      FieldReader reference_reader(*reference, reader.PathOf(field), problems);
      std::string name;
      std::string key;
      reference_reader.ReadString("name", &name);
      reference_reader.ReadString("key", &key);
      reference_reader.ReadBool("optional", &variable->is_optional);
      reference_reader.Finish();
      variable->from_elsewhere = absl::StrCat(words, " '", name, "', key '", key, "'");
    }
  }
  if (const Json* const reference = reader.Find("fieldRef")) {
    FieldReader reference_reader(*reference, reader.PathOf("fieldRef"), problems);
    reference_reader.Accept({"apiVersion"});
    reference_reader.ReadString("fieldPath", &variable->from_field);
    reference_reader.Finish();
  }
  for (const char* field : {"resourceFieldRef", "fileKeyRef"}) {
    if (reader.Find(field) != nullptr) variable->from_elsewhere = field;
  }
  reader.Finish();
}

EnvironmentVariable ParseVariable(const Json& value, const std::string& path, Problems* problems) {
  EnvironmentVariable variable;
  FieldReader reader(value, path, problems);
  if (reader.Require("name", "a variable needs a name")) reader.ReadString("name", &variable.name);
  if (absl::StrContains(variable.name, '=') || absl::StrContains(variable.name, '\0')) {
    problems->Add(value, reader.PathOf("name"),
                  HoldsButAllowed(Json(variable.name), "a name without '=' is allowed"));
  }
  reader.ReadString("value", &variable.value);
  if (const Json* const source = reader.Find("valueFrom")) {
    ParseSource(*source, reader.PathOf("valueFrom"), problems, &variable);
  }
  reader.Finish();
  return variable;
}

ContainerPort ParsePort(const Json& value, const std::string& path, Problems* problems) {
  ContainerPort port;
  FieldReader reader(value, path, problems);
  reader.ReadString("name", &port.name);
  if (reader.Require("containerPort", "the number of the port")) {
    reader.ReadInt("containerPort", 1, 65535, &port.port);
  }
  int protocol = 0;
  const std::vector<std::string> protocols = {"TCP", "UDP", "SCTP"};
  reader.ReadChoice("protocol", protocols, &protocol);
  port.protocol = protocols[static_cast<size_t>(protocol)];
  reader.Accept({"hostIP", "hostPort"});
  reader.Finish();
  return port;
}

// Of a list of devices, which the first cluster with GPUs took for a quantity: "0,1,3".
std::string DeviceHint(const JsonMember& member) {
  const std::string text = member.value.AsString().value_or(member.value.Dump());
  const std::vector<std::string> devices =
      absl::StrSplit(text, absl::ByAnyChar(", []"), absl::SkipEmpty());
  const bool is_list = devices.size() > 1 && absl::c_all_of(devices, [](const std::string& device) {
                         return absl::c_all_of(device, absl::ascii_isdigit);
                       });
  if (!is_list) return "";
  return absl::StrCat(
      ". A number of GPUs is written\n      nvidia.com/gpu: ", devices.size(),
      "\n  and which ones they are, in metadata of the pod,\n      annotations: {\"", member.name,
      "\": \"", absl::StrJoin(devices, ","), "\"}");
}

}  // namespace

bool IsDnsLabel(absl::string_view name) {
  if (name.empty() || name.size() > 63 || name.front() < 'a' || name.front() > 'z') return false;
  for (const char c : name) {
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-') return false;
  }
  return name.back() != '-';
}

ObjectMeta ParseObjectMeta(const Json& value, const std::string& path, Problems* problems) {
  ObjectMeta meta;
  FieldReader reader(value, path, problems);
  reader.ReadString("name", &meta.name);
  reader.ReadString("namespace", &meta.namespace_name);
  reader.ReadStringMap("labels", &meta.labels);
  reader.ReadStringMap("annotations", &meta.annotations);
  reader.Accept({"generateName", "uid", "resourceVersion", "creationTimestamp", "generation",
                 "managedFields", "ownerReferences", "finalizers", "selfLink", "deletionTimestamp",
                 "deletionGracePeriodSeconds", "clusterName"});
  reader.Finish();
  return meta;
}

void CheckResources(const Json& value, const std::string& path, Problems* problems) {
  FieldReader reader(value, path, problems);
  for (const JsonMember& member : value.members()) {
    const Status status = ParseQuantity(member.value).status();
    if (status.ok() || member.value.is_null()) continue;
    problems->Add(member.value, absl::StrCat(path, "[\"", member.name, "\"]"),
                  absl::StrCat(status.message(), DeviceHint(member)));
  }
}

void ParseResources(const Json& value, const std::string& path, Problems* problems) {
  FieldReader reader(value, path, problems);
  for (const char* kind : {"limits", "requests"}) {
    if (const Json* const amounts = reader.Find(kind)) {
      CheckResources(*amounts, reader.PathOf(kind), problems);
    }
  }
  reader.Accept({"claims"});
  reader.Finish();
}

Container ParseContainer(const Json& value, const std::string& path, Problems* problems) {
  Container container;
  container.position = value.position();
  FieldReader reader(value, path, problems);
  if (reader.Require("name", "a container needs a name")) {
    reader.ReadString("name", &container.name);
  }
  reader.ReadString("image", &container.image);
  reader.ReadStrings("command", &container.command);
  reader.ReadStrings("args", &container.args);
  reader.ReadString("workingDir", &container.working_directory);
  size_t index = 0;
  for (const Json& item : reader.ReadList("env")) {
    container.environment.push_back(
        ParseVariable(item, absl::StrCat(reader.PathOf("env"), "[", index++, "]"), problems));
  }
  index = 0;
  for (const Json& item : reader.ReadList("ports")) {
    container.ports.push_back(
        ParsePort(item, absl::StrCat(reader.PathOf("ports"), "[", index++, "]"), problems));
  }
  if (const Json* const resources = reader.Find("resources")) {
    ParseResources(*resources, reader.PathOf("resources"), problems);
    container.resources = *resources;
  }
  container.has_environment_from = !reader.ReadList("envFrom").empty();
  container.has_volume_mounts = !reader.ReadList("volumeMounts").empty();
  reader.Accept(OtherContainerFields());
  reader.Finish();
  return container;
}

PodTemplate ParsePodTemplate(const Json& value, const std::string& path, Problems* problems) {
  PodTemplate pod;
  FieldReader reader(value, path, problems);
  if (const Json* const meta = reader.Find("metadata")) {
    ParseObjectMeta(*meta, reader.PathOf("metadata"), problems);
  }
  const bool has_spec = reader.Require("spec", "the pod, with its containers");
  reader.Finish();
  if (!has_spec) return pod;
  pod.written = value;
  FieldReader spec(*reader.Find("spec"), reader.PathOf("spec"), problems);
  if (spec.Require("containers", "a list with one container named 'tensorflow'")) {
    std::set<std::string> names;
    size_t index = 0;
    for (const Json& item : spec.ReadList("containers")) {
      const std::string item_path = absl::StrCat(spec.PathOf("containers"), "[", index++, "]");
      pod.containers.push_back(ParseContainer(item, item_path, problems));
      const std::string& name = pod.containers.back().name;
      if (!name.empty() && !names.insert(name).second) {
        problems->Add(item, absl::StrCat(item_path, ".name"),
                      absl::StrCat("two containers are named '", name, "'"));
      }
    }
  }
  const std::vector<std::string> volumes =
      CheckVolumes(spec.ReadList("volumes"), spec.PathOf("volumes"), problems);
  const Json::Array& inits = spec.ReadList("initContainers");
  pod.has_init_containers = !inits.empty();
  for (const char* list : {"initContainers", "containers"}) {
    size_t index = 0;
    for (const Json& item : spec.ReadList(list)) {
      const std::string item_path = absl::StrCat(spec.PathOf(list), "[", index++, "].volumeMounts");
      const Json* const mounts = FindField(item, {"volumeMounts"});
      if (mounts != nullptr && mounts->is_array())
        CheckVolumeMounts(mounts->items(), item_path, volumes, problems);
    }
  }
  // Of the pod as a whole; often those of a container, not indented enough.
  if (const Json* const resources = spec.Find("resources")) {
    ParseResources(*resources, spec.PathOf("resources"), problems);
  }
  spec.Accept(OtherPodFields());
  spec.Finish();
  return pod;
}

}  // namespace weft::platform
