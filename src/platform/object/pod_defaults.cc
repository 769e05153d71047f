// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod_defaults.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"

#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

void DefaultHttp(Json* action) {
  SetDefault(action, {"path"}, "/");
  SetDefault(action, {"scheme"}, "HTTP");
}

void DefaultProbes(Json* container) {
  for (const char* name : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    Json* const probe = container->FindMutable(name);
    if (probe == nullptr || !probe->is_object()) continue;
    // None of them may be zero.
    for (const auto& [field, value] : {std::pair{"timeoutSeconds", 1},
                                       {"periodSeconds", 10},
                                       {"successThreshold", 1},
                                       {"failureThreshold", 3}}) {
      if (IntField(*probe, {field}) == 0) probe->Set(field, value);
    }
    if (Json* const http = probe->FindMutable("httpGet")) DefaultHttp(http);
    if (Json* const call = probe->FindMutable("grpc")) SetDefault(call, {"service"}, "");
  }
  Json* const lifecycle = container->FindMutable("lifecycle");
  if (lifecycle == nullptr) return;
  for (const char* hook : {"postStart", "preStop"}) {
    Json* const handler = lifecycle->FindMutable(hook);
    Json* const http = handler == nullptr ? nullptr : handler->FindMutable("httpGet");
    if (http != nullptr) DefaultHttp(http);
  }
}

void DefaultVariables(Json* container) {
  Json* const variables = container->FindMutable("env");
  if (variables == nullptr || !variables->is_array()) return;
  for (Json& variable : *variables->mutable_items()) {
    Json* const source = variable.FindMutable("valueFrom");
    Json* const field = source == nullptr ? nullptr : source->FindMutable("fieldRef");
    if (field != nullptr) SetDefault(field, {"apiVersion"}, "v1");
    Json* const amount = source == nullptr ? nullptr : source->FindMutable("resourceFieldRef");
    if (amount != nullptr) SetDefault(amount, {"divisor"}, "0");
  }
}

constexpr int64_t kReadableByAll = 0644;

void DefaultVolume(Json* volume) {
  if (!volume->is_object()) return;
  if (volume->size() <= 1) volume->Set("emptyDir", Json::MakeObject());
  for (const char* kind : {"secret", "configMap", "downwardAPI", "projected"}) {
    Json* const source = volume->FindMutable(kind);
    if (source != nullptr) SetDefault(source, {"defaultMode"}, kReadableByAll);
  }
  if (Json* const path = volume->FindMutable("hostPath")) SetDefault(path, {"type"}, "");
}

// What it may use it asks for.
void DefaultRequests(Json* spec) {
  for (const char* list : {"containers", "initContainers"}) {
    Json* const containers = spec->FindMutable(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers->mutable_items()) {
      const Json* const limits = FindField(container, {"resources", "limits"});
      if (limits == nullptr) continue;
      const Json amounts = *limits;
      for (const JsonMember& member : amounts.members())
        SetDefault(&container, {"resources", "requests", member.name}, member.value);
    }
  }
}

// Nothing finer than a thousandth is told apart.
void RoundAmounts(Json* resources) {
  for (const char* what : {"limits", "requests"}) {
    const Json* const held = FindField(*resources, {what});
    if (held == nullptr || !held->is_object()) continue;
    const Json amounts = *held;
    for (const JsonMember& member : amounts.members()) {
      const StatusOr<Quantity> amount = Quantity::Parse(member.value);
      if (amount.ok() && amount->is_finer_than_thousandths())
        SetField(resources, {what, member.name}, FormatQuantity(amount->Thousandths(), false));
    }
  }
}

void DefaultContainer(Json* container) {
  DefaultProbes(container);
  DefaultVariables(container);
  const std::string image = StringField(*container, {"image"});
  const size_t slash = image.rfind('/');
  const std::string last = slash == std::string::npos ? image : image.substr(slash + 1);
  const bool is_latest = !absl::StrContains(last, ':') || absl::EndsWith(last, ":latest");
  SetDefault(container, {"imagePullPolicy"}, is_latest ? "Always" : "IfNotPresent");
  SetDefault(container, {"terminationMessagePath"}, "/dev/termination-log");
  SetDefault(container, {"terminationMessagePolicy"}, "File");
  SetDefault(container, {"resources"}, Json::MakeObject());
  RoundAmounts(container->FindMutable("resources"));
  if (Json* const ports = container->FindMutable("ports"); ports != nullptr && ports->is_array()) {
    for (Json& port : *ports->mutable_items()) SetDefault(&port, {"protocol"}, "TCP");
  }
}

