// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/defaults.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"

#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

void DefaultContainer(Json* container) {
  const std::string image = StringField(*container, {"image"});
  const size_t slash = image.rfind('/');
  const std::string last = slash == std::string::npos ? image : image.substr(slash + 1);
  const bool is_latest = !absl::StrContains(last, ':') || absl::EndsWith(last, ":latest");
  SetDefault(container, {"imagePullPolicy"}, is_latest ? "Always" : "IfNotPresent");
  SetDefault(container, {"terminationMessagePath"}, "/dev/termination-log");
  SetDefault(container, {"terminationMessagePolicy"}, "File");
  SetDefault(container, {"resources"}, Json::MakeObject());
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

Json Toleration(const char* key) {
  Json toleration;
  toleration.Set("effect", "NoExecute");
  toleration.Set("key", key);
  toleration.Set("operator", "Exists");
  toleration.Set("tolerationSeconds", 300);
  return toleration;
}

}  // namespace

void SetDefault(Json* object, FieldPath path, Json value) {
  if (FindField(*object, path) == nullptr) SetField(object, path, std::move(value));
}

void DefaultPodSpec(Json* object, FieldPath spec_path) {
  Json spec = FindField(*object, spec_path) == nullptr ? Json::MakeObject()
                                                       : *FindField(*object, spec_path);
  SetDefault(&spec, {"restartPolicy"}, "Always");
  SetDefault(&spec, {"terminationGracePeriodSeconds"}, 30);
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
  SetField(object, spec_path, std::move(spec));
}

void DefaultPod(Json* pod) {
  DefaultPodSpec(pod, {"spec"});
  SetDefault(pod, {"spec", "enableServiceLinks"}, true);
  SetDefault(pod, {"spec", "preemptionPolicy"}, "PreemptLowerPriority");
  SetDefault(pod, {"spec", "priority"}, 0);
  SetDefault(pod, {"spec", "tolerations"},
             Json(Json::Array{Toleration("node.kubernetes.io/not-ready"),
                              Toleration("node.kubernetes.io/unreachable")}));
  SetField(pod, {"status"}, Json::MakeObject());
  SetField(pod, {"status", "phase"}, "Pending");
  SetField(pod, {"status", "qosClass"}, QosClass(*pod));
}

void DefaultService(Json* service) {
  SetDefault(service, {"spec"}, Json::MakeObject());
  SetDefault(service, {"spec", "type"}, "ClusterIP");
  SetDefault(service, {"spec", "sessionAffinity"}, "None");
  // There is no network of services here: names lead to the loopback interface.
  SetDefault(service, {"spec", "clusterIP"}, "None");
  SetDefault(service, {"spec", "clusterIPs"},
             Json(Json::Array{Json(StringField(*service, {"spec", "clusterIP"}))}));
  SetDefault(service, {"spec", "internalTrafficPolicy"}, "Cluster");
  SetDefault(service, {"spec", "ipFamilies"}, Json(Json::Array{Json("IPv4")}));
  SetDefault(service, {"spec", "ipFamilyPolicy"}, "SingleStack");
  Json* const ports = service->FindMutable("spec")->FindMutable("ports");
  if (ports != nullptr && ports->is_array()) {
    for (Json& port : *ports->mutable_items()) {
      if (!port.is_object()) continue;
      SetDefault(&port, {"protocol"}, "TCP");
      SetDefault(&port, {"targetPort"}, IntField(port, {"port"}));
    }
  }
  SetDefault(service, {"status"}, Json::MakeObject());
  SetDefault(service, {"status", "loadBalancer"}, Json::MakeObject());
}

}  // namespace weft::platform