// "1" is "1000m".
bool SameAmount(const Json& a, const Json& b) {
  const StatusOr<int64_t> left = ParseQuantity(a);
  const StatusOr<int64_t> right = ParseQuantity(b);
  return left.ok() && right.ok() && *left == *right;
}

// By what its containers ask for and are held to: "Guaranteed" when both are the same for all,
// "BestEffort" when there is nothing.
std::string QosClass(const Json& pod) {
  bool has_any = false;
  bool is_exact = true;
  for (const char* list : {"containers", "initContainers"}) {
    const Json* const containers = FindField(pod, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (const Json& container : containers->items()) {
      for (const char* what : {"cpu", "memory"}) {
        const Json* const limit = FindField(container, {"resources", "limits", what});
        const Json* const request = FindField(container, {"resources", "requests", what});
        has_any = has_any || limit != nullptr || request != nullptr;
        const bool is_same =
            limit != nullptr && (request == nullptr || SameAmount(*limit, *request));
        is_exact = is_exact && is_same;
      }
    }
  }
  return !has_any ? "BestEffort" : is_exact ? "Guaranteed" : "Burstable";
}

// A pod stays for a while on a node that is lost, unless it says something else.
void DefaultTolerations(Json* pod) {
  const Json* const held = FindField(*pod, {"spec", "tolerations"});
  Json tolerations = held == nullptr ? Json::MakeArray() : *held;
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const bool is_said = std::any_of(
        tolerations.items().begin(), tolerations.items().end(), [&](const Json& toleration) {
          const std::string of = StringField(toleration, {"key"});
          const std::string effect = StringField(toleration, {"effect"});
          return (of == key || of.empty()) && (effect.empty() || effect == "NoExecute");
        });
    if (is_said) continue;
    Json toleration;
    toleration.Set("effect", "NoExecute");
    toleration.Set("key", key);
    toleration.Set("operator", "Exists");
    toleration.Set("tolerationSeconds", 300);
    tolerations.Append(std::move(toleration));
  }
  SetField(pod, {"spec", "tolerations"}, std::move(tolerations));
}

}  // namespace

void DefaultPodSpec(Json* object, FieldPath spec_path) {
  Json spec = FindField(*object, spec_path) == nullptr ? Json::MakeObject()
                                                       : *FindField(*object, spec_path);
  SetDefault(&spec, {"restartPolicy"}, "Always");
  SetDefault(&spec, {"terminationGracePeriodSeconds"}, 30);
  // As the server takes what makes no sense.
  if (IntField(spec, {"terminationGracePeriodSeconds"}, 1) < 0)
    SetField(&spec, {"terminationGracePeriodSeconds"}, 1);
  SetDefault(&spec, {"dnsPolicy"}, "ClusterFirst");
  SetDefault(&spec, {"schedulerName"}, "default-scheduler");
  SetDefault(&spec, {"securityContext"}, Json::MakeObject());
  for (const char* list : {"containers", "initContainers"}) {
    Json* const containers = spec.FindMutable(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers->mutable_items()) {
      if (container.is_object()) DefaultContainer(&container);
    }
  }
  if (Json* const volumes = spec.FindMutable("volumes"); volumes != nullptr && volumes->is_array())
    for (Json& volume : *volumes->mutable_items()) DefaultVolume(&volume);
  SetField(object, spec_path, std::move(spec));
}

void DefaultPodOfUpdate(Json* pod) {
  DefaultPodSpec(pod, {"spec"});
  DefaultRequests(pod->FindMutable("spec"));
  SetDefault(pod, {"spec", "enableServiceLinks"}, true);
  DefaultTolerations(pod);
}

void DefaultPod(Json* pod) {
  DefaultPodOfUpdate(pod);
  SetField(pod, {"status"}, Json::MakeObject());
  SetField(pod, {"status", "phase"}, "Pending");
  SetField(pod, {"status", "qosClass"}, QosClass(*pod));
}

}  // namespace weft::platform
